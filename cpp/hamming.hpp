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

// What a block kernel takes at once: so many items that their distances stay in the first-level cache. Inside, the
// words lie plane by plane (all first words, then all second words, ...), so that one vector register
// holds the same word of neighbouring items and no register has to be summed across.
constexpr std::size_t PLANE_ITEMS = 256;

struct Planes {
    const std::uint64_t* words;  // word w of item i is words[w * stride + i]
    std::size_t stride;
    std::size_t n_words;
    std::size_t n_items;  // at most PLANE_ITEMS
};

using BlockKernel = void (*)(const Planes&, const std::uint64_t* query, std::uint16_t* distances);

// The block kernel of the level in use.
BlockKernel block_kernel();

}  // namespace asymhash
