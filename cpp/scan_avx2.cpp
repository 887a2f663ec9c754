// The scan with AVX2: bits are counted by looking up both nibbles of every byte.
#include "scan.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>

#include "cpu.hpp"

namespace asymhash {

namespace {

constexpr std::size_t VECTOR = 4;  // items in a register
constexpr std::size_t STEP = 16;   // items before one branch

ASYMHASH_AVX2 inline __m256i broadcast(std::uint64_t word) {
    return _mm256_set1_epi64x(static_cast<long long>(word));
}

// A byte of the sum is at most 8 per word, so 16 words give 128 and never overflow it.
ASYMHASH_AVX2 inline __m256i distances_of_four(const std::uint64_t* words, std::size_t stride, std::size_t n_words,
                                               const std::uint64_t* query) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low_nibble = _mm256_set1_epi8(0x0f);
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t w = 0; w < n_words; ++w) {
        const __m256i item = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + w * stride));
        const __m256i x = _mm256_xor_si256(item, broadcast(query[w]));
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(x, 4), low_nibble);
        sums = _mm256_add_epi8(sums, _mm256_shuffle_epi8(table, _mm256_and_si256(x, low_nibble)));
        sums = _mm256_add_epi8(sums, _mm256_shuffle_epi8(table, high));
    }
    return _mm256_sad_epu8(sums, _mm256_setzero_si256());
}

// The rare case: something in this step is near enough.
ASYMHASH_AVX2 __attribute__((noinline)) void harvest(const Block& block, std::size_t start,
                                                     const __m256i (&distances)[STEP / VECTOR],
                                                     Collector& collector) {
    const std::size_t n = std::min(STEP, block.n_items - start);
    const std::uint64_t threshold = collector.threshold();
    alignas(32) std::uint64_t values[STEP];
    for (std::size_t v = 0; v < STEP / VECTOR; ++v) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(values + v * VECTOR), distances[v]);
    }
    Key* const begin = collector.end();
    Key* end = begin;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t id = block.ids != nullptr ? block.ids[start + i] : block.first + start + i;
        *end = (values[i] << DISTANCE_SHIFT) | id;
        end += values[i] < threshold;
    }
    collector.settle(static_cast<std::size_t>(end - begin));
}

// N_WORDS is 0 where only the block knows it.
template <std::size_t N_WORDS>
ASYMHASH_AVX2 void scan_one(const Block& block, Collector& collector) {
    const std::size_t n_words = N_WORDS > 0 ? N_WORDS : block.n_words;
    const std::uint64_t* query = collector.query();
    __m256i threshold = broadcast(collector.threshold());
    for (std::size_t start = 0; start < block.n_items; start += STEP) {
        __m256i distances[STEP / VECTOR];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < STEP / VECTOR; ++v) {
            distances[v] = distances_of_four(block.words + start + v * VECTOR, block.stride, n_words, query);
        }
        // Distances fill only the low 16 bits of their lanes, so a minimum of 16-bit lanes will do.
        const __m256i least = _mm256_min_epu16(_mm256_min_epu16(distances[0], distances[1]),
                                               _mm256_min_epu16(distances[2], distances[3]));
        const __m256i near = _mm256_cmpgt_epi64(threshold, least);
        if (__builtin_expect(_mm256_testz_si256(near, near) == 0, 0)) {
            harvest(block, start, distances, collector);
            threshold = broadcast(collector.threshold());
        }
    }
}

}  // namespace

void scan_avx2(const Block& block, Collector* collectors, std::size_t n) {
    for (std::size_t q = 0; q < n; ++q) {
        if (collectors[q].threshold() == 0) continue;
        switch (block.n_words) {
            case 1: scan_one<1>(block, collectors[q]); break;
            case 2: scan_one<2>(block, collectors[q]); break;
            case 4: scan_one<4>(block, collectors[q]); break;
            default: scan_one<0>(block, collectors[q]);
        }
    }
}

}  // namespace asymhash

#endif
