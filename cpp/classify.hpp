// One row of a linear map: weighted logistic regression by stochastic gradient descent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asymhash {

constexpr std::size_t FEATURE_STEP = 16;  // rows of features are padded with zeros to a multiple of this
constexpr std::size_t BATCH = 32;

struct Features {
    const float* values;  // row i begins at values + i * stride, on any address
    std::size_t n_items;
    std::size_t stride;  // a multiple of FEATURE_STEP
};

struct Descent {
    std::size_t n_epochs;
    double first_step, last_step;  // falling geometrically over the batches
    std::uint64_t seed;            // of the order in which items are seen
};

// Moves w (stride numbers) so as to raise sum_i gain[i] * sign(<w, x_i>): targets sign(gain), weights |gain|.
void logistic_descent(const Features& features, const float* gain, const Descent& descent, float* w);

}  // namespace asymhash
