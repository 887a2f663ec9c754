#include "tiles.hpp"

#include <cstring>

#include "cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

// What has been written so far. A register may be stored whole at the end: before column j of row r at most
// r * n_columns + j entries have been written, so that it ends inside the room for the whole tile.
template <typename Scalar>
struct Found {
    std::int32_t* columns;
    Scalar* values;
    std::size_t size;
};

template <typename Scalar>
void select_rest(const Scalar* row, std::size_t first, std::size_t end, Scalar low, Scalar high, std::int64_t& below,
                 Found<Scalar>& found) {
    for (std::size_t j = first; j < end; ++j) {
        const Scalar value = row[j];
        below += value < low;
        // Written always, kept by moving on: hits come in no order that a branch predictor could learn.
        found.columns[found.size] = static_cast<std::int32_t>(j);
        found.values[found.size] = value;
        found.size += (value >= low) & (value <= high);
    }
}

template <typename Scalar>
void row_portable(const Scalar* row, std::size_t n, Scalar low, Scalar high, std::int64_t& below,
                  Found<Scalar>& found) {
    select_rest(row, 0, n, low, high, below, found);
}

#if defined(__x86_64__)

// Few entries are inside in common use (0.01% to 1%), so their bits are taken one by one.
template <typename Scalar>
__attribute__((target("avx2,popcnt,bmi"))) inline void keep_bits(unsigned bits, const Scalar* row, std::size_t first,
                                                                 Found<Scalar>& found) {
    for (; bits != 0; bits &= bits - 1) {
        const std::size_t j = first + static_cast<std::size_t>(__builtin_ctz(bits));
        found.columns[found.size] = static_cast<std::int32_t>(j);
        found.values[found.size++] = row[j];
    }
}

__attribute__((target("avx2,popcnt,bmi"))) void row_avx2(const float* row, std::size_t n, float low, float high,
                                                         std::int64_t& below, Found<float>& found) {
    const __m256 lows = _mm256_set1_ps(low), highs = _mm256_set1_ps(high);
    std::size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        const __m256 x = _mm256_loadu_ps(row + j);
        const int not_above = _mm256_movemask_ps(_mm256_cmp_ps(x, highs, _CMP_LE_OQ));
        const int under = _mm256_movemask_ps(_mm256_cmp_ps(x, lows, _CMP_LT_OQ));
        if ((not_above | under) == 0) continue;
        below += __builtin_popcount(static_cast<unsigned>(under));
        keep_bits(static_cast<unsigned>(not_above & ~under), row, j, found);
    }
    select_rest(row, j, n, low, high, below, found);
}

__attribute__((target("avx2,popcnt,bmi"))) void row_avx2(const double* row, std::size_t n, double low, double high,
                                                         std::int64_t& below, Found<double>& found) {
    const __m256d lows = _mm256_set1_pd(low), highs = _mm256_set1_pd(high);
    std::size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const __m256d x = _mm256_loadu_pd(row + j);
        const int not_above = _mm256_movemask_pd(_mm256_cmp_pd(x, highs, _CMP_LE_OQ));
        const int under = _mm256_movemask_pd(_mm256_cmp_pd(x, lows, _CMP_LT_OQ));
        if ((not_above | under) == 0) continue;
        below += __builtin_popcount(static_cast<unsigned>(under));
        keep_bits(static_cast<unsigned>(not_above & ~under), row, j, found);
    }
    select_rest(row, j, n, low, high, below, found);
}

// Compressed in the register and stored whole: a compressing store to memory takes over 100 cycles on Zen 4.
__attribute__((target("avx512f,avx512vl,popcnt"))) void row_avx512(const float* row, std::size_t n, float low,
                                                                   float high, std::int64_t& below,
                                                                   Found<float>& found) {
    const __m512 lows = _mm512_set1_ps(low), highs = _mm512_set1_ps(high);
    const __m512i step = _mm512_set1_epi32(16);
    __m512i columns = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t j = 0;
    for (; j + 16 <= n; j += 16, columns = _mm512_add_epi32(columns, step)) {
        const __m512 x = _mm512_loadu_ps(row + j);
        const __mmask16 not_above = _mm512_cmp_ps_mask(x, highs, _CMP_LE_OQ);
        const __mmask16 under = _mm512_cmp_ps_mask(x, lows, _CMP_LT_OQ);
        if ((not_above | under) == 0) continue;
        below += __builtin_popcount(under);
        const __mmask16 inside = static_cast<__mmask16>(not_above & ~under);
        _mm512_storeu_ps(found.values + found.size, _mm512_maskz_compress_ps(inside, x));
        _mm512_storeu_si512(found.columns + found.size, _mm512_maskz_compress_epi32(inside, columns));
        found.size += static_cast<std::size_t>(__builtin_popcount(inside));
    }
    select_rest(row, j, n, low, high, below, found);
}

