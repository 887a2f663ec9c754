#include "blocks.hpp"

#include <algorithm>

#include "cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

// 16 KB of words: half of the smallest first-level cache in use, so that the codes which are being transposed and
// the candidates have room beside them.
constexpr std::size_t BLOCK_WORDS = 2048;

// A filter that leaves fewer items of a strip than this is followed bit by bit: cheaper than to transpose all 64,
// and the cache lines of the others are not read at all.
constexpr int FEW = 16;

void transpose_portable(const std::uint64_t* items, std::size_t n_items, std::size_t n_words,
                        std::uint64_t* planes, std::size_t stride) {
    for (std::size_t i = 0; i < n_items; ++i) {
        for (std::size_t w = 0; w < n_words; ++w) planes[w * stride + i] = items[i * n_words + w];
    }
}

#if defined(__x86_64__)

// Two words an item: eight items are two vectors, and one permutation of both gives each plane.
ASYMHASH_AVX512 void transpose_two(const std::uint64_t* items, std::uint64_t* planes, std::size_t stride) {
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i a = _mm512_loadu_si512(items), b = _mm512_loadu_si512(items + 8);
    _mm512_storeu_si512(planes, _mm512_permutex2var_epi64(a, even, b));
    _mm512_storeu_si512(planes + stride, _mm512_permutex2var_epi64(a, odd, b));
}

// Four words an item: first two planes of four items in one vector, then the halves together.
ASYMHASH_AVX512 void transpose_four(const std::uint64_t* items, std::uint64_t* planes, std::size_t stride) {
    const __m512i low = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
    const __m512i high = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_loadu_si512(items), b = _mm512_loadu_si512(items + 8);
    const __m512i c = _mm512_loadu_si512(items + 16), d = _mm512_loadu_si512(items + 24);
    const __m512i ab01 = _mm512_permutex2var_epi64(a, low, b), ab23 = _mm512_permutex2var_epi64(a, high, b);
    const __m512i cd01 = _mm512_permutex2var_epi64(c, low, d), cd23 = _mm512_permutex2var_epi64(c, high, d);
    _mm512_storeu_si512(planes, _mm512_shuffle_i64x2(ab01, cd01, 0x44));
    _mm512_storeu_si512(planes + stride, _mm512_shuffle_i64x2(ab01, cd01, 0xee));
    _mm512_storeu_si512(planes + 2 * stride, _mm512_shuffle_i64x2(ab23, cd23, 0x44));
    _mm512_storeu_si512(planes + 3 * stride, _mm512_shuffle_i64x2(ab23, cd23, 0xee));
}

// Up to eight words of eight items, by the usual three rounds of swaps: lanes of 64, 128 and 256 bits.
ASYMHASH_AVX512 void transpose_eight(const std::uint64_t* items, std::size_t n_words, std::size_t n_here,
                            std::uint64_t* planes, std::size_t stride) {
    const __mmask8 mask = static_cast<__mmask8>((1u << n_here) - 1u);
    __m512i r[8], s[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = _mm512_maskz_loadu_epi64(mask, items + i * n_words);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);  // words 0 2 4 6 of items i, i + 1
        s[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; ++odd) {
            r[i + odd] = _mm512_shuffle_i64x2(s[i + odd], s[i + odd + 2], 0x88);      // words 0 4 (1 5) of four items
            r[i + odd + 2] = _mm512_shuffle_i64x2(s[i + odd], s[i + odd + 2], 0xdd);  // words 2 6 (3 7)
        }
    }
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
        s[w] = _mm512_shuffle_i64x2(r[w], r[w + 4], 0x88);
        s[w + 4] = _mm512_shuffle_i64x2(r[w], r[w + 4], 0xdd);
    }
#pragma GCC unroll 8
    for (std::size_t w = 0; w < 8; ++w) {
        if (w < n_here) _mm512_storeu_si512(planes + w * stride, s[w]);
    }
}

ASYMHASH_AVX512 void transpose_avx512(const std::uint64_t* items, std::size_t n_items, std::size_t n_words,
                             std::uint64_t* planes, std::size_t stride) {
    const std::size_t whole = n_items - n_items % 8;
    for (std::size_t i = 0; i < whole; i += 8) {
        if (n_words == 2) {
            transpose_two(items + 2 * i, planes + i, stride);
        } else if (n_words == 4) {
            transpose_four(items + 4 * i, planes + i, stride);
        } else {
            for (std::size_t w = 0; w < n_words; w += 8) {
                transpose_eight(items + i * n_words + w, n_words, std::min<std::size_t>(8, n_words - w),
                                planes + w * stride + i, stride);
            }
        }
    }
    transpose_portable(items + whole * n_words, n_items - whole, n_words, planes + whole, stride);
}

