// The module `_native`: kernels of Hamming distances and the switch of levels here, the others in bindings_*.cpp.
#include "bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpu.hpp"

namespace nb = nanobind;

using asymhash::codes_of;
using asymhash::insist;
using asymhash::insist_on_words;
using asymhash::Matrix;

namespace {

void hamming_distances(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                       const Matrix<std::uint16_t>& out) {
    const asymhash::Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(out.shape(0) == q.n_items && out.shape(1) == d.n_items, "out must be (queries, items)");
    std::uint16_t* distances = out.data();
    nb::gil_scoped_release released;
    asymhash::hamming_distances(q, d, distances);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of asymhash; call them through asymhash.kernels.";
    m.def("hamming_distances", &hamming_distances, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("out").noconvert());
    asymhash::bind_encode(m);
    asymhash::bind_search(m);
    asymhash::bind_tiles(m);
    asymhash::bind_training(m);
#if defined(ASYMHASH_SANITIZED)
    m.attr("sanitized") = true;
#else
    m.attr("sanitized") = false;
#endif
    m.def("levels", &asymhash::level_names);
    m.def("level", [] { return asymhash::level_name(asymhash::current_level()); });
    m.def("force_level", &asymhash::force_level, nb::arg("name"));
}
