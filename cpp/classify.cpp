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

// Adds lanes i and i + half of a to the lower half of the lanes, those of b to the upper half; here half is 8, 4, 2, 1.
// Sixteen registers become one of their sums in 15 such steps, where one after the other each would wait for its own.
ASYMHASH_INLINE Floats fold8(const Floats& a, const Floats& b) {
    const Ints low = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + 8);
}
ASYMHASH_INLINE Floats fold4(const Floats& a, const Floats& b) {
    const Ints low = {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27};
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + 4);
}
ASYMHASH_INLINE Floats fold2(const Floats& a, const Floats& b) {
    const Ints low = {0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29};
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + 2);
}
ASYMHASH_INLINE Floats fold1(const Floats& a, const Floats& b) {
    const Ints low = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + 1);
}

// The sums over the lanes of 16 registers, in their order.
ASYMHASH_INLINE Floats sums_of(const Floats (&x)[16]) {
    Floats eights[8], fours[4], twos[2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) eights[i] = fold8(x[2 * i], x[2 * i + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) fours[i] = fold4(eights[2 * i], eights[2 * i + 1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) twos[i] = fold2(fours[2 * i], fours[2 * i + 1]);
    return fold1(twos[0], twos[1]);
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

// The orders in which items are seen: shuffled once, then read in every epoch from another place on and with another
// stride that has no divisor in common with their number. A shuffle for each epoch took half of the time at 10 features.
class Orders {
   public:
    Orders(std::size_t n_items, std::uint64_t seed) : shuffled_(n_items), numbers_(seed) {
        std::iota(shuffled_.begin(), shuffled_.end(), 0u);
        for (std::size_t i = n_items; i > 1; --i) std::swap(shuffled_[i - 1], shuffled_[below(i)]);
    }

    void next(std::vector<std::uint32_t>& order) {
        const std::size_t n = shuffled_.size();
        std::size_t stride = 1, place = 0;
        if (n > 2) {
            do stride = 1 + below(n - 1);
            while (std::gcd(stride, n) != 1);
            place = below(n);
        }
        for (std::uint32_t& item : order) {
            item = shuffled_[place];
            place += stride;
            place -= place >= n ? n : 0;
        }
    }

   private:
    std::uint32_t below(std::size_t bound) { return numbers_.below(static_cast<std::uint32_t>(bound)); }

    std::vector<std::uint32_t> shuffled_;
    Numbers numbers_;
};

// Margins of the rows of a batch, sixteen rows at a time so that their sums are made together.
ASYMHASH_INLINE void margins(const float* const* rows, std::size_t size, std::size_t stride, const float* w, float* margin) {
    for (std::size_t i = 0; i < size; i += 16) {
        Floats products[16];
        const Floats first = lanes(w);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < 16; ++r) products[r] = lanes(rows[i + r]) * first;
        for (std::size_t f = FEATURE_STEP; f < stride; f += FEATURE_STEP) {
            const Floats weights = lanes(w + f);
#pragma GCC unroll 16
            for (std::size_t r = 0; r < 16; ++r) products[r] += lanes(rows[i + r] + f) * weights;
        }
        lanes(margin + i) = sums_of(products);
    }
}

ASYMHASH_INLINE void add_rows(const float* const* rows, std::size_t size, std::size_t stride, const float* share, float* w) {
    std::size_t f = 0;
    for (; f + 4 * FEATURE_STEP <= stride; f += 4 * FEATURE_STEP) {
        Floats a = lanes(w + f), b = lanes(w + f + 16), c = lanes(w + f + 32), d = lanes(w + f + 48);
        for (std::size_t i = 0; i < size; ++i) {
            const float* row = rows[i] + f;
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
    for (; f < stride; f += FEATURE_STEP) {
        // Four sums in turn: one alone would wait for itself at every row.
        Floats sums[4] = {lanes(w + f), Floats{}, Floats{}, Floats{}};
        for (std::size_t i = 0; i < size; i += 4) {
#pragma GCC unroll 4
            for (std::size_t r = 0; r < 4; ++r) sums[r] += lanes(rows[i + r] + f) * share[i + r];
        }
        lanes(w + f) = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

ASYMHASH_INLINE void descend(const Features& features, const float* gain, const Descent& descent, float* w) {
    const std::size_t n = features.n_items, stride = features.stride;
    const std::size_t n_batches = (n + BATCH - 1) / BATCH;
    const std::size_t n_steps = descent.n_epochs * n_batches;
    const double factor =
        n_steps > 1 ? std::pow(descent.last_step / descent.first_step, 1.0 / static_cast<double>(n_steps - 1)) : 1.0;
    double step = descent.first_step / BATCH;
    Orders orders(n, descent.seed);
    // A short batch is filled up with its last item, and with gains of zero.
    std::vector<std::uint32_t> order(n);
    std::vector<float> gains_in_order(n_batches * BATCH, 0.0f);
    const float* rows[BATCH];
    alignas(64) float margin[BATCH] = {}, share[BATCH];
    for (std::size_t epoch = 0; epoch < descent.n_epochs; ++epoch) {
        orders.next(order);
        // All at once: a register that is loaded right after its numbers were stored one by one waits for them.
        for (std::size_t i = 0; i < n; ++i) gains_in_order[i] = gain[order[i]];
        for (std::size_t first = 0; first < n; first += BATCH, step *= factor) {
            const std::size_t size = std::min(BATCH, n - first);
            for (std::size_t i = 0; i < BATCH; ++i) {
                rows[i] = features.values + stride * order[first + std::min(i, size - 1)];
            }
            margins(rows, size, stride, w, margin);
            for (std::size_t i = 0; i < BATCH; i += 16) {
                const Floats gains = lanes(gains_in_order.data() + first + i), pushed = lanes(margin + i);
                const Floats pull = pull_of(gains < 0.0f ? -pushed : pushed);
                lanes(share + i) = gains == 0.0f ? Floats{} : pull * gains * static_cast<float>(step);
            }
            add_rows(rows, size, stride, share, w);
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
