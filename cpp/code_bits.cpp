#include "code_bits.hpp"

namespace asymhash {

void set_bit(std::uint64_t* words, std::size_t n_items, std::size_t n_words, std::size_t bit,
             const std::int8_t* signs) {
    std::uint64_t* word = words + bit / 64;
    const unsigned shift = bit % 64;
    const std::uint64_t keep = ~(std::uint64_t{1} << shift);
    for (std::size_t i = 0; i < n_items; ++i) {
        std::uint64_t& mine = word[i * n_words];
        mine = (mine & keep) | (static_cast<std::uint64_t>(signs[i] > 0) << shift);
    }
}

void drop_bit(std::uint64_t* words, std::size_t n_items, std::size_t n_words, std::size_t bit, std::size_t last) {
    const std::size_t to = bit / 64, from = last / 64;
    const unsigned to_shift = bit % 64, from_shift = last % 64;
    const std::uint64_t keep = ~(std::uint64_t{1} << to_shift), clear = ~(std::uint64_t{1} << from_shift);
    for (std::size_t i = 0; i < n_items; ++i) {
        std::uint64_t* code = words + i * n_words;
        const std::uint64_t moved = (code[from] >> from_shift) & 1;
        code[to] = (code[to] & keep) | (moved << to_shift);
        code[from] &= clear;
    }
}

void mask_pairs(const std::int64_t* indptr, const std::int32_t* indices, std::size_t n_rows, std::size_t stride,
                std::uint8_t* mask) {
    for (std::size_t i = 0; i < n_rows; ++i) {
        for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
            const auto j = static_cast<std::size_t>(indices[p]);
            if (j < 8 * stride) mask[i * stride + j / 8] |= static_cast<std::uint8_t>(1u << (j % 8));
        }
    }
}

}  // namespace asymhash
