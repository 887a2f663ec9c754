// The only file here that knows Python. Arguments are checked in asymhash/kernels/__init__.py, where the
// errors can name them; here only dtype, rank and contiguity are insisted on, and shapes that could
// read or write out of bounds.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "cpu.hpp"
#include "hamming.hpp"

namespace nb = nanobind;

namespace {

template <typename Scalar>
using Matrix = nb::ndarray<Scalar, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

asymhash::Codes codes_of(const Matrix<const std::uint64_t>& words) {
    return {words.data(), words.shape(0), words.shape(1)};
}

void insist(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

void insist_on_words(const asymhash::Codes& queries, const asymhash::Codes& items) {
    insist(queries.n_words == items.n_words, "queries and items must have the same number of words");
    insist(items.n_words >= 1 && items.n_words <= asymhash::MAX_WORDS, "codes must have 1 to 16 words");
}

void hamming_distances(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                       const Matrix<std::uint16_t>& out) {
    const asymhash::Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(out.shape(0) == q.n_items && out.shape(1) == d.n_items, "out must be (queries, items)");
    std::uint16_t* distances = out.data();
    nb::gil_scoped_release released;
    asymhash::hamming_distances(q, d, distances);
}

void distance_counts(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                     const Matrix<std::int64_t>& out) {
    const asymhash::Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(out.shape(0) == q.n_items && out.shape(1) == 64 * d.n_words + 1, "out must be (queries, 64 words + 1)");
    std::int64_t* counts = out.data();
    nb::gil_scoped_release released;
    asymhash::distance_counts(q, d, counts);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of asymhash; call them through asymhash.kernels.";
    m.def("hamming_distances", &hamming_distances, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("out").noconvert());
    m.def("distance_counts", &distance_counts, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("out").noconvert());
    m.def("levels", &asymhash::level_names);
    m.def("level", [] { return asymhash::level_name(asymhash::current_level()); });
    m.def("force_level", &asymhash::force_level, nb::arg("name"));
}
