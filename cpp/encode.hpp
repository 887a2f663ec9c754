// Vectors to codes by a linear threshold function, in one pass: what the rounding of float32 leaves open is looked at
// in float64, and what that leaves open too is named to the caller. No product is ever written to memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace asymhash {

constexpr std::size_t GROUP = 16;  // bits whose weights lie side by side: a register of AVX-512
constexpr std::size_t CHAIN = 64;  // terms added one after the other; their sums are added in turn

// Bits of a float16, which not every compiler has as a type.
struct Half {
    std::uint16_t bits;
};

// The map twice: in float32 with bounds on what a product errs, and in float64.
struct SignMap {
    std::size_t n_bits;
    std::size_t n_features;
    const float* weights;    // (groups, n_features, GROUP), bits beyond the last are zero
    const float* threshold;  // (groups * GROUP) each
    const float* slope;
    const float* floor;
    const double* exact_weights;  // (n_bits, n_features)
    const double* exact_offset;   // (n_bits)
    double exact_slope;           // times sum |weight * feature| + |offset|

    std::size_t n_groups() const { return (n_bits + GROUP - 1) / GROUP; }
    std::size_t n_words() const { return (n_bits + 63) / 64; }
};

// words: (n_rows, n_words), bit t of a row being set where its projection on bit t is at least zero; unused bits are
// zero. Returns the entries that stay open, as row * n_bits + bit, increasing. Results are the same for any n_threads.
template <typename Scalar>
std::vector<std::int64_t> encode_signs(const Scalar* rows, std::size_t n_rows, const SignMap& map,
                                       std::uint64_t* words, std::size_t n_threads);

}  // namespace asymhash
