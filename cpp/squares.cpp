// Compiled with -ffp-contract=off: a product and a sum are rounded one by one at every instruction level.
#include "squares.hpp"

#include "cpu.hpp"

namespace asymhash {

namespace {

// The same source is compiled once for each level: the loops below are over GROUP entries, which compilers turn
// into registers of whatever width the level has.
#define ASYMHASH_INLINE inline __attribute__((always_inline))

constexpr std::size_t GROUP = 16;

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
void squares_portable(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns, Scalar* squares) {
    squares_of_rows(vectors, n_rows, n_columns, squares);
}

#if defined(__x86_64__)

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
void squares_at_level(const Scalar* vectors, std::size_t n_rows, std::size_t n_columns, Scalar* squares) {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return squares_avx512(vectors, n_rows, n_columns, squares);
    if (current_level() == Level::avx2) return squares_avx2(vectors, n_rows, n_columns, squares);
#endif
    return squares_portable(vectors, n_rows, n_columns, squares);
}

}  // namespace

void row_squares(const float* vectors, std::size_t n_rows, std::size_t n_columns, float* squares) {
    squares_at_level(vectors, n_rows, n_columns, squares);
}

void row_squares(const double* vectors, std::size_t n_rows, std::size_t n_columns, double* squares) {
    squares_at_level(vectors, n_rows, n_columns, squares);
}

}  // namespace asymhash
