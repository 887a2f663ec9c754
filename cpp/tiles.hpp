// Work on one tile of a matrix product while it is still in the cache: which entries lie between two bounds
// of their row, and how what was found in one tile after the other is put together row by row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asymhash {

template <typename Scalar>
struct Tile {
    const Scalar* values;
    std::size_t n_rows;
    std::size_t n_columns;
};

template <typename Scalar>
struct Bounds {
    const Scalar* low;   // one for each row
    const Scalar* high;
};

// For every row: below[r] counts entries < low[r], inside[r] those with low[r] <= entry <= high[r]. Columns and
// values of the latter are written one row after the other; both arrays must have room for the whole tile.
// Returns how many were written. An entry that is no number is neither below nor inside.
std::size_t select_between(const Tile<float>& tile, const Bounds<float>& bounds, std::int64_t* below,
                           std::int64_t* inside, std::int32_t* columns, float* values);
std::size_t select_between(const Tile<double>& tile, const Bounds<double>& bounds, std::int64_t* below,
                           std::int64_t* inside, std::int32_t* columns, double* values);

// Appends counts[r] of the items, which lie one row after the other, at out[cursors[r]], and moves the cursor on.
void append_runs(const std::int32_t* items, const std::int64_t* counts, std::size_t n_rows, std::int64_t* cursors,
                 std::int32_t* out);

}  // namespace asymhash
