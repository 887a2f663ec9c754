// Counting the items at each distance, for histograms and for guessing where a search may begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan.hpp"
#include "search.hpp"

namespace asymhash {

// A row of counters for each of several queries.
class Counters {
public:
    Counters(std::size_t n_queries, std::size_t n_words);

    // Counts n items of one query.
    void add(std::size_t query, const std::uint16_t* distances, std::size_t n);
    // Adds what was counted to `row`, which has a place for each distance.
    void add_to(std::size_t query, std::int64_t* row) const;

private:
    std::size_t n_tables_, row_size_;
    std::vector<std::uint32_t> counts_;
};

// Counts the items of one part for its queries.
void count_part(const Search& search, const Part& part, Counters& counters);

}  // namespace asymhash
