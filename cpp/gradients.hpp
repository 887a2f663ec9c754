// What every bit of a query's code can gain, all bits at once: products with M for all columns of V together.
#pragma once

#include <cstddef>

#include "products.hpp"

namespace asymhash {

// out[i * n_bits + t] = sum over items j of G_ij v_jt, where G_ij is the entry at distance(i, j) of the pair's own table
// and v_jt = +1 or -1 is bit t of item j. Similar items must increase within a query. Sums in single precision, in the order of the items: the same for any number
// of threads, not at every level.
void code_gradients(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                    const float* dissimilar, const float* similar, float* out, std::size_t n_threads);

}  // namespace asymhash
