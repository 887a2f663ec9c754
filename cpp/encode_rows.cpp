#include "encode_rows.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu.hpp"

namespace asymhash {

namespace {

#define ASYMHASH_INLINE inline __attribute__((always_inline))

template <typename Entry, std::size_t N>
struct Several {
    typedef Entry Type __attribute__((vector_size(N * sizeof(Entry))));
};

// What follows is compiled once for each level, with as many lanes as its registers have: wider vectors would be kept
// in memory, and encoding at 16 bits took three times as long with AVX2.

// Whole numbers become twice as wide in each step, for which there are instructions; GCC 12 takes wider ones apart.
template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void load_ints(const Scalar* from, typename Several<std::int32_t, N>::Type& to) {
    typename Several<Scalar, N>::Type entries;
    std::memcpy(&entries, from, sizeof entries);
    if constexpr (sizeof(Scalar) == 1) {
        using Shorts = typename Several<std::int16_t, N>::Type;
        to = __builtin_convertvector(__builtin_convertvector(entries, Shorts), typename Several<std::int32_t, N>::Type);
    } else {
        to = __builtin_convertvector(entries, typename Several<std::int32_t, N>::Type);
    }
}

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void load_floats(const Scalar* from, typename Several<float, N>::Type& to) {
    using Ints = typename Several<std::int32_t, N>::Type;
    using Reals = typename Several<float, N>::Type;
    if constexpr (std::is_same_v<Scalar, Half>) {
        // By integers, and without a denormal float on the way, which takes over 100 cycles on some machines.
        constexpr std::int32_t SHIFT = 112 << 23;  // from the bias of float16 to that of float32
        Ints bits;
        load_ints<N>(&from->bits, bits);
        const Ints magnitude = (bits & 0x7fff) << 13;
        const Ints is_denormal = magnitude < (1 << 23), is_special = magnitude >= (31 << 23);  // infinite or no number
        const Ints moved = magnitude + SHIFT + (is_special & SHIFT) + (is_denormal & (1 << 23));
        const Ints lost = is_denormal & ((127 - 14) << 23);  // 2^-14: a denormal lacks the 1 that it was given
        to = (Reals)((Ints)((Reals)moved - (Reals)lost) | (bits & 0x8000) << 16);
    } else if constexpr (std::is_integral_v<Scalar>) {
        Ints ints;
        load_ints<N>(from, ints);
        to = __builtin_convertvector(ints, Reals);
    } else {
        typename Several<Scalar, N>::Type entries;
        std::memcpy(&entries, from, sizeof entries);
        to = __builtin_convertvector(entries, Reals);
    }
}

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void load_doubles(const Scalar* from, typename Several<double, N>::Type& to) {
    if constexpr (std::is_same_v<Scalar, double>) {
        std::memcpy(&to, from, sizeof to);
    } else {
        typename Several<float, N>::Type floats;  // which hold every value of the other types
        load_floats<N>(from, floats);
        to = __builtin_convertvector(floats, typename Several<double, N>::Type);
    }
}

// The last entries of a row, followed by zeros.
template <std::size_t N, typename Scalar>
struct Rest {
    ASYMHASH_INLINE Rest(const Scalar* from, std::size_t size) { std::memcpy(entries, from, size * sizeof(Scalar)); }
    Scalar entries[N] = {};
};

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void widen_some(const Scalar* from, float* to, typename Several<float, N>::Type& squares) {
    typename Several<float, N>::Type values;
    load_floats<N>(from, values);
    squares += values * values;
    std::memcpy(to, &values, sizeof values);
}

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void widen(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel, float* norms) {
    for (std::size_t r = 0; r < n_rows; ++r, rows += n_features) {
        typename Several<float, N>::Type squares = {};
        std::size_t f = 0;
        for (; f + N <= n_features; f += N) {
            widen_some<N>(rows + f, panel + (f / CHAIN * PANEL + r) * CHAIN + f % CHAIN, squares);
        }
        if (f < n_features) {
            const Rest<N, Scalar> rest(rows + f, n_features - f);
            widen_some<N>(rest.entries, panel + (f / CHAIN * PANEL + r) * CHAIN + f % CHAIN, squares);
        }
        float square = 0;
        for (std::size_t j = 0; j < N; ++j) square += squares[j];
        norms[r] = square;
    }
    for (std::size_t r = 0; r < n_rows; ++r) norms[r] = std::sqrt(norms[r]);
}

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE void add_terms(const Scalar* row, const double* weights, typename Several<double, N>::Type& values,
                               typename Several<double, N>::Type& sizes) {
    typename Several<double, N>::Type features, factors;
    load_doubles<N>(row, features);
    load_doubles<N>(weights, factors);
    const typename Several<double, N>::Type terms = features * factors;
    values += terms;
    sizes += terms < 0 ? -terms : terms;
}

template <std::size_t N, typename Scalar>
ASYMHASH_INLINE ExactSum exact_sum(const Scalar* row, const double* weights, std::size_t n_features) {
    // Two sums in turn: one alone would wait for itself.
    typename Several<double, N>::Type values[2] = {}, sizes[2] = {};
    std::size_t f = 0;
    for (; f + 2 * N <= n_features; f += 2 * N) {
        add_terms<N>(row + f, weights + f, values[0], sizes[0]);
        add_terms<N>(row + f + N, weights + f + N, values[1], sizes[1]);
    }
    if (f < n_features) {
        const Rest<2 * N, Scalar> features(row + f, n_features - f);
        const Rest<2 * N, double> factors(weights + f, n_features - f);
        add_terms<N>(features.entries, factors.entries, values[0], sizes[0]);
        add_terms<N>(features.entries + N, factors.entries + N, values[1], sizes[1]);
    }
    ExactSum sum{0.0, 0.0};
    for (std::size_t j = 0; j < N; ++j) {
        sum.value += values[0][j] + values[1][j];
        sum.size += sizes[0][j] + sizes[1][j];
    }
    return sum;
}

template <typename Scalar>
void widen_portable(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel, float* norms) {
    widen<4>(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ExactSum exact_sum_portable(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum<2>(row, weights, n_features);
}

#if defined(__x86_64__)
template <typename Scalar>
ASYMHASH_AVX2 void widen_avx2(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel,
                              float* norms) {
    widen<8>(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ASYMHASH_AVX2 ExactSum exact_sum_avx2(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum<4>(row, weights, n_features);
}
template <typename Scalar>
ASYMHASH_AVX512 void widen_avx512(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel,
                                  float* norms) {
    widen<16>(rows, n_rows, n_features, panel, norms);
}
template <typename Scalar>
ASYMHASH_AVX512 ExactSum exact_sum_avx512(const Scalar* row, const double* weights, std::size_t n_features) {
    return exact_sum<8>(row, weights, n_features);
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
