// What the files that know Python share. Arguments are checked in asymhash/kernels, where errors can name them; here
// only dtype, rank and contiguity are insisted on, and shapes that could read or write out of bounds.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "hamming.hpp"

namespace asymhash {

template <typename Scalar>
using Matrix = nanobind::ndarray<Scalar, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
template <typename Scalar>
using Vector = nanobind::ndarray<Scalar, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline Codes codes_of(const Matrix<const std::uint64_t>& words) {
    return {words.data(), words.shape(0), words.shape(1)};
}

inline void insist(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

inline void insist_on_words(const Codes& queries, const Codes& items) {
    insist(queries.n_words == items.n_words, "queries and items must have the same number of words");
    insist(items.n_words >= 1 && items.n_words <= MAX_WORDS, "codes must have 1 to 16 words");
}

void bind_encode(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_tiles(nanobind::module_& m);
void bind_training(nanobind::module_& m);

}  // namespace asymhash
