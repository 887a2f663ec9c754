// The float32 product of a panel of rows with a tile of weights, and the signs that are certain in spite of its rounding.
#pragma once

#include "encode.hpp"
#include "encode_rows.hpp"

namespace asymhash {

constexpr std::size_t TILE_GROUPS = 4;  // at most: a word of 64 bits
constexpr std::size_t TILE_BITS = TILE_GROUPS * GROUP;

struct Tile {
    std::size_t first;  // group
    std::size_t n_groups;
};

// The rows of the next panel, asked for while this one is multiplied: by itself the memory would idle then.
struct Ahead {
    const char* bytes;
    std::size_t n_bytes;
};

struct ProductKernels {
    // totals: (PANEL, TILE_BITS), of which rows beyond n_rows may be written too.
    void (*multiply)(const float* panel, std::size_t n_rows, const SignMap& map, const Tile& tile, const Ahead& ahead,
                     float* totals);
    // set and open: (n_rows), a bit for each column of the tile's groups.
    void (*compare)(const float* totals, const float* norms, std::size_t n_rows, const SignMap& map, const Tile& tile,
                    std::uint64_t* set, std::uint64_t* open);
};

// Those of the level in use.
ProductKernels product_kernels();

}  // namespace asymhash
