// Codes of one block of items, cut into planes of 16 bits.
//
// Distances that end in a 16-bit table look-up are best counted in 16-bit lanes: plane p holds bits 16p..16p+15 of
// every item of the block, so one register holds the same bits of 32 items (AVX-512) or 16 (AVX2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hamming.hpp"

namespace asymhash {

constexpr std::size_t PLANE_BITS = 16;
constexpr std::size_t MAX_PLANES = MAX_WORDS * 64 / PLANE_BITS;
// Items of a block. 2048 items of one plane and their weights are 8 KiB, so that four planes stay in a first-level
// cache of 32 KiB while every query passes over them.
constexpr std::size_t PLANE_BLOCK = 2048;

inline std::size_t n_planes_of(std::size_t n_bits) { return (n_bits + PLANE_BITS - 1) / PLANE_BITS; }

// Plane p of one code; bits beyond n_bits are left out, so that no distance can exceed n_bits.
inline std::uint16_t plane_of(const std::uint64_t* code, std::size_t p, std::size_t n_bits) {
    const std::uint64_t bits = code[p / 4] >> (PLANE_BITS * (p % 4));
    const std::size_t left = n_bits - PLANE_BITS * p;
    const std::uint64_t mask = left >= PLANE_BITS ? 0xffffu : (std::uint64_t{1} << left) - 1;
    return static_cast<std::uint16_t>(bits & mask);
}

// planes[p * PLANE_BLOCK + i] for items first..first+size-1; the rest of the block, up to a multiple of 32, is zero.
inline void fill_planes(const Codes& items, std::size_t first, std::size_t size, std::size_t n_bits,
                        std::uint16_t* planes) {
    const std::size_t padded = (size + 31) / 32 * 32;
    for (std::size_t p = 0; p < n_planes_of(n_bits); ++p) {
        std::uint16_t* plane = planes + p * PLANE_BLOCK;
        for (std::size_t i = 0; i < size; ++i) plane[i] = plane_of(items.words + (first + i) * items.n_words, p, n_bits);
        for (std::size_t i = size; i < padded; ++i) plane[i] = 0;
    }
}

}  // namespace asymhash
