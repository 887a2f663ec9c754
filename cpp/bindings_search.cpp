// Kernels of the search, for Python.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "search.hpp"

namespace nb = nanobind;

namespace asymhash {

// Under names of their own, since the kernels they call have the names that Python knows.
namespace {

using Filter = std::optional<Vector<const std::uint64_t>>;

Search search_of(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                           const Filter& allowed, std::size_t n_threads) {
    const Search search{codes_of(queries), codes_of(items), allowed ? allowed->data() : nullptr, n_threads};
    insist_on_words(search.queries, search.items);
    insist(search.items.n_items < MAX_ITEMS, "there must be fewer than 2^48 items");
    insist(!allowed || allowed->shape(0) == (search.items.n_items + 63) / 64, "allowed must have a bit for every item");
    return search;
}

void count(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                     const Filter& allowed, std::size_t n_threads, const Matrix<std::int64_t>& out) {
    const Search search = search_of(queries, items, allowed, n_threads);
    insist(out.shape(0) == search.queries.n_items && out.shape(1) == 64 * search.items.n_words + 1,
           "out must be (queries, 64 words + 1)");
    std::int64_t* counts = out.data();
    nb::gil_scoped_release released;
    distance_counts(search, counts);
}

void nearest(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                   const Filter& allowed, std::size_t n_threads, const Matrix<std::uint16_t>& distances,
                   const Matrix<std::int64_t>& ids) {
    const Search search = search_of(queries, items, allowed, n_threads);
    const std::size_t n_queries = search.queries.n_items, k = ids.shape(1);
    insist(ids.shape(0) == n_queries && distances.shape(0) == n_queries && distances.shape(1) == k,
           "distances and ids must be (queries, k)");
    insist(k >= 1 && k <= search.items.n_items, "k must be from 1 to the number of items");
    std::uint16_t* distances_out = distances.data();
    std::int64_t* ids_out = ids.data();
    nb::gil_scoped_release released;
    nearest_items(search, k, distances_out, ids_out);
}

// An array on memory that `owner` keeps alive.
template <typename Scalar>
nb::object array_of(std::vector<Scalar>& values, const nb::capsule& owner) {
    return nb::cast(nb::ndarray<nb::numpy, Scalar, nb::ndim<1>>(values.data(), {values.size()}, owner));
}

nb::tuple within(const Matrix<const std::uint64_t>& queries, const Matrix<const std::uint64_t>& items,
                       const Filter& allowed, std::size_t n_threads, std::size_t radius) {
    const Search search = search_of(queries, items, allowed, n_threads);
    const std::size_t largest = std::min(radius, 64 * search.items.n_words);
    auto matches = std::make_unique<Matches>();
    {
        nb::gil_scoped_release released;
        *matches = items_within(search, largest);
    }
    Matches* kept = matches.get();
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Matches*>(pointer); });
    matches.release();
    return nb::make_tuple(array_of(kept->offsets, owner), array_of(kept->distances, owner),
                          array_of(kept->ids, owner));
}

}  // namespace

void bind_search(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("distance_counts", &count, exact("queries"), exact("items"), exact("allowed").none(), nb::arg("n_threads"),
          exact("out"));
    m.def("nearest_items", &nearest, exact("queries"), exact("items"), exact("allowed").none(), nb::arg("n_threads"),
          exact("distances"), exact("ids"));
    m.def("items_within", &within, exact("queries"), exact("items"), exact("allowed").none(), nb::arg("n_threads"),
          nb::arg("radius"));
}

}  // namespace asymhash
