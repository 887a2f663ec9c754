// Hamming distances between packed codes, one pair at a time in meaning and one block at a time in fact.
//
// A code is `n_words` words of 64 bits; codes lie one after another (item-major). Results do not depend
// on the instruction level: they are integers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asymhash {

struct Codes {
    const std::uint64_t* words;
    std::size_t n_items;
    std::size_t n_words;  // 1 to MAX_WORDS, equal on both sides
};

constexpr std::size_t MAX_WORDS = 16;  // 1024 bits

// distances: (queries.n_items, items.n_items), row by row.
void hamming_distances(const Codes& queries, const Codes& items, std::uint16_t* distances);

// counts: (queries.n_items, 64 * n_words + 1), row by row; counts[q][d] is the number of items at distance d.
// The rows are that long so that no content of the codes can write past them.
void distance_counts(const Codes& queries, const Codes& items, std::int64_t* counts);

}  // namespace asymhash
