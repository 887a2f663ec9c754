// Where a search for many items may begin: a threshold guessed from a sample.
#pragma once

#include <cstddef>
#include <vector>

#include "plan.hpp"
#include "search.hpp"

namespace asymhash {

// For every query of the part, a distance below which at least k of its allowed items very likely lie; one more than
// the longest distance where that is unknown or not worth asking. The caller looks whether it came true.
std::vector<std::size_t> guess_thresholds(const Search& search, const Part& part, std::size_t k);

}  // namespace asymhash
