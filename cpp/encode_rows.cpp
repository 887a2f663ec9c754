#include "encode_rows.hpp"

#include <cmath>
#include <cstring>

#include "cpu.hpp"

namespace asymhash {

namespace {

// Loops are over LANES entries, which compilers turn into registers of whatever width the level has.
#define ASYMHASH_INLINE inline __attribute__((always_inline))

constexpr std::size_t LANES = 16;

template <typename Scalar>
ASYMHASH_INLINE float as_float(Scalar x) {
    return static_cast<float>(x);
}

// By integers, and without a denormal float on the way, which takes over 100 cycles on some machines.
template <>
ASYMHASH_INLINE float as_float(Half x) {
    constexpr std::uint32_t SHIFT = 112u << 23;  // from the bias of float16 to that of float32
    const std::uint32_t magnitude = (x.bits & 0x7fffu) << 13;
    const std::uint32_t sign = (x.bits & 0x8000u) << 16;
    const std::uint32_t is_denormal = magnitude < (1u << 23);
    const std::uint32_t is_special = magnitude >= (31u << 23);  // infinite or no number
    std::uint32_t bits = magnitude + SHIFT + is_special * SHIFT + (is_denormal << 23);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    value -= is_denormal ? 0x1p-14f : 0.0f;
    std::memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename Scalar>
ASYMHASH_INLINE double as_double(Scalar x) {
    return static_cast<double>(x);
}

template <>
ASYMHASH_INLINE double as_double(Half x) {
    return as_float(x);
}

template <typename Scalar>
ASYMHASH_INLINE void widen(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel, float* norms) {
    for (std::size_t r = 0; r < n_rows; ++r) {
        const Scalar* row = rows + r * n_features;
        float sums[LANES] = {};
        std::size_t f = 0;
        for (; f + LANES <= n_features; f += LANES) {
            float* out = panel + (f / CHAIN * PANEL + r) * CHAIN + f % CHAIN;
            for (std::size_t j = 0; j < LANES; ++j) {
                const float value = as_float(row[f + j]);
                out[j] = value;
                sums[j] += value * value;
            }
        }
        for (; f < n_features; ++f) {
            const float value = as_float(row[f]);
            panel[(f / CHAIN * PANEL + r) * CHAIN + f % CHAIN] = value;
            sums[f % LANES] += value * value;
        }
        for (std::size_t half = LANES / 2; half > 0; half /= 2) {
            for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
        }
        norms[r] = std::sqrt(sums[0]);
    }
}

template <typename Scalar>
ASYMHASH_INLINE ExactSum exact_sum(const Scalar* row, const double* weights, std::size_t n_features) {
    double values[LANES] = {}, sizes[LANES] = {};
    std::size_t f = 0;
    for (; f + LANES <= n_features; f += LANES) {
        for (std::size_t j = 0; j < LANES; ++j) {
            const double term = as_double(row[f + j]) * weights[f + j];
            values[j] += term;
            sizes[j] += std::fabs(term);
        }
    }
    for (; f < n_features; ++f) {
        const double term = as_double(row[f]) * weights[f];
        values[f % LANES] += term;
        sizes[f % LANES] += std::fabs(term);
    }
    ExactSum sum{0.0, 0.0};
    for (std::size_t j = 0; j < LANES; ++j) {
        sum.value += values[j];
        sum.size += sizes[j];
    }
    return sum;
}

template <typename Scalar>
void widen_portable(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel, float* norms) {
    widen(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ExactSum exact_sum_portable(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum(row, weights, n_features);
}

#if defined(__x86_64__)
template <typename Scalar>
ASYMHASH_AVX2 void widen_avx2(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel,
                              float* norms) {
    widen(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ASYMHASH_AVX2 ExactSum exact_sum_avx2(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum(row, weights, n_features);
}
template <typename Scalar>
ASYMHASH_AVX512 void widen_avx512(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel,
                                  float* norms) {
    widen(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ASYMHASH_AVX512 ExactSum exact_sum_avx512(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum(row, weights, n_features);
}
#endif

}  // namespace

template <typename Scalar>
RowKernels<Scalar> row_kernels() {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return {widen_avx512<Scalar>, exact_sum_avx512<Scalar>};
    if (current_level() == Level::avx2) return {widen_avx2<Scalar>, exact_sum_avx2<Scalar>};
#endif
    return {widen_portable<Scalar>, exact_sum_portable<Scalar>};
}

template RowKernels<float> row_kernels();
template RowKernels<double> row_kernels();
template RowKernels<Half> row_kernels();
template RowKernels<std::uint8_t> row_kernels();
template RowKernels<std::int8_t> row_kernels();

}  // namespace asymhash
