// What encoding does with vectors in the dtype in which they come: rows to a panel of float32, and sums in float64.
#pragma once

#include "encode.hpp"

namespace asymhash {

constexpr std::size_t PANEL = 48;  // rows converted at a time; with 64 of their features 12 KiB

// Feature f of row r lies at (f / CHAIN * PANEL + r) * CHAIN + f % CHAIN: distances that compilers know, and a chain of
// all rows side by side in the first cache.
inline std::size_t panel_size(std::size_t n_features) {
    return (n_features + CHAIN - 1) / CHAIN * PANEL * CHAIN;
}

struct ExactSum {
    double value;
    double size;  // sum of absolute terms: what rounding errors are measured by
};

template <typename Scalar>
struct RowKernels {
    // norms: (n_rows), each within a hundredth of the true one, or infinite.
    void (*widen)(const Scalar* rows, std::size_t n_rows, std::size_t n_features, float* panel, float* norms);
    ExactSum (*exact_sum)(const Scalar* row, const double* weights, std::size_t n_features);
};

// Those of the level in use.
template <typename Scalar>
RowKernels<Scalar> row_kernels();

}  // namespace asymhash
