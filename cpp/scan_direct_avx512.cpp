// One query over codes as they lie, item by item: each byte is used once, so what counts is to read on without a pause.
// Sums across a register are cheaper here than transposing: 2, 6 and 14 shuffles for eight items of 2, 4 and more words;
// a transposed block also stops the reading for as long as it is scanned.
#include "scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include "cpu.hpp"

namespace asymhash {

namespace {

constexpr std::size_t VECTOR = 8;  // items whose distances fill a register
constexpr std::size_t N_VECTORS = STRIP / VECTOR;

// Bytes to prefetch ahead. The machine's own prefetcher reaches 16 to 30 GB/s here, this 40 to 46, which is all there is
// (Zen 5, 320 MB of codes; 1 KB ahead 25, 2 KB 30, 4 KB 38, 8 KB 41).
constexpr std::size_t AHEAD = 8192;

inline void prefetch(const std::uint64_t* words) {
    _mm_prefetch(reinterpret_cast<const char*>(words) + AHEAD, _MM_HINT_T0);
}

// Adds words 0 + 1, 2 + 3, ... of both registers; results of a and b take turns.
ASYMHASH_AVX512 inline __m512i add_pairs(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// Adds neighbouring 128-bit lanes of both registers; first those of a, then those of b.
ASYMHASH_AVX512 inline __m512i add_lanes(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

// The query as it meets eight words of items, and what order the distances come out in.
template <std::size_t N_WORDS>
struct Query {
    __m512i low, high;  // words 0 to 7, 8 to 15
    __mmask8 low_mask, high_mask;
    std::size_t n_words;

    ASYMHASH_AVX512 Query(const std::uint64_t* words, std::size_t n) : n_words(n) {
        if constexpr (N_WORDS == 1) {
            low = _mm512_set1_epi64(static_cast<long long>(words[0]));
        } else if constexpr (N_WORDS == 2) {
            low = _mm512_broadcast_i64x2(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
        } else if constexpr (N_WORDS == 4) {
            low = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
        } else {
            low_mask = static_cast<__mmask8>(n >= 8 ? 0xff : (1u << n) - 1u);
            high_mask = static_cast<__mmask8>(n > 8 ? (1u << (n - 8)) - 1u : 0u);
            low = _mm512_maskz_loadu_epi64(low_mask, words);
            high = _mm512_maskz_loadu_epi64(high_mask, words + 8);
        }
    }

    ASYMHASH_AVX512 inline __m512i bits(const std::uint64_t* words) const {
        prefetch(words);
        return _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_loadu_si512(words), low));
    }

    // One item of a length that fills no register.
    ASYMHASH_AVX512 inline __m512i bits_of_item(const std::uint64_t* item) const {
        prefetch(item);
        __m512i sum = _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_maskz_loadu_epi64(low_mask, item), low));
        if (high_mask != 0) {
            prefetch(item + 8);
            const __m512i words = _mm512_maskz_loadu_epi64(high_mask, item + 8);
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(words, high)));
        }
        return sum;
    }

    ASYMHASH_AVX512 inline __m512i distances_of_eight(const std::uint64_t* items) const {
        if constexpr (N_WORDS == 1) {
            return bits(items);
        } else if constexpr (N_WORDS == 2) {
            return add_pairs(bits(items), bits(items + 8));
        } else if constexpr (N_WORDS == 4) {
            return add_lanes(add_pairs(bits(items), bits(items + 8)), add_pairs(bits(items + 16), bits(items + 24)));
        } else {
            __m512i pairs[4];
#pragma GCC unroll 4
            for (std::size_t i = 0; i < 4; ++i) {
                const std::uint64_t* item = items + 2 * i * n_words;
                pairs[i] = add_pairs(bits_of_item(item), bits_of_item(item + n_words));
            }
            return add_lanes(add_lanes(pairs[0], pairs[1]), add_lanes(pairs[2], pairs[3]));
        }
    }

    // Where the distance of item i stands in what distances_of_eight returns.
    ASYMHASH_AVX512 static inline __m512i places() {
        if constexpr (N_WORDS == 2) return _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
        if constexpr (N_WORDS == 4) return _mm512_setr_epi64(0, 2, 1, 3, 4, 6, 5, 7);
        return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    }
};

// The rare case: something in this strip is near enough.
template <std::size_t N_WORDS>
ASYMHASH_AVX512 __attribute__((noinline)) void harvest(const std::uint64_t* strip, std::size_t n_words,
                                                       std::uint64_t first, Collector& collector) {
    const Query<N_WORDS> query(collector.query(), n_words);
    const __m512i threshold = _mm512_set1_epi64(static_cast<long long>(collector.threshold()));
    const __m512i iota = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    Key* const begin = collector.end();
    Key* end = begin;
    for (std::size_t i = 0; i < STRIP; i += VECTOR) {
        const __m512i distance =
            _mm512_permutexvar_epi64(query.places(), query.distances_of_eight(strip + i * n_words));
        const __m512i id = _mm512_add_epi64(iota, _mm512_set1_epi64(static_cast<long long>(first + i)));
        const __mmask8 near = _mm512_cmplt_epu64_mask(distance, threshold);
        const __m512i key = _mm512_or_si512(_mm512_slli_epi64(distance, DISTANCE_SHIFT), id);
        _mm512_storeu_si512(end, _mm512_maskz_compress_epi64(near, key));
        end += __builtin_popcount(near);
    }
    collector.settle(static_cast<std::size_t>(end - begin));
}

template <std::size_t N_WORDS>
ASYMHASH_AVX512 void scan(const Codes& strips, std::uint64_t first, Collector& collector) {
    const std::size_t n_words = N_WORDS > 0 ? N_WORDS : strips.n_words;
    const Query<N_WORDS> query(collector.query(), n_words);
    __m512i threshold = _mm512_set1_epi64(static_cast<long long>(collector.threshold()));
    for (std::size_t start = 0; start < strips.n_items; start += STRIP) {
        const std::uint64_t* strip = strips.words + start * n_words;
        __m512i least = query.distances_of_eight(strip);
#pragma GCC unroll 8
        for (std::size_t v = 1; v < N_VECTORS; ++v) {
            least = _mm512_min_epu64(least, query.distances_of_eight(strip + v * VECTOR * n_words));
        }
        if (__builtin_expect(_mm512_cmplt_epu64_mask(least, threshold) != 0, 0)) {
            harvest<N_WORDS>(strip, n_words, first + start, collector);
            threshold = _mm512_set1_epi64(static_cast<long long>(collector.threshold()));
        }
    }
}

}  // namespace

void scan_directly_avx512(const Codes& strips, std::uint64_t first, Collector& collector) {
    switch (strips.n_words) {
        case 1: return scan<1>(strips, first, collector);
        case 2: return scan<2>(strips, first, collector);
        case 4: return scan<4>(strips, first, collector);
        default: return scan<0>(strips, first, collector);
    }
}

}  // namespace asymhash

#endif
