// Counting bits without an instruction for it.
#pragma once

#include <cstdint>

namespace asymhash {

// Shifts and adds only: no multiplication and no table, so that compilers vectorise it at any base level.
inline std::uint64_t count_bits(std::uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    x += x >> 8;
    x += x >> 16;
    x += x >> 32;
    return x & 0x7f;
}

}  // namespace asymhash
