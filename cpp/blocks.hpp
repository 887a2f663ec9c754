// Reading packed codes block by block, as the searching kernels want them: word planes that stay in the
// first-level cache while every query passes over them, without the items that a filter forbids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hamming.hpp"

namespace asymhash {

// Kernels take this many items at a time: one word of the filter, eight vectors of AVX-512.
constexpr std::size_t STRIP = 64;

struct Block {
    const std::uint64_t* words;  // word w of item i is words[w * stride + i]; readable to a whole number of strips
    std::size_t stride;
    std::size_t n_words;
    std::size_t n_items;
    const std::uint64_t* ids;  // as readable as words; null where item i has the id first + i
    std::uint64_t first;
};

// A filter: bit i % 64 of word i / 64 allows item i; null allows all. Bits beyond the last item are not looked at.
using Bitmap = const std::uint64_t*;

class BlockReader {
public:
    // Items from `first` (a multiple of STRIP) up to `last`, which are allowed.
    BlockReader(const Codes& items, Bitmap allowed, std::size_t first, std::size_t last);

    // The next block, which has items; its memory is good until the next call. False after the last one.
    bool next(Block& block);

private:
    using Transpose = void (*)(const std::uint64_t* items, std::size_t n_items, std::size_t n_words,
                               std::uint64_t* planes, std::size_t stride);
    using Compress = void (*)(const std::uint64_t* strip, std::size_t n_words, std::uint64_t mask,
                              std::uint64_t first, std::uint64_t* planes, std::size_t stride, std::uint64_t* ids);

    bool next_whole(Block& block);
    bool next_filtered(Block& block);
    std::size_t take_strip(std::uint64_t mask, std::size_t n_taken);

    const Codes items_;
    const Bitmap allowed_;
    std::size_t position_;
    const std::size_t last_;
    std::size_t capacity_;  // items in a block
    std::vector<std::uint64_t> planes_, ids_, strip_;
    Transpose transpose_;
    Compress compress_;  // null where the level has none
};

}  // namespace asymhash
