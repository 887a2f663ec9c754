// Kernels of the training, for Python.
#include <algorithm>

#include "bindings.hpp"
#include "code_bits.hpp"
#include "classify.hpp"
#include "gradients.hpp"
#include "products.hpp"
#include "walsh.hpp"

namespace nb = nanobind;

namespace asymhash {

namespace {

using Words = Matrix<const std::uint64_t>;

void insist_on_product(const Codes& queries, const Codes& items, std::size_t n_bits, std::size_t n_entries,
                       std::size_t n_weights, std::size_t n_out) {
    insist_on_words(queries, items);
    insist(n_bits <= 64 * items.n_words, "n_bits must fit the words");
    insist(n_entries == n_bits + 1, "table must have n_bits + 1 entries");
    insist(n_weights == items.n_items, "x must have one number for each item");
    insist(n_out == queries.n_items, "out must have one number for each query");
}

void insist_on_starts(const std::int64_t* indptr, std::size_t n_rows, std::size_t n_indices) {
    insist(indptr[0] == 0 && indptr[n_rows] == static_cast<std::int64_t>(n_indices), "indptr must span the indices");
    for (std::size_t i = 0; i < n_rows; ++i) insist(indptr[i] <= indptr[i + 1], "indptr must not fall");
}

// Reading every index once more would cost as much as the product itself: `Similarity`, which is frozen, has checked
// that they are inside 0..n_items-1.
Positives positives_of(const Vector<const std::int64_t>& indptr, const Vector<const std::int32_t>& indices,
                       const Codes& queries) {
    insist(indptr.shape(0) == queries.n_items + 1, "indptr must have one entry more than the queries");
    insist_on_starts(indptr.data(), queries.n_items, indices.shape(0));
    return {indptr.data(), indices.data()};
}

// Beyond it the 32-bit lanes of a block's sums could overflow.
void insist_on_weights(const Vector<const std::int16_t>& x) {
    std::int16_t least = 0, most = 0;
    for (std::size_t i = 0; i < x.shape(0); ++i) {
        least = std::min(least, x.data()[i]);
        most = std::max(most, x.data()[i]);
    }
    insist(-MAX_WEIGHT <= least && most <= MAX_WEIGHT, "x must be from -511 to 511");
}

void lookup(const Words& queries, const Words& items, std::size_t n_bits, const Vector<const std::int16_t>& table,
            const Vector<const std::int16_t>& x, const Vector<std::int64_t>& out, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_product(q, d, n_bits, table.shape(0), x.shape(0), out.shape(0));
    insist_on_weights(x);
    nb::gil_scoped_release released;
    lookup_product(q, d, n_bits, table.data(), x.data(), out.data(), n_threads);
}

void masked(const Words& queries, const Words& items, const Matrix<const std::uint8_t>& mask, std::size_t n_bits,
            const Vector<const std::int16_t>& dissimilar, const Vector<const std::int16_t>& similar,
            const Vector<const std::int16_t>& x, const Vector<std::int64_t>& out, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_product(q, d, n_bits, dissimilar.shape(0), x.shape(0), out.shape(0));
    insist(similar.shape(0) == n_bits + 1, "table must have n_bits + 1 entries");
    insist_on_weights(x);
    const PairMask pairs{mask.data(), mask.shape(1)};
    insist(mask.shape(0) == q.n_items && pairs.stride % 4 == 0 && 8 * pairs.stride >= d.n_items,
           "mask must have a row of whole 32-bit words for each query");
    nb::gil_scoped_release released;
    masked_product(q, d, pairs, n_bits, dissimilar.data(), similar.data(), x.data(), out.data(), n_threads);
}

void write_mask(const Vector<const std::int64_t>& indptr, const Vector<const std::int32_t>& indices,
                const Matrix<std::uint8_t>& mask) {
    const std::size_t n_rows = mask.shape(0);
    insist(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than the mask has rows");
    insist_on_starts(indptr.data(), n_rows, indices.shape(0));
    nb::gil_scoped_release released;
    mask_pairs(indptr.data(), indices.data(), n_rows, mask.shape(1), mask.data());
}

void histogram(const Words& queries, const Words& items, std::size_t n_bits, const Vector<std::int64_t>& counts,
               std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(n_bits <= 64 * d.n_words && counts.shape(0) == n_bits + 1, "counts must have n_bits + 1 entries");
    nb::gil_scoped_release released;
    pair_histogram(q, d, n_bits, counts.data(), n_threads);
}

template <typename Entry, typename Weight, typename Sum>
void positives(const Words& queries, const Words& items, const Vector<const std::int64_t>& indptr,
               const Vector<const std::int32_t>& indices, std::size_t n_bits, const Vector<const Entry>& table,
               const Vector<const Weight>& x, const Vector<Sum>& out, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_product(q, d, n_bits, table.shape(0), x.shape(0), out.shape(0));
    const Positives pairs = positives_of(indptr, indices, q);
    nb::gil_scoped_release released;
    positives_product(q, d, pairs, n_bits, table.data(), x.data(), out.data(), n_threads);
}

void similar_histogram(const Words& queries, const Words& items, const Vector<const std::int64_t>& indptr,
                       const Vector<const std::int32_t>& indices, std::size_t n_bits,
                       const Vector<std::int64_t>& counts, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(counts.shape(0) == n_bits + 1, "counts must have n_bits + 1 entries");
    const Positives pairs = positives_of(indptr, indices, q);
    nb::gil_scoped_release released;
    positives_histogram(q, d, pairs, n_bits, counts.data(), n_threads);
}

void walsh(const Words& queries, const Words& items, std::size_t n_bits, const Vector<const double>& spectrum,
           const Vector<const double>& x, const Vector<double>& out, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_product(q, d, n_bits, spectrum.shape(0), x.shape(0), out.shape(0));
    insist(n_bits <= MAX_WALSH_BITS, "n_bits is too large for a transform");
    nb::gil_scoped_release released;
    walsh_product(q, d, n_bits, spectrum.data(), x.data(), out.data(), n_threads);
}

void correlation(const Words& queries, const Words& items, std::size_t n_bits, const Vector<std::int64_t>& weights,
                 std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_words(q, d);
    insist(n_bits <= MAX_WALSH_BITS, "n_bits is too large for a transform");
    insist(weights.shape(0) == n_bits + 1, "weights must have n_bits + 1 entries");
    nb::gil_scoped_release released;
    walsh_correlation(q, d, n_bits, weights.data(), n_threads);
}

void descent(const Matrix<const float>& features, const Vector<const float>& gain, const Vector<float>& w,
             std::size_t n_epochs, double first_step, double last_step, std::uint64_t seed) {
    const Features rows{features.data(), features.shape(0), features.shape(1)};
    insist(rows.stride % FEATURE_STEP == 0, "features must be padded to a multiple of 16");
    insist(gain.shape(0) == rows.n_items, "gain must have one number for each item");
    insist(w.shape(0) == rows.stride, "w must have one number for each feature");
    nb::gil_scoped_release released;
    logistic_descent(rows, gain.data(), {n_epochs, first_step, last_step, seed}, w.data());
}

void gradients(const Words& queries, const Words& items, const Vector<const std::int64_t>& indptr,
               const Vector<const std::int32_t>& indices, std::size_t n_bits, const Vector<const float>& dissimilar,
               const Vector<const float>& similar, const Matrix<float>& out, std::size_t n_threads) {
    const Codes q = codes_of(queries), d = codes_of(items);
    insist_on_product(q, d, n_bits, dissimilar.shape(0), d.n_items, out.shape(0));
    insist(similar.shape(0) == n_bits + 1, "table must have n_bits + 1 entries");
    insist(n_bits >= 1 && out.shape(1) == n_bits, "out must have one number for each bit, and there must be one");
    const Positives pairs = positives_of(indptr, indices, q);
    nb::gil_scoped_release released;
    code_gradients(q, d, pairs, n_bits, dissimilar.data(), similar.data(), out.data(), n_threads);
}

void write_bit(const Matrix<std::uint64_t>& words, std::size_t bit, const Vector<const std::int8_t>& signs) {
    insist(bit < 64 * words.shape(1), "bit must be inside the words");
    insist(signs.shape(0) == words.shape(0), "signs must have one number for each item");
    nb::gil_scoped_release released;
    set_bit(words.data(), words.shape(0), words.shape(1), bit, signs.data());
}

void take_bit(const Matrix<std::uint64_t>& words, std::size_t bit, std::size_t last) {
    insist(bit <= last && last < 64 * words.shape(1), "bits must be inside the words");
    nb::gil_scoped_release released;
    drop_bit(words.data(), words.shape(0), words.shape(1), bit, last);
}

}  // namespace

void bind_training(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("lookup_product", &lookup, exact("queries"), exact("items"), nb::arg("n_bits"), exact("table"), exact("x"),
          exact("out"), nb::arg("n_threads"));
    m.def("masked_product", &masked, exact("queries"), exact("items"), exact("mask"), nb::arg("n_bits"),
          exact("dissimilar"), exact("similar"), exact("x"), exact("out"), nb::arg("n_threads"));
    m.def("mask_pairs", &write_mask, exact("indptr"), exact("indices"), exact("mask"));
    m.def("pair_histogram", &histogram, exact("queries"), exact("items"), nb::arg("n_bits"), exact("counts"),
          nb::arg("n_threads"));
    m.def("positives_product", &positives<std::int64_t, std::int16_t, std::int64_t>, exact("queries"), exact("items"),
          exact("indptr"), exact("indices"), nb::arg("n_bits"), exact("table"), exact("x"), exact("out"),
          nb::arg("n_threads"));
    m.def("positives_product_real", &positives<double, double, double>, exact("queries"), exact("items"),
          exact("indptr"), exact("indices"), nb::arg("n_bits"), exact("table"), exact("x"), exact("out"),
          nb::arg("n_threads"));
    m.def("positives_histogram", &similar_histogram, exact("queries"), exact("items"), exact("indptr"),
          exact("indices"), nb::arg("n_bits"), exact("counts"), nb::arg("n_threads"));
    m.def("walsh_product", &walsh, exact("queries"), exact("items"), nb::arg("n_bits"), exact("spectrum"), exact("x"),
          exact("out"), nb::arg("n_threads"));
    m.def("walsh_correlation", &correlation, exact("queries"), exact("items"), nb::arg("n_bits"), exact("weights"),
          nb::arg("n_threads"));
    m.def("logistic_descent", &descent, exact("features"), exact("gain"), exact("w"), nb::arg("n_epochs"),
          nb::arg("first_step"), nb::arg("last_step"), nb::arg("seed"));
    m.def("code_gradients", &gradients, exact("queries"), exact("items"), exact("indptr"), exact("indices"),
          nb::arg("n_bits"), exact("dissimilar"), exact("similar"), exact("out"), nb::arg("n_threads"));
    m.def("set_bit", &write_bit, exact("words"), nb::arg("bit"), exact("signs"));
    m.def("drop_bit", &take_bit, exact("words"), nb::arg("bit"), nb::arg("last"));
}

}  // namespace asymhash
