#include "gradients.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bits.hpp"
#include "cpu.hpp"
#include "threads.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

#define ASYMHASH_INLINE __attribute__((always_inline)) inline

typedef float Floats __attribute__((vector_size(64), aligned(4)));
typedef std::int32_t Ints __attribute__((vector_size(64), aligned(4)));

constexpr std::size_t LANES = 16;
// Queries that share the signs of a block of items, once they are unpacked; the unpacking then costs each pair little.
constexpr std::size_t GROUP = 32;
// Signs of a block as floats: 64 KiB, a share of the second-level cache.
constexpr std::size_t BLOCK_SIGNS = 16384;
constexpr std::size_t MOST_ITEMS = 256, FEWEST_ITEMS = 16;
// Queries times registers of bits that are summed side by side: eight sums hide the latency of a multiply-add.
constexpr std::size_t SUMS = 8, MOST_REGISTERS = 2;

// The part of a problem that one thread does: queries first..first+size-1 and all items.
struct Group {
    const Codes& queries;
    const Codes& items;
    const Positives& positives;
    std::size_t n_bits;
    const float* dissimilar;
    const float* similar;
    std::size_t first;
    std::size_t size;
    float* out;
};

// row[j] = table[distance of the query and item j].
struct LookUp {
    template <typename Count>
    ASYMHASH_INLINE static void each(const Codes& items, const std::uint64_t* query, const float* table, float* row,
                                     const Count& count) {
        const std::size_t n_words = items.n_words;
        for (std::size_t j = 0; j < items.n_items; ++j) {
            std::uint64_t distance = 0;
            for (std::size_t w = 0; w < n_words; ++w) distance += count(items.words[j * n_words + w] ^ query[w]);
            row[j] = table[distance];
        }
    }
};

struct ByShifts : LookUp {
    ASYMHASH_INLINE static std::size_t distance(const std::uint64_t* a, const std::uint64_t* b, std::size_t n_words) {
        std::uint64_t sum = 0;
        for (std::size_t w = 0; w < n_words; ++w) sum += count_bits(a[w] ^ b[w]);
        return sum;
    }
    ASYMHASH_INLINE void operator()(const Codes& items, const std::uint64_t* query, const float* table, float* row) const {
        each(items, query, table, row, count_bits);
    }
};

#if defined(__x86_64__)
// With one word the table is in registers: 64 entries in four, and the last where all bits differ.
struct ByPermutation : LookUp {
    ByPermutation(const float* table, std::size_t n_bits) {
        float entries[80] = {};
        std::copy_n(table, std::min<std::size_t>(n_bits, 64) + 1, entries);
        std::copy_n(entries, 65, entries_);
    }

    ASYMHASH_AVX512 static std::size_t distance(const std::uint64_t* a, const std::uint64_t* b, std::size_t n_words) {
        std::size_t sum = 0;
        for (std::size_t w = 0; w < n_words; ++w) sum += static_cast<std::size_t>(__builtin_popcountll(a[w] ^ b[w]));
        return sum;
    }

    ASYMHASH_AVX512 void operator()(const Codes& items, const std::uint64_t* query, const float* table,
                                    float* row) const {
        if (items.n_words > 1) {
            return each(items, query, table, row, [](std::uint64_t word) {
                return static_cast<std::uint64_t>(__builtin_popcountll(word));
            });
        }
        const __m512 first = _mm512_loadu_ps(entries_), second = _mm512_loadu_ps(entries_ + 16);
        const __m512 third = _mm512_loadu_ps(entries_ + 32), fourth = _mm512_loadu_ps(entries_ + 48);
        const __m512 last = _mm512_set1_ps(entries_[64]);
        const __m512i code = _mm512_set1_epi64(static_cast<long long>(query[0]));
        for (std::size_t j = 0; j < items.n_items; j += LANES) {
            const std::size_t left = items.n_items - j;
            const auto low = static_cast<__mmask8>(left >= 8 ? 0xffu : (1u << left) - 1);
            const auto high = static_cast<__mmask8>(left >= 16 ? 0xffu : left <= 8 ? 0u : (1u << (left - 8)) - 1);
            const __m512i a = _mm512_maskz_loadu_epi64(low, items.words + j);
            const __m512i b = _mm512_maskz_loadu_epi64(high, items.words + j + 8);
            const __m256i a_counts = _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_xor_si512(a, code)));
            const __m256i b_counts = _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_xor_si512(b, code)));
            const __m512i distance = _mm512_inserti64x4(_mm512_castsi256_si512(a_counts), b_counts, 1);
            const __m512 near = _mm512_permutex2var_ps(first, distance, second);
            const __m512 far = _mm512_permutex2var_ps(third, distance, fourth);
            __m512 gains = _mm512_mask_mov_ps(near, _mm512_test_epi32_mask(distance, _mm512_set1_epi32(32)), far);
            gains = _mm512_mask_mov_ps(gains, _mm512_test_epi32_mask(distance, _mm512_set1_epi32(64)), last);
            _mm512_storeu_ps(row + j, gains);  // up to 15 beyond the items, inside the row of MOST_ITEMS
        }
    }

   private:
    float entries_[65];
};
#endif

ASYMHASH_INLINE Floats& lanes(float* at) { return *reinterpret_cast<Floats*>(at); }
ASYMHASH_INLINE const Floats& lanes(const float* at) { return *reinterpret_cast<const Floats*>(at); }

