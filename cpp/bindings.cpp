// The only file here that knows Python. Arguments are checked in asymhash/kernels/__init__.py, where the
// errors can name them; here only dtype, rank and contiguity are insisted on, and shapes that could
// read or write out of bounds.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "cpu.hpp"
#include "hamming.hpp"
#include "search.hpp"

namespace nb = nanobind;

namespace {

template <typename Scalar>
using Matrix = nb::ndarray<Scalar, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Scalar>
using Vector = nb::ndarray<Scalar, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Filter = std::optional<Vector<const std::uint64_t>>;

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

asymhash::Search search_of(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                           const Filter& allowed, std::size_t n_threads) {
    const asymhash::Search search{codes_of(queries), codes_of(items), allowed ? allowed->data() : nullptr, n_threads};
    insist_on_words(search.queries, search.items);
    insist(search.items.n_items < asymhash::MAX_ITEMS, "there must be fewer than 2^48 items");
    insist(!allowed || allowed->shape(0) == (search.items.n_items + 63) / 64, "allowed must have a bit for every item");
    return search;
}

void distance_counts(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                     const Filter& allowed, std::size_t n_threads, const Matrix<std::int64_t>& out) {
    const asymhash::Search search = search_of(queries, items, allowed, n_threads);
    insist(out.shape(0) == search.queries.n_items && out.shape(1) == 64 * search.items.n_words + 1,
           "out must be (queries, 64 words + 1)");
    std::int64_t* counts = out.data();
    nb::gil_scoped_release released;
    asymhash::distance_counts(search, counts);
}

void nearest_items(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                   const Filter& allowed, std::size_t n_threads, const Matrix<std::uint16_t>& distances,
                   const Matrix<std::int64_t>& ids) {
    const asymhash::Search search = search_of(queries, items, allowed, n_threads);
    const std::size_t n_queries = search.queries.n_items, k = ids.shape(1);
    insist(ids.shape(0) == n_queries && distances.shape(0) == n_queries && distances.shape(1) == k,
           "distances and ids must be (queries, k)");
    insist(k >= 1 && k <= search.items.n_items, "k must be from 1 to the number of items");
    std::uint16_t* distances_out = distances.data();
    std::int64_t* ids_out = ids.data();
    nb::gil_scoped_release released;
    asymhash::nearest_items(search, k, distances_out, ids_out);
}

// An array on memory that `owner` keeps alive.
template <typename Scalar>
nb::object array_of(std::vector<Scalar>& values, const nb::capsule& owner) {
    return nb::cast(nb::ndarray<nb::numpy, Scalar, nb::ndim<1>>(values.data(), {values.size()}, owner));
}

nb::tuple items_within(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                       const Filter& allowed, std::size_t n_threads, std::size_t radius) {
    const asymhash::Search search = search_of(queries, items, allowed, n_threads);
    const std::size_t largest = std::min(radius, 64 * search.items.n_words);
    auto matches = std::make_unique<asymhash::Matches>();
    {
        nb::gil_scoped_release released;
        *matches = asymhash::items_within(search, largest);
    }
    asymhash::Matches* kept = matches.get();
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<asymhash::Matches*>(pointer); });
    matches.release();
    return nb::make_tuple(array_of(kept->offsets, owner), array_of(kept->distances, owner),
                          array_of(kept->ids, owner));
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of asymhash; call them through asymhash.kernels.";
    m.def("hamming_distances", &hamming_distances, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("out").noconvert());
    m.def("distance_counts", &distance_counts, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("allowed").noconvert().none(), nb::arg("n_threads"), nb::arg("out").noconvert());
    m.def("nearest_items", &nearest_items, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("allowed").noconvert().none(), nb::arg("n_threads"), nb::arg("distances").noconvert(),
          nb::arg("ids").noconvert());
    m.def("items_within", &items_within, nb::arg("queries").noconvert(), nb::arg("items").noconvert(),
          nb::arg("allowed").noconvert().none(), nb::arg("n_threads"), nb::arg("radius"));
#if defined(ASYMHASH_SANITIZED)
    m.attr("sanitized") = true;
#else
    m.attr("sanitized") = false;
#endif
    m.def("levels", &asymhash::level_names);
    m.def("level", [] { return asymhash::level_name(asymhash::current_level()); });
    m.def("force_level", &asymhash::force_level, nb::arg("name"));
}
