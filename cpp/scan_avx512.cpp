// The scan with AVX-512: several queries stay in registers while a strip of 64 items passes by, three instructions for
// each word of eight items and each query (xor, count bits, and add or minimum).
#include "scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include "cpu.hpp"

namespace asymhash {

namespace {

constexpr std::size_t VECTOR = 8;  // items in a register
constexpr std::size_t N_VECTORS = STRIP / VECTOR;

ASYMHASH_AVX512 inline __m512i broadcast(std::uint64_t word) {
    return _mm512_set1_epi64(static_cast<long long>(word));
}

// The rare case: something in this strip is near enough. Computes its distances once more and appends.
ASYMHASH_AVX512 __attribute__((noinline)) void harvest(const Block& block, std::size_t start, Collector& collector) {
    const __m512i threshold = broadcast(collector.threshold());
    const std::uint64_t* query = collector.query();
    const std::size_t left = block.n_items - start;
    const std::uint64_t valid = left < STRIP ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
    __m512i id = _mm512_add_epi64(broadcast(block.first + start), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    Key* const begin = collector.end();
    Key* end = begin;
    for (std::size_t i = 0; i < STRIP; i += VECTOR) {
        __m512i distance = _mm512_setzero_si512();
        for (std::size_t w = 0; w < block.n_words; ++w) {
            const __m512i words = _mm512_loadu_si512(block.words + w * block.stride + start + i);
            const __m512i different = _mm512_xor_si512(words, broadcast(query[w]));
            distance = _mm512_add_epi64(distance, _mm512_popcnt_epi64(different));
        }
        if (block.ids != nullptr) id = _mm512_loadu_si512(block.ids + start + i);
        const __mmask8 allowed = static_cast<__mmask8>(valid >> i);
        const __mmask8 near = _mm512_mask_cmplt_epu64_mask(allowed, distance, threshold);
        // Into a register, then stored whole: a compressing store is microcode on Zen 4 and 5.
        const __m512i key = _mm512_or_si512(_mm512_slli_epi64(distance, DISTANCE_SHIFT), id);
        _mm512_storeu_si512(end, _mm512_maskz_compress_epi64(near, key));
        end += __builtin_popcount(near);
        id = _mm512_add_epi64(id, broadcast(VECTOR));
    }
    collector.settle(static_cast<std::size_t>(end - begin));
}

template <std::size_t N_QUERIES>
struct Group {
    Collector* collectors;
    __m512i thresholds[N_QUERIES];

    ASYMHASH_AVX512 explicit Group(Collector* c) : collectors(c) {
#pragma GCC unroll 8
        for (std::size_t q = 0; q < N_QUERIES; ++q) thresholds[q] = broadcast(c[q].threshold());
    }

    bool wants_nothing() const {
        std::uint64_t any = 0;
        for (std::size_t q = 0; q < N_QUERIES; ++q) any |= collectors[q].threshold();
        return any == 0;
    }

    // One branch for all queries and all 64 items: the masks of the queries' minima, joined.
    ASYMHASH_AVX512 inline void look(const __m512i (&least)[N_QUERIES], const Block& block, std::size_t start) {
        __mmask8 near[N_QUERIES];
        unsigned any = 0;
#pragma GCC unroll 8
        for (std::size_t q = 0; q < N_QUERIES; ++q) {
            near[q] = _mm512_cmplt_epu64_mask(least[q], thresholds[q]);
            any |= near[q];
        }
        if (__builtin_expect(any == 0, 1)) return;
        // Which queries these are is a loop over bits: one branch to mispredict instead of one for each query.
        unsigned wanting = 0;
#pragma GCC unroll 8
        for (std::size_t q = 0; q < N_QUERIES; ++q) wanting |= static_cast<unsigned>(near[q] != 0) << q;
        for (; wanting != 0; wanting &= wanting - 1) {
            const unsigned q = static_cast<unsigned>(__builtin_ctz(wanting));
            harvest(block, start, collectors[q]);
            thresholds[q] = broadcast(collectors[q].threshold());
        }
    }
};

// Codes of up to four words: the queries' words are in registers too.
template <std::size_t N_WORDS, std::size_t N_QUERIES>
ASYMHASH_AVX512 void scan_short(const Block& block, Collector* collectors) {
    Group<N_QUERIES> group(collectors);
    if (group.wants_nothing()) return;
    __m512i queries[N_QUERIES][N_WORDS];
#pragma GCC unroll 8
    for (std::size_t q = 0; q < N_QUERIES; ++q) {
#pragma GCC unroll 4
        for (std::size_t w = 0; w < N_WORDS; ++w) queries[q][w] = broadcast(collectors[q].query()[w]);
    }
    for (std::size_t start = 0; start < block.n_items; start += STRIP) {
        __m512i least[N_QUERIES];
#pragma GCC unroll 8
        for (std::size_t v = 0; v < N_VECTORS; ++v) {
            __m512i words[N_WORDS];
#pragma GCC unroll 4
            for (std::size_t w = 0; w < N_WORDS; ++w) {
                words[w] = _mm512_loadu_si512(block.words + w * block.stride + start + v * VECTOR);
            }
#pragma GCC unroll 8
            for (std::size_t q = 0; q < N_QUERIES; ++q) {
                __m512i sum = _mm512_popcnt_epi64(_mm512_xor_si512(words[0], queries[q][0]));
#pragma GCC unroll 4
                for (std::size_t w = 1; w < N_WORDS; ++w) {
                    const __m512i different = _mm512_xor_si512(words[w], queries[q][w]);
                    sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(different));
                }
                least[q] = v == 0 ? sum : _mm512_min_epu64(least[q], sum);
            }
        }
        group.look(least, block, start);
    }
}

// Longer codes: the distances of the strip grow in registers, word by word.
template <std::size_t N_QUERIES>
ASYMHASH_AVX512 void scan_long(const Block& block, Collector* collectors) {
    Group<N_QUERIES> group(collectors);
    if (group.wants_nothing()) return;
    for (std::size_t start = 0; start < block.n_items; start += STRIP) {
        __m512i sums[N_QUERIES][N_VECTORS];
#pragma GCC unroll 4
        for (std::size_t q = 0; q < N_QUERIES; ++q) {
#pragma GCC unroll 8
            for (std::size_t v = 0; v < N_VECTORS; ++v) sums[q][v] = _mm512_setzero_si512();
        }
        for (std::size_t w = 0; w < block.n_words; ++w) {
            __m512i words[N_VECTORS];
#pragma GCC unroll 8
            for (std::size_t v = 0; v < N_VECTORS; ++v) {
                words[v] = _mm512_loadu_si512(block.words + w * block.stride + start + v * VECTOR);
            }
#pragma GCC unroll 4
            for (std::size_t q = 0; q < N_QUERIES; ++q) {
                const __m512i query = broadcast(collectors[q].query()[w]);
#pragma GCC unroll 8
                for (std::size_t v = 0; v < N_VECTORS; ++v) {
                    const __m512i different = _mm512_xor_si512(words[v], query);
                    sums[q][v] = _mm512_add_epi64(sums[q][v], _mm512_popcnt_epi64(different));
                }
            }
        }
        __m512i least[N_QUERIES];
#pragma GCC unroll 4
        for (std::size_t q = 0; q < N_QUERIES; ++q) {
            least[q] = sums[q][0];
#pragma GCC unroll 8
            for (std::size_t v = 1; v < N_VECTORS; ++v) least[q] = _mm512_min_epu64(least[q], sums[q][v]);
        }
        group.look(least, block, start);
    }
}

template <std::size_t N_WORDS, std::size_t N_QUERIES>
void scan_groups(const Block& block, Collector* collectors, std::size_t n) {
    for (; n >= N_QUERIES; n -= N_QUERIES, collectors += N_QUERIES) {
        if constexpr (N_WORDS == 0) {
            scan_long<N_QUERIES>(block, collectors);
        } else {
            scan_short<N_WORDS, N_QUERIES>(block, collectors);
        }
    }
    if constexpr (N_QUERIES > 1) scan_groups<N_WORDS, N_QUERIES / 2>(block, collectors, n);
}

}  // namespace

void scan_avx512(const Block& block, Collector* collectors, std::size_t n) {
    switch (block.n_words) {
        case 1: return scan_groups<1, 8>(block, collectors, n);
        case 2: return scan_groups<2, 4>(block, collectors, n);
        case 3: return scan_groups<3, 4>(block, collectors, n);
        case 4: return scan_groups<4, 4>(block, collectors, n);
        default: return scan_groups<0, 2>(block, collectors, n);
    }
}

}  // namespace asymhash

#endif
