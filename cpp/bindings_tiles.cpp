// Kernels on one tile of a matrix product, for Python.
#include <cstdint>

#include "bindings.hpp"
#include "squares.hpp"
#include "tiles.hpp"

namespace nb = nanobind;

namespace asymhash {

// Under names of their own, since the kernels they call have the names that Python knows.
namespace {

template <typename Scalar>
std::size_t select(const Matrix<const Scalar>& values, const Vector<const Scalar>& low,
                           const Vector<const Scalar>& high, const Vector<std::int64_t>& below,
                           const Vector<std::int64_t>& inside, const Vector<std::int32_t>& columns,
                           const Vector<Scalar>& found) {
    const std::size_t n_rows = values.shape(0);
    const Tile<Scalar> tile{values.data(), n_rows, values.shape(1)};
    insist(values.shape(1) <= INT32_MAX, "values must have at most 2^31 - 1 columns");
    insist(low.size() == n_rows && high.size() == n_rows && below.size() == n_rows && inside.size() == n_rows,
           "low, high, below and inside must have one entry for each row");
    insist(columns.size() >= values.size() && found.size() >= values.size(),
           "columns and found must have room for all values");
    const Bounds<Scalar> bounds{low.data(), high.data()};
    nb::gil_scoped_release released;
    return select_between(tile, bounds, below.data(), inside.data(), columns.data(), found.data());
}

void append(const Vector<const std::int32_t>& items, const Vector<const std::int64_t>& counts,
                 const Vector<std::int64_t>& cursors, const Vector<std::int32_t>& out) {
    insist(counts.size() == cursors.size(), "counts and cursors must have the same length");
    const std::int64_t room = static_cast<std::int64_t>(out.size());
    std::int64_t left = static_cast<std::int64_t>(items.size());
    for (std::size_t r = 0; r < counts.size(); ++r) {
        const std::int64_t count = counts.data()[r], cursor = cursors.data()[r];
        insist(count >= 0 && count <= left, "counts must sum to the number of items");
        insist(count == 0 || (cursor >= 0 && cursor <= room - count), "a run must end inside out");
        left -= count;
    }
    insist(left == 0, "counts must sum to the number of items");
    nb::gil_scoped_release released;
    append_runs(items.data(), counts.data(), counts.size(), cursors.data(), out.data());
}

template <typename Scalar>
void squares(const Matrix<const Scalar>& vectors, const Vector<Scalar>& out) {
    insist(out.size() == vectors.shape(0), "out must have one entry for each row");
    nb::gil_scoped_release released;
    row_squares(vectors.data(), vectors.shape(0), vectors.shape(1), out.data());
}

// One name in Python for both scalars: nanobind takes the overload whose dtype fits.
template <typename Scalar>
void define_for(nb::module_& m) {
    m.def("select_between", &select<Scalar>, nb::arg("values").noconvert(), nb::arg("low").noconvert(),
          nb::arg("high").noconvert(), nb::arg("below").noconvert(), nb::arg("inside").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("found").noconvert());
    m.def("row_squares", &squares<Scalar>, nb::arg("vectors").noconvert(), nb::arg("out").noconvert());
}

}  // namespace

void bind_tiles(nb::module_& m) {
    define_for<float>(m);
    define_for<double>(m);
    m.def("append_runs", &append, nb::arg("items").noconvert(), nb::arg("counts").noconvert(),
          nb::arg("cursors").noconvert(), nb::arg("out").noconvert());
}

}  // namespace asymhash
