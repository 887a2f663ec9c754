// Single bits of many packed codes: writing a bit that was learned, taking one out to learn it again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asymhash {

// Sets bit `bit` of every code where signs[i] > 0, and clears it elsewhere.
void set_bit(std::uint64_t* words, std::size_t n_items, std::size_t n_words, std::size_t bit, const std::int8_t* signs);

// Moves bit `last` of every code to the place of bit `bit`, and clears it: what is left has no gap. bit may be last.
void drop_bit(std::uint64_t* words, std::size_t n_items, std::size_t n_words, std::size_t bit, std::size_t last);

// Writes the similar pairs of CSR rows as bits: bit j % 8 of byte j / 8 of a row of `stride` bytes, which are zero before.
void mask_pairs(const std::int64_t* indptr, const std::int32_t* indices, std::size_t n_rows, std::size_t stride,
                std::uint8_t* mask);

}  // namespace asymhash
