// The kernel that encodes, for Python.
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "encode.hpp"

namespace nb = nanobind;

namespace asymhash {

namespace {

using Open = std::vector<std::int64_t>;
using Groups = nb::ndarray<const float, nb::shape<-1, -1, GROUP>, nb::c_contig, nb::device::cpu>;

// Kept is what NumPy keeps (float16 as its bits), Scalar what the kernel reads.
template <typename Kept, typename Scalar = Kept>
nb::object encode(const Matrix<const Kept>& vectors, const Groups& weights, const Vector<const float>& threshold,
                  const Vector<const float>& slope, const Vector<const float>& floor,
                  const Matrix<const double>& exact_weights, const Vector<const double>& exact_offset,
                  double exact_slope, const Matrix<std::uint64_t>& words, std::size_t n_threads) {
    static_assert(sizeof(Kept) == sizeof(Scalar));
    const SignMap map{exact_weights.shape(0), exact_weights.shape(1), weights.data(),
                      threshold.data(),       slope.data(),           floor.data(),
                      exact_weights.data(),   exact_offset.data(),    exact_slope};
    const std::size_t n_columns = map.n_groups() * GROUP;
    insist(vectors.shape(1) == map.n_features, "vectors must have a column for each feature");
    insist(weights.shape(0) == map.n_groups() && weights.shape(1) == map.n_features, "weights must fit exact_weights");
    insist(threshold.size() == n_columns && slope.size() == n_columns && floor.size() == n_columns,
           "threshold, slope and floor must have an entry for each bit of the groups");
    insist(exact_offset.size() == map.n_bits, "exact_offset must have an entry for each bit");
    insist(words.shape(0) == vectors.shape(0) && words.shape(1) == map.n_words(), "words must be (rows, bits / 64)");
    auto open = std::make_unique<Open>();
    {
        nb::gil_scoped_release released;
        const Scalar* rows = reinterpret_cast<const Scalar*>(vectors.data());
        *open = encode_signs(rows, vectors.shape(0), map, words.data(), n_threads);
    }
    Open* kept = open.get();
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Open*>(pointer); });
    open.release();
    return nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// One name in Python for all scalars: nanobind takes the overload whose dtype fits.
template <typename Kept, typename Scalar = Kept>
void define_for(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("encode_signs", &encode<Kept, Scalar>, exact("vectors"), exact("weights"), exact("threshold"), exact("slope"),
          exact("floor"), exact("exact_weights"), exact("exact_offset"), nb::arg("exact_slope"), exact("words"),
          nb::arg("n_threads"));
}

}  // namespace

void bind_encode(nb::module_& m) {
    define_for<float>(m);
    define_for<double>(m);
    define_for<std::uint8_t>(m);
    define_for<std::int8_t>(m);
    define_for<std::uint16_t, Half>(m);
    m.attr("encode_chain") = CHAIN;
    m.attr("encode_group") = GROUP;
}

}  // namespace asymhash
