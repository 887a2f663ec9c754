// The training product for short codes: a convolution on the hypercube.
//
// M_ij depends on the distance of two codes alone, so sum_j table[d(i, j)] x_j is the convolution of the weights,
// summed up by code, with the table. A Walsh-Hadamard transform makes a product of it: O(2^k k + m + n) in all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hamming.hpp"

namespace asymhash {

// Beyond this the transform does not fit a machine that the look-up kernel would still serve: 2^28 doubles are 2 GiB.
constexpr std::size_t MAX_WALSH_BITS = 28;

// out[i] = sum over items j of table[distance(i, j)] * x[j]; spectrum[w] is the transform of the table at the
// frequencies of weight w, 0..n_bits, divided by 2^n_bits. Adds in one order at every level and on any threads.
void walsh_product(const Codes& queries, const Codes& items, std::size_t n_bits, const double* spectrum,
                   const double* x, double* out, std::size_t n_threads);

// weights[w] = sum over frequencies s of weight w of Q(s) D(s), where Q and D are the transforms of the numbers of
// queries and items with each code. The histogram of all distances follows from it by exact integers.
void walsh_correlation(const Codes& queries, const Codes& items, std::size_t n_bits, std::int64_t* weights,
                       std::size_t n_threads);

}  // namespace asymhash
