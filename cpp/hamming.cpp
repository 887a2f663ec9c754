#include "hamming.hpp"

#include <algorithm>

#include "bits.hpp"
#include "cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

// Words outside, items inside: neighbouring items are what the compiler can take together.
void block_portable(const Planes& planes, const std::uint64_t* query, std::uint16_t* distances) {
    std::uint64_t sums[PLANE_ITEMS] = {};
    for (std::size_t w = 0; w < planes.n_words; ++w) {
        const std::uint64_t* plane = planes.words + w * planes.stride;
        for (std::size_t i = 0; i < planes.n_items; ++i) sums[i] += count_bits(plane[i] ^ query[w]);
    }
    for (std::size_t i = 0; i < planes.n_items; ++i) distances[i] = static_cast<std::uint16_t>(sums[i]);
}

#if defined(__x86_64__)

// Bits of four items by looking up both nibbles of every byte. A byte of the sum is at most 8 per word,
// so 16 words give 128 and never overflow it.
ASYMHASH_AVX2 inline __m256i four_items_avx2(const Planes& planes, const std::uint64_t* query,
                                                               std::size_t first) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low_nibble = _mm256_set1_epi8(0x0f);
    __m256i byte_sums = _mm256_setzero_si256();
    for (std::size_t w = 0; w < planes.n_words; ++w) {
        const std::uint64_t* plane = planes.words + w * planes.stride + first;
        const __m256i item = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(plane));
        const __m256i x = _mm256_xor_si256(item, _mm256_set1_epi64x(static_cast<long long>(query[w])));
        const __m256i low = _mm256_and_si256(x, low_nibble);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(x, 4), low_nibble);
        byte_sums = _mm256_add_epi8(byte_sums, _mm256_shuffle_epi8(table, low));
        byte_sums = _mm256_add_epi8(byte_sums, _mm256_shuffle_epi8(table, high));
    }
    return _mm256_sad_epu8(byte_sums, _mm256_setzero_si256());
}

ASYMHASH_AVX2 void block_avx2(const Planes& planes, const std::uint64_t* query,
                                                std::uint16_t* distances) {
    // The low halves of the four 64-bit sums, side by side.
    const __m256i low_halves = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    std::size_t i = 0;
    for (; i + 8 <= planes.n_items; i += 8) {
        const __m256i a = _mm256_permutevar8x32_epi32(four_items_avx2(planes, query, i), low_halves);
        const __m256i b = _mm256_permutevar8x32_epi32(four_items_avx2(planes, query, i + 4), low_halves);
        const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(distances + i), packed);
    }
    if (i < planes.n_items) {
        const Planes rest{planes.words + i, planes.stride, planes.n_words, planes.n_items - i};
        block_portable(rest, query, distances + i);
    }
}

ASYMHASH_AVX512 void block_avx512(const Planes& planes,
                                                                     const std::uint64_t* query,
                                                                     std::uint16_t* distances) {
    for (std::size_t i = 0; i < planes.n_items; i += 8) {
        const std::size_t left = std::min<std::size_t>(8, planes.n_items - i);
        const __mmask8 mask = static_cast<__mmask8>((1u << left) - 1u);
        __m512i sums = _mm512_setzero_si512();
        for (std::size_t w = 0; w < planes.n_words; ++w) {
            const __m512i item = _mm512_maskz_loadu_epi64(mask, planes.words + w * planes.stride + i);
            const __m512i x = _mm512_xor_si512(item, _mm512_set1_epi64(static_cast<long long>(query[w])));
            sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(x));
        }
        _mm512_mask_cvtepi64_storeu_epi16(distances + i, mask, sums);
    }
}

#endif

}  // namespace

BlockKernel block_kernel() {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return block_avx512;
    if (current_level() == Level::avx2) return block_avx2;
#endif
    return block_portable;
}

// Items are taken in blocks that stay in the first-level cache while every query passes over them.
void hamming_distances(const Codes& queries, const Codes& items, std::uint16_t* distances) {
    const BlockKernel kernel = block_kernel();
    const std::size_t n_words = items.n_words;
    std::uint64_t buffer[PLANE_ITEMS * MAX_WORDS];
    for (std::size_t first = 0; first < items.n_items; first += PLANE_ITEMS) {
        const std::size_t size = std::min(PLANE_ITEMS, items.n_items - first);
        Planes planes{items.words + first, size, 1, size};  // one word: the items are their own plane
        if (n_words > 1) {
            for (std::size_t i = 0; i < size; ++i) {
                for (std::size_t w = 0; w < n_words; ++w) {
                    buffer[w * size + i] = items.words[(first + i) * n_words + w];
                }
            }
            planes = Planes{buffer, size, n_words, size};
        }
        for (std::size_t q = 0; q < queries.n_items; ++q) {
            kernel(planes, queries.words + q * n_words, distances + q * items.n_items + first);
        }
    }
}

}  // namespace asymhash