// The byte of the filter for eight items is the mask of their vector. Compressed in a register and stored whole:
// a compressing store is microcode on Zen 4 and 5. What it writes too much, the next store overwrites.
ASYMHASH_AVX512 void compress_avx512(const std::uint64_t* strip, std::size_t n_words, std::uint64_t mask,
                            std::uint64_t first, std::uint64_t* planes, std::size_t stride, std::uint64_t* ids) {
    const __m512i iota = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    std::size_t at = 0;
    for (std::size_t i = 0; i < STRIP; i += 8) {
        const __mmask8 byte = static_cast<__mmask8>(mask >> i);
        const __m512i id = _mm512_add_epi64(iota, _mm512_set1_epi64(static_cast<long long>(first + i)));
        _mm512_storeu_si512(ids + at, _mm512_maskz_compress_epi64(byte, id));
        for (std::size_t w = 0; w < n_words; ++w) {
            const __m512i words = _mm512_loadu_si512(strip + w * STRIP + i);
            _mm512_storeu_si512(planes + w * stride + at, _mm512_maskz_compress_epi64(byte, words));
        }
        at += static_cast<std::size_t>(__builtin_popcount(byte));
    }
}

#endif

}  // namespace

BlockReader::BlockReader(const Codes& items, Bitmap allowed, std::size_t first, std::size_t last)
    : items_(items), allowed_(allowed), position_(first), last_(last) {
    capacity_ = BLOCK_WORDS / items.n_words / STRIP * STRIP;
    // One strip more than is used: stores of whole vectors may write past the last item.
    if (allowed != nullptr || items.n_words > 1) planes_.resize((capacity_ + STRIP) * items.n_words);
    if (items.n_words == 1) planes_.resize(std::max(planes_.size(), STRIP));
    if (allowed != nullptr) ids_.resize(capacity_ + STRIP);
    if (allowed != nullptr) strip_.resize(STRIP * items.n_words);
    transpose_ = transpose_portable;
    compress_ = nullptr;
#if defined(__x86_64__)
    if (current_level() == Level::avx512) {
        transpose_ = transpose_avx512;
        compress_ = compress_avx512;
    }
#endif
}

bool BlockReader::next(Block& block) { return allowed_ == nullptr ? next_whole(block) : next_filtered(block); }

bool BlockReader::next_whole(Block& block) {
    if (position_ >= last_) return false;
    std::size_t size = std::min(capacity_, last_ - position_);
    const std::uint64_t* source = items_.words + position_ * items_.n_words;
    if (items_.n_words > 1) {
        const std::size_t stride = capacity_ + STRIP;
        transpose_(source, size, items_.n_words, planes_.data(), stride);
        block = Block{planes_.data(), stride, items_.n_words, size, nullptr, position_};
    } else if (size >= STRIP) {
        size -= size % STRIP;  // one word: the items are their own plane
        block = Block{source, size, 1, size, nullptr, position_};
    } else {
        std::copy(source, source + size, planes_.data());  // so that a whole strip may be read
        block = Block{planes_.data(), STRIP, 1, size, nullptr, position_};
    }
    position_ += size;
    return true;
}

bool BlockReader::next_filtered(Block& block) {
    std::size_t n_taken = 0;
    for (; position_ < last_ && n_taken + STRIP <= capacity_; position_ += STRIP) {
        std::uint64_t mask = allowed_[position_ / STRIP];
        if (last_ - position_ < STRIP) mask &= (std::uint64_t{1} << (last_ - position_)) - 1;
        if (mask != 0) n_taken += take_strip(mask, n_taken);
    }
    block = Block{planes_.data(), capacity_ + STRIP, items_.n_words, n_taken, ids_.data(), 0};
    return n_taken > 0;
}

// Appends the allowed items of the strip at position_; returns how many they are.
std::size_t BlockReader::take_strip(std::uint64_t mask, std::size_t n_taken) {
    const std::size_t n_words = items_.n_words, stride = capacity_ + STRIP;
    const std::uint64_t* source = items_.words + position_ * n_words;
    const int n_allowed = __builtin_popcountll(mask);
    if (compress_ != nullptr && n_allowed >= FEW && last_ - position_ >= STRIP) {
        const std::uint64_t* strip = source;
        if (n_words > 1) {
            transpose_(source, STRIP, n_words, strip_.data(), STRIP);
            strip = strip_.data();
        }
        compress_(strip, n_words, mask, position_, planes_.data() + n_taken, stride, ids_.data() + n_taken);
    } else {
        for (std::size_t at = n_taken; mask != 0; mask &= mask - 1, ++at) {
            const std::size_t i = static_cast<std::size_t>(__builtin_ctzll(mask));
            ids_[at] = position_ + i;
            for (std::size_t w = 0; w < n_words; ++w) planes_[w * stride + at] = source[i * n_words + w];
        }
    }
    return static_cast<std::size_t>(n_allowed);
}

}  // namespace asymhash
