#include "classify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu.hpp"

namespace asymhash {

namespace {

#define ASYMHASH_INLINE __attribute__((always_inline)) inline

typedef float Floats __attribute__((vector_size(64), aligned(4)));
typedef std::int32_t Ints __attribute__((vector_size(64), aligned(4)));

ASYMHASH_INLINE Floats& lanes(float* at) { return *reinterpret_cast<Floats*>(at); }
ASYMHASH_INLINE const Floats& lanes(const float* at) { return *reinterpret_cast<const Floats*>(at); }

ASYMHASH_INLINE float sum_of(const Floats& x) {
    float parts[16];
    std::memcpy(parts, &x, sizeof parts);
    for (std::size_t half = 8; half >= 1; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
    }
    return parts[0];
}

// 1 / (1 + exp(z)) in all lanes, to about 1e-7. exp is 2^n times a polynomial of what is left, |r| <= ln 2 / 2.
ASYMHASH_INLINE Floats pull_of(Floats z) {
    z = z > 80.0f ? Floats{} + 80.0f : z;
    z = z < -80.0f ? Floats{} - 80.0f : z;
    const Floats shifted = z * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: rounds to a whole number
    const Floats n = shifted - 12582912.0f;
    const Floats r = (z - n * 0.693359375f) + n * 2.12194440e-4f;
    Floats e = r * (1.0f / 720) + (1.0f / 120);
    e = e * r + (1.0f / 24);
    e = e * r + (1.0f / 6);
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
    Floats power;
    std::memcpy(&power, &exponent, sizeof power);
    return 1.0f / (1.0f + e * power);
}

// splitmix64 (Steele, Lea, Flood 2014): one number after the other from a seed.
class Numbers {
   public:
    explicit Numbers(std::uint64_t seed) : state_(seed) {}
    std::uint32_t below(std::uint32_t bound) {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        return static_cast<std::uint32_t>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(z)) * bound) >> 32);
    }

   private:
    std::uint64_t state_;
};

// Margins of the rows of a batch, four rows at a time so that their sums do not wait for each other.
ASYMHASH_INLINE void margins(const Features& features, const std::uint32_t* order, std::size_t size, const float* w,
                             float* margin) {
    for (std::size_t i = 0; i < size; i += 4) {
        const float* rows[4];
        for (std::size_t r = 0; r < 4; ++r) rows[r] = features.values + features.stride * order[std::min(i + r, size - 1)];
        Floats a{}, b{}, c{}, d{};
        for (std::size_t f = 0; f < features.stride; f += FEATURE_STEP) {
            const Floats weights = lanes(w + f);
            a += lanes(rows[0] + f) * weights;
            b += lanes(rows[1] + f) * weights;
            c += lanes(rows[2] + f) * weights;
            d += lanes(rows[3] + f) * weights;
        }
        margin[i] = sum_of(a);
        margin[i + 1] = sum_of(b);
        margin[i + 2] = sum_of(c);
        margin[i + 3] = sum_of(d);
    }
}

ASYMHASH_INLINE void add_rows(const Features& features, const std::uint32_t* order, std::size_t size,
                              const float* share, float* w) {
    std::size_t f = 0;
    for (; f + 4 * FEATURE_STEP <= features.stride; f += 4 * FEATURE_STEP) {
        Floats a = lanes(w + f), b = lanes(w + f + 16), c = lanes(w + f + 32), d = lanes(w + f + 48);
        for (std::size_t i = 0; i < size; ++i) {
            const float* row = features.values + features.stride * order[i] + f;
            a += lanes(row) * share[i];
            b += lanes(row + 16) * share[i];
            c += lanes(row + 32) * share[i];
            d += lanes(row + 48) * share[i];
        }
        lanes(w + f) = a;
        lanes(w + f + 16) = b;
        lanes(w + f + 32) = c;
        lanes(w + f + 48) = d;
    }
    for (; f < features.stride; f += FEATURE_STEP) {
        Floats a = lanes(w + f);
        for (std::size_t i = 0; i < size; ++i) a += lanes(features.values + features.stride * order[i] + f) * share[i];
        lanes(w + f) = a;
    }
}

ASYMHASH_INLINE void descend(const Features& features, const float* gain, const Descent& descent, float* w) {
    const std::size_t n = features.n_items;
    const std::size_t n_batches = (n + BATCH - 1) / BATCH;
    const std::size_t n_steps = descent.n_epochs * n_batches;
    const double factor =
        n_steps > 1 ? std::pow(descent.last_step / descent.first_step, 1.0 / static_cast<double>(n_steps - 1)) : 1.0;
    double step = descent.first_step / BATCH;
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    Numbers numbers(descent.seed);
    alignas(64) float margin[BATCH], share[BATCH], mine[BATCH];
    for (std::size_t epoch = 0; epoch < descent.n_epochs; ++epoch) {
        for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[numbers.below(static_cast<std::uint32_t>(i))]);
        for (std::size_t first = 0; first < n; first += BATCH, step *= factor) {
            const std::size_t size = std::min(BATCH, n - first);
            const std::uint32_t* items = order.data() + first;
            margins(features, items, size, w, margin);
            for (std::size_t i = 0; i < BATCH; ++i) {
                mine[i] = i < size ? gain[items[i]] : 0.0f;
                share[i] = i < size ? (mine[i] < 0.0f ? -margin[i] : margin[i]) : 0.0f;
            }
            for (std::size_t i = 0; i < BATCH; i += 16) {
                lanes(share + i) = pull_of(lanes(share + i)) * lanes(mine + i) * static_cast<float>(step);
            }
            add_rows(features, items, size, share, w);
        }
    }
}

void descend_portable(const Features& features, const float* gain, const Descent& descent, float* w) {
    descend(features, gain, descent, w);
}
#if defined(__x86_64__)
ASYMHASH_AVX2 void descend_avx2(const Features& features, const float* gain, const Descent& descent, float* w) {
    descend(features, gain, descent, w);
}
ASYMHASH_AVX512 void descend_avx512(const Features& features, const float* gain, const Descent& descent, float* w) {
    descend(features, gain, descent, w);
}
#endif

}  // namespace

void logistic_descent(const Features& features, const float* gain, const Descent& descent, float* w) {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return descend_avx512(features, gain, descent, w);
    if (current_level() == Level::avx2) return descend_avx2(features, gain, descent, w);
#endif
    descend_portable(features, gain, descent, w);
}

}  // namespace asymhash
