// Compiled with -ffp-contract=off: a product and a sum are rounded one by one at every instruction level.
#include "signs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu.hpp"

namespace asymhash {

namespace {

// The same source is compiled once for each level: the loops below are over GROUP entries, which compilers turn
// into registers of whatever width the level has.
#define ASYMHASH_INLINE inline __attribute__((always_inline))

constexpr std::size_t GROUP = 16;

struct GroupBits {
    std::uint32_t set;
    std::uint32_t sure;
};

template <typename Scalar>
ASYMHASH_INLINE GroupBits bits_of_group(const Projection<Scalar>& p, std::size_t item, std::size_t first,
                                        std::size_t size) {
    const Scalar* values = p.values + item * p.n_bits + first;
    const Scalar norm = p.norms[item];
    GroupBits bits{0, 0};
    for (std::size_t j = 0; j < size; ++j) {
        const Scalar distance = values[j] - p.threshold[first + j];
        const Scalar length = std::fabs(distance);
        const Scalar bound = norm * p.slope[first + j] + p.floor[first + j];
        const bool is_sure = (length > bound) & (length < std::numeric_limits<Scalar>::infinity());
        bits.set |= static_cast<std::uint32_t>(distance >= 0) << j;
        bits.sure |= static_cast<std::uint32_t>(is_sure) << j;
    }
    return bits;
}

template <typename Scalar>
ASYMHASH_INLINE void pack_row(const Projection<Scalar>& p, std::size_t item, std::uint64_t* words, std::int64_t* open,
                              std::size_t& n_open) {
    std::uint64_t word = 0;
    for (std::size_t first = 0; first < p.n_bits; first += GROUP) {
        const std::size_t size = std::min(GROUP, p.n_bits - first);
        // The whole group apart from the rest: its loop has a length that the compiler knows.
        const GroupBits bits =
            size == GROUP ? bits_of_group(p, item, first, GROUP) : bits_of_group(p, item, first, size);
        word |= static_cast<std::uint64_t>(bits.set) << (first % 64);
        for (std::uint32_t left = ~bits.sure & ((1u << size) - 1u); left != 0; left &= left - 1) {
            const std::size_t t = first + static_cast<std::size_t>(__builtin_ctz(left));
            open[n_open++] = static_cast<std::int64_t>(item * p.n_bits + t);
        }
        if ((first + size) % 64 == 0 || first + size == p.n_bits) {
            *words++ = word;
            word = 0;
        }
    }
}

template <typename Scalar>
ASYMHASH_INLINE std::size_t pack_rows(const Projection<Scalar>& p, std::uint64_t* words, std::int64_t* open) {
    const std::size_t n_words = (p.n_bits + 63) / 64;
    std::size_t n_open = 0;
    for (std::size_t i = 0; i < p.n_items; ++i) pack_row(p, i, words + i * n_words, open, n_open);
    return n_open;
}

template <typename Scalar>
ASYMHASH_INLINE void squares_of_rows(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns,
                                     Scalar* squares) {
    for (std::size_t r = 0; r < n_rows; ++r) {
        const Scalar* row = vectors + r * n_columns;
        Scalar sums[GROUP] = {};
        std::size_t j = 0;
        for (; j + GROUP <= n_columns; j += GROUP) {
            for (std::size_t lane = 0; lane < GROUP; ++lane) sums[lane] += row[j + lane] * row[j + lane];
        }
        for (std::size_t lane = 0; j + lane < n_columns; ++lane) sums[lane] += row[j + lane] * row[j + lane];
        for (std::size_t half = GROUP / 2; half > 0; half /= 2) {
            for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
        }
        squares[r] = sums[0];
    }
}

template <typename Scalar>
std::size_t pack_portable(const Projection<Scalar>& p, std::uint64_t* words, std::int64_t* open) {
    return pack_rows(p, words, open);
}

template <typename Scalar>
void squares_portable(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns, Scalar* squares) {
    squares_of_rows(vectors, n_rows, n_columns, squares);
}

#if defined(__x86_64__)

template <typename Scalar>
__attribute__((target("avx2,bmi"))) std::size_t pack_avx2(const Projection<Scalar>& p, std::uint64_t* words,
                                                          std::int64_t* open) {
    return pack_rows(p, words, open);
}

template <typename Scalar>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,bmi"))) std::size_t pack_avx512(
    const Projection<Scalar>& p, std::uint64_t* words, std::int64_t* open) {
    return pack_rows(p, words, open);
}

template <typename Scalar>
__attribute__((target("avx2"))) void squares_avx2(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns,
                                                  Scalar* squares) {
    squares_of_rows(vectors, n_rows, n_columns, squares);
}

template <typename Scalar>
__attribute__((target("avx512f,avx512vl,avx512dq"))) void squares_avx512(const Scalar* vectors, std::size_t n_rows,
                                                                         std::size_t n_columns, Scalar* squares) {
    squares_of_rows(vectors, n_rows, n_columns, squares);
}

#endif

template <typename Scalar>
std::size_t pack(const Projection<Scalar>& p, std::uint64_t* words, std::int64_t* open) {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return pack_avx512(p, words, open);
    if (current_level() == Level::avx2) return pack_avx2(p, words, open);
#endif
    return pack_portable(p, words, open);
}

template <typename Scalar>
void squares_at_level(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns, Scalar* squares) {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return squares_avx512(vectors, n_rows, n_columns, squares);
    if (current_level() == Level::avx2) return squares_avx2(vectors, n_rows, n_columns, squares);
#endif
    return squares_portable(vectors, n_rows, n_columns, squares);
}

}  // namespace

std::size_t pack_signs(const Projection<float>& projection, std::uint64_t* words, std::int64_t* open) {
    return pack(projection, words, open);
}

std::size_t pack_signs(const Projection<double>& projection, std::uint64_t* words, std::int64_t* open) {
    return pack(projection, words, open);
}

void row_squares(const float* vectors, std::size_t n_rows, std::size_t n_columns, float* squares) {
    squares_at_level(vectors, n_rows, n_columns, squares);
}

void row_squares(const double* vectors, std::size_t n_rows, std::size_t n_columns, double* squares) {
    squares_at_level(vectors, n_rows, n_columns, squares);
}

}  // namespace asymhash
