// Exact search in packed codes: the k nearest items, all items within a radius, items at each distance.
//
// Order is (distance, id). Results depend neither on the instruction level nor on the number of threads: they are
// integers, and parts are put together in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "blocks.hpp"
#include "hamming.hpp"

namespace asymhash {

// Ids are kept in 48 bits, beside 16 for a distance.
constexpr std::size_t MAX_ITEMS = std::size_t{1} << 48;

// What is searched, and with how many threads at most.
struct Search {
    Codes queries;
    Codes items;
    Bitmap allowed;
    std::size_t n_threads;
};

// distances and ids: (queries, k), row by row; k is from 1 to the number of items. Rows in which fewer than k items
// are allowed end in distance 64 * n_words + 1 and id -1.
void nearest_items(const Search& search, std::size_t k, std::uint16_t* distances, std::int64_t* ids);

struct Matches {
    std::vector<std::int64_t> offsets;  // (queries + 1): those of query q begin at offsets[q]
    std::vector<std::uint16_t> distances;
    std::vector<std::int64_t> ids;
};

Matches items_within(const Search& search, std::size_t radius);

// counts: (queries, 64 * n_words + 1), row by row; counts[q][d] is the number of allowed items at distance d.
// The rows are that long so that no content of the codes can write past them.
void distance_counts(const Search& search, std::int64_t* counts);

}  // namespace asymhash
