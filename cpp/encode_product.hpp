// The float32 product of a panel of rows with a range of groups of weights, and the signs that are certain in spite of
// its rounding.
#pragma once

#include "encode.hpp"
#include "encode_rows.hpp"

namespace asymhash {

constexpr std::size_t RANGE_GROUPS = 4;  // at most: a word of codes
constexpr std::size_t RANGE_BITS = RANGE_GROUPS * GROUP;

struct Panel {
    const float* values;  // laid out as encode_rows.hpp says
    const float* norms;
    std::size_t n_rows;
};

struct GroupRange {
    std::size_t first;
    std::size_t size;
};

// The rows of the next panel, asked for while this one is multiplied: by itself the memory would idle then.
struct Ahead {
    const char* bytes;
    std::size_t n_bytes;
};

struct ProductKernels {
    // totals: (PANEL, RANGE_BITS), of which rows beyond those of the panel may be written too.
    void (*multiply)(const Panel& panel, const SignMap& map, const GroupRange& range, const Ahead& ahead,
                     float* totals);
    // set and open: (n_rows), a bit for each column of the range.
    void (*compare)(const float* totals, const Panel& panel, const SignMap& map, const GroupRange& range,
                    std::uint64_t* set, std::uint64_t* open);
};

// Those of the level in use.
ProductKernels product_kernels();

}  // namespace asymhash
