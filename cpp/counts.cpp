#include "counts.hpp"

#include <algorithm>
#include <mutex>

namespace asymhash {

namespace {

// Neighbouring items go to different tables: items at one distance follow each other often, and adding to a
// counter that was written a moment ago waits 4 to 5 cycles for it. Long codes spread over more distances
// than four tables of them have room in the first-level cache.
constexpr std::size_t MAX_TABLES = 4;

// Queries whose counters stay in the second-level cache: 64 of them have 270 KB at most up to 256 bits.
constexpr std::size_t COUNTING_TILE = 64;

}  // namespace

Counters::Counters(std::size_t n_queries, std::size_t n_words)
    : n_tables_(n_words <= 4 ? MAX_TABLES : 1),
      row_size_(64 * n_words + 1),
      counts_(n_queries * n_tables_ * row_size_) {}

void Counters::add(std::size_t query, const std::uint16_t* distances, std::size_t n) {
    std::uint32_t* const tables = counts_.data() + query * n_tables_ * row_size_;
    std::size_t i = 0;
    if (n_tables_ == MAX_TABLES) {
        for (; i + MAX_TABLES <= n; i += MAX_TABLES) {
            for (std::size_t t = 0; t < MAX_TABLES; ++t) ++tables[t * row_size_ + distances[i + t]];
        }
    }
    for (; i < n; ++i) ++tables[distances[i]];
}

void Counters::add_to(std::size_t query, std::int64_t* row) const {
    for (std::size_t t = 0; t < n_tables_; ++t) {
        const std::uint32_t* table = counts_.data() + (query * n_tables_ + t) * row_size_;
        for (std::size_t d = 0; d < row_size_; ++d) row[d] += table[d];
    }
}

void count_part(const Search& search, const Part& part, Counters& counters) {
    const BlockKernel kernel = block_kernel();
    std::uint16_t distances[PLANE_ITEMS];
    BlockReader reader(search.items, search.allowed, part.first_item, part.last_item);
    for (Block block; reader.next(block);) {
        for (std::size_t q = part.first_query; q < part.last_query; ++q) {
            for (std::size_t i = 0; i < block.n_items; i += PLANE_ITEMS) {
                const std::size_t n = std::min(PLANE_ITEMS, block.n_items - i);
                kernel(Planes{block.words + i, block.stride, block.n_words, n}, query_of(search, q), distances);
                counters.add(q - part.first_query, distances, n);
            }
        }
    }
}

void distance_counts(const Search& search, std::int64_t* counts) {
    const std::size_t row_size = row_size_of(search);
    std::fill(counts, counts + search.queries.n_items * row_size, 0);
    std::mutex adding;
    for_each_part(search, plan_for(search, COUNTING_TILE), [&](const Part& part) {
        Counters counters(part.last_query - part.first_query, search.items.n_words);
        count_part(search, part, counters);
        const std::lock_guard<std::mutex> lock(adding);
        for (std::size_t q = part.first_query; q < part.last_query; ++q) {
            counters.add_to(q - part.first_query, counts + q * row_size);
        }
    });
}

}  // namespace asymhash
