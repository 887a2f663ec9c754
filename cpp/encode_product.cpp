#include "encode_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

#define ASYMHASH_INLINE inline __attribute__((always_inline))

template <std::size_t N_LANES>
struct Register {
    typedef float Floats __attribute__((vector_size(4 * N_LANES), aligned(4)));
};

// By the number of lanes, since a type handed over as a template's argument would lose its alignment of 4.
template <std::size_t N_LANES>
ASYMHASH_INLINE typename Register<N_LANES>::Floats& lanes(float* at) {
    return *reinterpret_cast<typename Register<N_LANES>::Floats*>(at);
}
template <std::size_t N_LANES>
ASYMHASH_INLINE const typename Register<N_LANES>::Floats& lanes(const float* at) {
    return *reinterpret_cast<const typename Register<N_LANES>::Floats*>(at);
}

// One chain of the products of ROWS rows with N_GROUPS groups, kept in registers and added to the totals at its end.
template <std::size_t N_LANES, std::size_t ROWS, std::size_t N_GROUPS>
ASYMHASH_INLINE void multiply_chain(const float* rows, const float* weights, std::size_t group_stride,
                                    std::size_t length, bool is_first, float* totals) {
    using Floats = typename Register<N_LANES>::Floats;
    constexpr std::size_t PARTS = GROUP / N_LANES, COLUMNS = N_GROUPS * PARTS;
    Floats sums[ROWS][COLUMNS];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < ROWS; ++r) {
#pragma GCC unroll 8
        for (std::size_t c = 0; c < COLUMNS; ++c) sums[r][c] = Floats{};
    }
#pragma GCC unroll 2
    for (std::size_t f = 0; f < length; ++f) {
        Floats column[COLUMNS];
#pragma GCC unroll 8
        for (std::size_t c = 0; c < COLUMNS; ++c) {
            column[c] = lanes<N_LANES>(weights + c / PARTS * group_stride + f * GROUP + c % PARTS * N_LANES);
        }
#pragma GCC unroll 16
        for (std::size_t r = 0; r < ROWS; ++r) {
#pragma GCC unroll 8
            for (std::size_t c = 0; c < COLUMNS; ++c) sums[r][c] += column[c] * rows[r * CHAIN + f];
        }
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < ROWS; ++r) {
#pragma GCC unroll 8
        for (std::size_t c = 0; c < COLUMNS; ++c) {
            float* total = totals + r * RANGE_BITS + c * N_LANES;
            if (!is_first) sums[r][c] += lanes<N_LANES>(total);
            lanes<N_LANES>(total) = sums[r][c];
        }
    }
}

// All chains of all rows with N_GROUPS groups from `group` on, those of one chain together: its weights stay near.
template <std::size_t N_LANES, std::size_t ROWS, std::size_t N_GROUPS>
ASYMHASH_INLINE void multiply_groups(const Panel& panel, const SignMap& map, std::size_t group, Ahead ahead,
                                     float* totals) {
    static_assert(PANEL % ROWS == 0, "a panel must be whole steps");
    const std::size_t d = map.n_features, stride = d * GROUP;
    const std::size_t n_steps = (d + CHAIN - 1) / CHAIN * ((panel.n_rows + ROWS - 1) / ROWS);
    const std::size_t share = ahead.n_bytes / std::max<std::size_t>(n_steps, 1) + 1;
    const float* values = panel.values;
    std::size_t asked = 0;
    for (std::size_t f = 0; f < d; f += CHAIN, values += PANEL * CHAIN) {
        const float* weights = map.weights + group * stride + f * GROUP;
        for (std::size_t r = 0; r < panel.n_rows; r += ROWS) {
            for (const std::size_t stop = std::min(asked + share, ahead.n_bytes); asked < stop; asked += 64) {
                __builtin_prefetch(ahead.bytes + asked);
            }
            multiply_chain<N_LANES, ROWS, N_GROUPS>(values + r * CHAIN, weights, stride, std::min(CHAIN, d - f), f == 0,
                                                    totals + r * RANGE_BITS);
        }
    }
}

// Groups one by one: 4 registers of 4 lanes for each of 2 rows, or 2 of 8 for each of 6, are what 16 leave room for.
template <std::size_t N_LANES, std::size_t ROWS>
ASYMHASH_INLINE void multiply_one_by_one(const Panel& panel, const SignMap& map, const GroupRange& range,
                                         const Ahead& ahead, float* totals) {
    for (std::size_t g = 0; g < range.size; ++g) {
        multiply_groups<N_LANES, ROWS, 1>(panel, map, range.first + g, g == 0 ? ahead : Ahead{nullptr, 0},
                                          totals + g * GROUP);
    }
}

void multiply_portable(const Panel& panel, const SignMap& map, const GroupRange& range, const Ahead& ahead,
                       float* totals) {
    multiply_one_by_one<4, 2>(panel, map, range, ahead, totals);
}

#if defined(__x86_64__)
ASYMHASH_AVX2 void multiply_avx2(const Panel& panel, const SignMap& map, const GroupRange& range, const Ahead& ahead,
                                 float* totals) {
    multiply_one_by_one<8, 6>(panel, map, range, ahead, totals);
}

