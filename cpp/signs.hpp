// From a projection to packed codes: signs, and which of them the rounding of the product leaves open.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asymhash {

// Entry (i, t) is set where value >= threshold[t]. It is open, and named as i * n_bits + t, where
// |value - threshold[t]| is at most norms[i] * slope[t] + floor[t], or is no finite number.
template <typename Scalar>
struct Projection {
    const Scalar* values;  // (n_items, n_bits), row by row
    std::size_t n_items;
    std::size_t n_bits;
    const Scalar* norms;      // (n_items)
    const Scalar* threshold;  // (n_bits) each
    const Scalar* slope;
    const Scalar* floor;
};

// words: (n_items, ceil(n_bits / 64)); unused bits are zero. `open` needs room for all entries; returns how many.
std::size_t pack_signs(const Projection<float>& projection, std::uint64_t* words, std::int64_t* open);
std::size_t pack_signs(const Projection<double>& projection, std::uint64_t* words, std::int64_t* open);

// Sum of squares of every row, in 16 partial sums in a fixed order: the same bits at every instruction level.
void row_squares(const float* vectors, std::size_t n_rows, std::size_t n_columns, float* squares);
void row_squares(const double* vectors, std::size_t n_rows, std::size_t n_columns, double* squares);

}  // namespace asymhash