__attribute__((target("avx512f,avx512vl,popcnt"))) void row_avx512(const double* row, std::size_t n, double low,
                                                                   double high, std::int64_t& below,
                                                                   Found<double>& found) {
    const __m512d lows = _mm512_set1_pd(low), highs = _mm512_set1_pd(high);
    const __m256i step = _mm256_set1_epi32(8);
    __m256i columns = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    std::size_t j = 0;
    for (; j + 8 <= n; j += 8, columns = _mm256_add_epi32(columns, step)) {
        const __m512d x = _mm512_loadu_pd(row + j);
        const __mmask8 not_above = _mm512_cmp_pd_mask(x, highs, _CMP_LE_OQ);
        const __mmask8 under = _mm512_cmp_pd_mask(x, lows, _CMP_LT_OQ);
        if ((not_above | under) == 0) continue;
        below += __builtin_popcount(under);
        const __mmask8 inside = static_cast<__mmask8>(not_above & ~under);
        _mm512_storeu_pd(found.values + found.size, _mm512_maskz_compress_pd(inside, x));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(found.columns + found.size),
                            _mm256_maskz_compress_epi32(inside, columns));
        found.size += static_cast<std::size_t>(__builtin_popcount(inside));
    }
    select_rest(row, j, n, low, high, below, found);
}

#endif

template <typename Scalar>
using RowKernel = void (*)(const Scalar*, std::size_t, Scalar, Scalar, std::int64_t&, Found<Scalar>&);

template <typename Scalar>
RowKernel<Scalar> kernel_of(Level level) {
#if defined(__x86_64__)
    if (level == Level::avx512) return row_avx512;
    if (level == Level::avx2) return row_avx2;
#else
    (void)level;
#endif
    return row_portable<Scalar>;
}

template <typename Scalar>
std::size_t select(const Tile<Scalar>& tile, const Bounds<Scalar>& bounds, std::int64_t* below, std::int64_t* inside,
                   std::int32_t* columns, Scalar* values) {
    const RowKernel<Scalar> kernel = kernel_of<Scalar>(current_level());
    Found<Scalar> found{columns, values, 0};
    for (std::size_t r = 0; r < tile.n_rows; ++r) {
        const std::size_t before = found.size;
        std::int64_t count = 0;
        kernel(tile.values + r * tile.n_columns, tile.n_columns, bounds.low[r], bounds.high[r], count, found);
        below[r] = count;
        inside[r] = static_cast<std::int64_t>(found.size - before);
    }
    return found.size;
}

}  // namespace

std::size_t select_between(const Tile<float>& tile, const Bounds<float>& bounds, std::int64_t* below,
                           std::int64_t* inside, std::int32_t* columns, float* values) {
    return select(tile, bounds, below, inside, columns, values);
}

std::size_t select_between(const Tile<double>& tile, const Bounds<double>& bounds, std::int64_t* below,
                           std::int64_t* inside, std::int32_t* columns, double* values) {
    return select(tile, bounds, below, inside, columns, values);
}

void append_runs(const std::int32_t* items, const std::int64_t* counts, std::size_t n_rows, std::int64_t* cursors,
                 std::int32_t* out) {
    for (std::size_t r = 0; r < n_rows; ++r) {
        const std::size_t size = static_cast<std::size_t>(counts[r]);
        if (size == 0) continue;  // no room is needed then, not even an address
        std::memcpy(out + cursors[r], items, size * sizeof(*items));
        items += size;
        cursors[r] += counts[r];
    }
}

}  // namespace asymhash
