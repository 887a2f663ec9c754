// The training product M x without M: M_ij = table[distance of query i and item j], summed over all items.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hamming.hpp"

namespace asymhash {

// |x| may not exceed this: 2048 / 32 additions of 2 * 32767 * 511 just fit in 32 bits, and that is how often the
// kernels move their sums to 64 bits.
constexpr int MAX_WEIGHT = 511;

// out[i] = sum over items j of table[distance(i, j)] * x[j]; table has n_bits + 1 entries of at most 32767 in size.
// All integers, so the result is exact and the same at every level and for any number of threads.
void lookup_product(const Codes& queries, const Codes& items, std::size_t n_bits, const std::int16_t* table,
                    const std::int16_t* x, std::int64_t* out, std::size_t n_threads);

// Similar pairs as bits: bit j % 8 of byte j / 8 of row i. Rows are padded with zeros to a multiple of 4 bytes.
struct PairMask {
    const std::uint8_t* bytes;
    std::size_t stride;
};

// The same with a second table for the similar pairs: for similarities so dense that a list of them would cost more.
void masked_product(const Codes& queries, const Codes& items, const PairMask& mask, std::size_t n_bits,
                    const std::int16_t* dissimilar, const std::int16_t* similar, const std::int16_t* x,
                    std::int64_t* out, std::size_t n_threads);

// counts[d] = number of pairs (query, item) at distance d, for d = 0..n_bits.
void pair_histogram(const Codes& queries, const Codes& items, std::size_t n_bits, std::int64_t* counts,
                    std::size_t n_threads);

// Similar pairs in rows: items of query i are indices[indptr[i]..indptr[i + 1] - 1].
struct Positives {
    const std::int64_t* indptr;
    const std::int32_t* indices;
};

// out[i] += sum over similar items j of table[distance(i, j)] * x[j]; table has n_bits + 1 entries.
void positives_product(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                       const std::int64_t* table, const std::int16_t* x, std::int64_t* out, std::size_t n_threads);

// The same with real numbers, summed in the order of the items.
void positives_product(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                       const double* table, const double* x, double* out, std::size_t n_threads);

// counts[d] += number of similar pairs at distance d, for d = 0..n_bits.
void positives_histogram(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                         std::int64_t* counts, std::size_t n_threads);

}  // namespace asymhash
