// One block of items against a few queries: the inner loops of products.cpp, one set for each instruction level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "planes.hpp"

namespace asymhash {

// Queries that pass over a block together, so that planes and weights are loaded once for all of them.
constexpr std::size_t GROUP = 4;

// Tables are padded to whole registers, at least 128 entries, so that every level can load them without a tail.
constexpr std::size_t TABLE_STEP = 64;
constexpr std::size_t MAX_TABLE = (MAX_WORDS * 64 / TABLE_STEP + 1) * TABLE_STEP;

struct Block {
    const std::uint16_t* planes;  // plane p of item i: planes[p * PLANE_BLOCK + i], zero behind the last item
    std::size_t n_planes;
    std::size_t n_items;  // at most PLANE_BLOCK
};

// Planes of GROUP queries: plane p of query r is planes[r][p].
struct QueryGroup {
    std::uint16_t planes[GROUP][MAX_PLANES];
};

struct Table {
    std::int16_t entries[MAX_TABLE];
    std::size_t n_entries;
};

// sums[r] += sum over the block of table[distance] * x; x is zero from n_items on, up to a multiple of 32.
using ProductKernel = void (*)(const Block&, const QueryGroup&, const Table&, const std::int16_t* x,
                               std::int64_t* sums);

// Which items of the block are similar to each query: bit i % 8 of byte i / 8.
using GroupMasks = const std::uint8_t* [GROUP];

// The same with a table of their own for similar items.
using MaskedKernel = void (*)(const Block&, const QueryGroup&, const Table& dissimilar, const Table& similar,
                              const GroupMasks&, const std::int16_t* x, std::int64_t* sums);

// distances[r][i] of every item of the block; there is room for PLANE_BLOCK of them in each row.
using DistanceKernel = void (*)(const Block&, const QueryGroup&, std::uint16_t (*distances)[PLANE_BLOCK]);

ProductKernel product_kernel(Level level, std::size_t n_planes, std::size_t n_entries);
MaskedKernel masked_kernel(Level level, std::size_t n_planes, std::size_t n_entries);
DistanceKernel plane_distance_kernel(Level level, std::size_t n_planes);

}  // namespace asymhash