// Signs of one item as floats, `width` of them; those at n_bits and beyond come to nothing, as nobody reads their sums.
ASYMHASH_INLINE void unpack(const std::uint64_t* code, std::size_t width, float* signs) {
    const Ints places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (std::size_t bit = 0; bit < width; bit += LANES) {
        const auto bits = static_cast<std::int32_t>(code[bit / 64] >> (bit % 64) & 0xffffu);
        lanes(signs + bit) = __builtin_convertvector((((Ints{} + bits) >> places & 1) << 1) - 1, Floats);
    }
}

// sums[q][bit] += gains[q][item] * signs[item][bit] for all queries of the group and N registers of bits.
template <std::size_t N>
ASYMHASH_INLINE void add_products(const float* gains, const float* signs, std::size_t n_items, std::size_t n_queries,
                                  std::size_t width, float* sums) {
    constexpr std::size_t QUERIES = SUMS / N;
    for (std::size_t first = 0; first < n_queries; first += QUERIES) {
        const float* rows = gains + first * MOST_ITEMS;
        float* at = sums + first * width;
        Floats held[QUERIES][N];
#pragma GCC unroll 8
        for (std::size_t q = 0; q < QUERIES; ++q) {
#pragma GCC unroll 2
            for (std::size_t r = 0; r < N; ++r) held[q][r] = lanes(at + q * width + r * LANES);
        }
        for (std::size_t j = 0; j < n_items; ++j) {
            Floats v[N];
#pragma GCC unroll 2
            for (std::size_t r = 0; r < N; ++r) v[r] = lanes(signs + j * width + r * LANES);
#pragma GCC unroll 8
            for (std::size_t q = 0; q < QUERIES; ++q) {
                const float gain = rows[q * MOST_ITEMS + j];
#pragma GCC unroll 2
                for (std::size_t r = 0; r < N; ++r) held[q][r] += v[r] * gain;
            }
        }
#pragma GCC unroll 8
        for (std::size_t q = 0; q < QUERIES; ++q) {
#pragma GCC unroll 2
            for (std::size_t r = 0; r < N; ++r) lanes(at + q * width + r * LANES) = held[q][r];
        }
    }
}

template <typename Table>
ASYMHASH_INLINE void add_group(const Group& group, const Table& look_up) {
    const std::size_t n_words = group.items.n_words, width = (group.n_bits + LANES - 1) / LANES * LANES;
    const std::size_t most = std::clamp(BLOCK_SIGNS / width, FEWEST_ITEMS, MOST_ITEMS);
    std::vector<float> signs(most * width), gains(GROUP * MOST_ITEMS, 0.0f), sums(GROUP * width, 0.0f);
    std::vector<std::int64_t> next(group.positives.indptr + group.first,
                                   group.positives.indptr + group.first + group.size);
    for (std::size_t first = 0; first < group.items.n_items; first += most) {
        const std::size_t n = std::min(most, group.items.n_items - first);
        const Codes block{group.items.words + first * n_words, n, n_words};
        for (std::size_t j = 0; j < n; ++j) unpack(block.words + j * n_words, width, signs.data() + j * width);
        for (std::size_t q = 0; q < group.size; ++q) {
            const std::size_t i = group.first + q;
            const std::uint64_t* query = group.queries.words + i * n_words;
            float* row = gains.data() + q * MOST_ITEMS;
            look_up(block, query, group.dissimilar, row);
            const std::int64_t end = group.positives.indptr[i + 1];
            const auto last = static_cast<std::int64_t>(first + n);
            for (std::int64_t& p = next[q]; p < end && group.positives.indices[p] < last; ++p) {
                if (group.positives.indices[p] < static_cast<std::int64_t>(first)) continue;  // not in order: left out
                const std::size_t j = static_cast<std::size_t>(group.positives.indices[p]) - first;
                row[j] = group.similar[look_up.distance(block.words + j * n_words, query, n_words)];
            }
        }
        // Rows beyond the last query of a short group hold zeros.
        std::size_t bit = 0;
        for (; bit + MOST_REGISTERS * LANES <= width; bit += MOST_REGISTERS * LANES) {
            add_products<MOST_REGISTERS>(gains.data(), signs.data() + bit, n, group.size, width, sums.data() + bit);
        }
        for (; bit < width; bit += LANES) {
            add_products<1>(gains.data(), signs.data() + bit, n, group.size, width, sums.data() + bit);
        }
    }
    for (std::size_t q = 0; q < group.size; ++q) {
        std::copy_n(sums.data() + q * width, group.n_bits, group.out + (group.first + q) * group.n_bits);
    }
}

void add_group_portable(const Group& group) { add_group(group, ByShifts()); }
#if defined(__x86_64__)
ASYMHASH_AVX2 void add_group_avx2(const Group& group) { add_group(group, ByShifts()); }
ASYMHASH_AVX512 void add_group_avx512(const Group& group) {
    add_group(group, ByPermutation(group.dissimilar, group.n_bits));
}
#endif

void add_at_level(const Group& group) {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return add_group_avx512(group);
    if (current_level() == Level::avx2) return add_group_avx2(group);
#endif
    add_group_portable(group);
}

}  // namespace

void code_gradients(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                    const float* dissimilar, const float* similar, float* out, std::size_t n_threads) {
    const std::size_t n_groups = (queries.n_items + GROUP - 1) / GROUP;
    const std::size_t work = queries.n_items * items.n_items * (1 + n_bits / LANES);
    parallel_for(n_groups, useful_threads(n_threads, work), [&](std::size_t g) {
        const std::size_t first = g * GROUP, size = std::min(GROUP, queries.n_items - first);
        add_at_level({queries, items, positives, n_bits, dissimilar, similar, first, size, out});
    });
}

}  // namespace asymhash
