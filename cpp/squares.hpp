// Sums of squares of rows.
#pragma once

#include <cstddef>

namespace asymhash {

// Sum of squares of every row, in 16 partial sums in a fixed order: the same bits at every instruction level.
void row_squares(const float* vectors, std::size_t n_rows, std::size_t n_columns, float* squares);
void row_squares(const double* vectors, std::size_t n_rows, std::size_t n_columns, double* squares);

}  // namespace asymhash