// 24 of 32 registers hold sums; with one group 12, which are enough to never wait (2 products a cycle, 4 cycles each).
ASYMHASH_AVX512 void multiply_avx512(const Panel& panel, const SignMap& map, const GroupRange& range,
                                     const Ahead& ahead, float* totals) {
    const Ahead nothing{nullptr, 0};
    if (range.size == 4) return multiply_groups<16, 6, 4>(panel, map, range.first, ahead, totals);
    if (range.size >= 2) multiply_groups<16, 12, 2>(panel, map, range.first, ahead, totals);
    if (range.size == 2) return;
    const std::size_t last = range.size - 1;
    multiply_groups<16, 12, 1>(panel, map, range.first + last, last == 0 ? ahead : nothing,
                               totals + last * GROUP);
}
#endif

void compare_portable(const float* totals, const Panel& panel, const SignMap& map, const GroupRange& range,
                      std::uint64_t* set, std::uint64_t* open) {
    const std::size_t first = range.first * GROUP;
    for (std::size_t r = 0; r < panel.n_rows; ++r, totals += RANGE_BITS) {
        set[r] = open[r] = 0;
        for (std::size_t t = 0; t < range.size * GROUP; ++t) {
            const float distance = totals[t] - map.threshold[first + t];
            const float length = std::fabs(distance);
            const float bound = panel.norms[r] * map.slope[first + t] + map.floor[first + t];
            const bool is_sure = (length > bound) & (length < std::numeric_limits<float>::infinity());
            set[r] |= static_cast<std::uint64_t>(distance >= 0) << t;
            open[r] |= static_cast<std::uint64_t>(!is_sure) << t;
        }
    }
}

#if defined(__x86_64__)
ASYMHASH_AVX2 void compare_avx2(const float* totals, const Panel& panel, const SignMap& map, const GroupRange& range,
                                std::uint64_t* set, std::uint64_t* open) {
    const __m256 infinity = _mm256_set1_ps(std::numeric_limits<float>::infinity());
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (std::size_t r = 0; r < panel.n_rows; ++r, totals += RANGE_BITS) {
        const __m256 norm = _mm256_set1_ps(panel.norms[r]);
        set[r] = open[r] = 0;
        for (std::size_t t = 0; t < range.size * GROUP; t += 8) {
            const std::size_t at = range.first * GROUP + t;
            const __m256 distance = _mm256_sub_ps(_mm256_loadu_ps(totals + t), _mm256_loadu_ps(map.threshold + at));
            const __m256 length = _mm256_andnot_ps(sign, distance);
            const __m256 bound =
                _mm256_fmadd_ps(norm, _mm256_loadu_ps(map.slope + at), _mm256_loadu_ps(map.floor + at));
            const __m256 is_sure = _mm256_and_ps(_mm256_cmp_ps(length, bound, _CMP_GT_OQ),
                                                 _mm256_cmp_ps(length, infinity, _CMP_LT_OQ));
            const int above = _mm256_movemask_ps(_mm256_cmp_ps(distance, _mm256_setzero_ps(), _CMP_GE_OQ));
            set[r] |= static_cast<std::uint64_t>(above) << t;
            open[r] |= static_cast<std::uint64_t>(_mm256_movemask_ps(is_sure) ^ 0xff) << t;
        }
    }
}

ASYMHASH_AVX512 void compare_avx512(const float* totals, const Panel& panel, const SignMap& map,
                                    const GroupRange& range, std::uint64_t* set, std::uint64_t* open) {
    const __m512 infinity = _mm512_set1_ps(std::numeric_limits<float>::infinity());
    for (std::size_t r = 0; r < panel.n_rows; ++r, totals += RANGE_BITS) {
        const __m512 norm = _mm512_set1_ps(panel.norms[r]);
        set[r] = open[r] = 0;
        for (std::size_t t = 0; t < range.size * GROUP; t += GROUP) {
            const std::size_t at = range.first * GROUP + t;
            const __m512 distance = _mm512_sub_ps(_mm512_loadu_ps(totals + t), _mm512_loadu_ps(map.threshold + at));
            const __m512 length = _mm512_abs_ps(distance);
            const __m512 bound =
                _mm512_fmadd_ps(norm, _mm512_loadu_ps(map.slope + at), _mm512_loadu_ps(map.floor + at));
            const __mmask16 is_finite = _mm512_cmp_ps_mask(length, infinity, _CMP_LT_OQ);
            const __mmask16 is_sure = _mm512_mask_cmp_ps_mask(is_finite, length, bound, _CMP_GT_OQ);
            const __mmask16 above = _mm512_cmp_ps_mask(distance, _mm512_setzero_ps(), _CMP_GE_OQ);
            set[r] |= static_cast<std::uint64_t>(above) << t;
            open[r] |= static_cast<std::uint64_t>(is_sure ^ 0xffff) << t;
        }
    }
}
#endif

}  // namespace

ProductKernels product_kernels() {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return {multiply_avx512, compare_avx512};
    if (current_level() == Level::avx2) return {multiply_avx2, compare_avx2};
#endif
    return {multiply_portable, compare_portable};
}

}  // namespace asymhash
