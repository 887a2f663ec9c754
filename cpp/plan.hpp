// How a search is cut into parts for threads, and for the memory of many queries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "blocks.hpp"
#include "search.hpp"
#include "threads.hpp"

namespace asymhash {

// Queries that pass over the items together. More of them share the cost of reading and transposing a block, which
// is a few percent from 64 on, but each has candidates to keep.
constexpr std::size_t MAX_TILE = 256;

// More tiles than threads, so that a thread which has to share its core leaves work to the others.
constexpr std::size_t TILES_PER_THREAD = 2;

// Fewer queries than this for each thread, and threads share the items instead.
constexpr std::size_t FEW_QUERIES = 16;

// Counters of 32 bits do not overflow in a range of this many items.
constexpr std::size_t MAX_RANGE = std::size_t{1} << 31;

// How the work is cut: tiles of queries times ranges of items.
struct Plan {
    std::size_t tile, n_tiles, range, n_ranges, n_threads;

    std::size_t n_parts() const { return n_tiles * n_ranges; }
};

struct Part {
    std::size_t first_query, last_query, first_item, last_item, range;
};

inline std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

inline Plan plan_for(const Search& search, std::size_t max_tile) {
    const std::size_t n_queries = search.queries.n_items, n_items = search.items.n_items;
    Plan plan;
    plan.n_threads = useful_threads(search.n_threads, n_queries * n_items * search.items.n_words);
    const bool few = n_queries < FEW_QUERIES * plan.n_threads;
    const std::size_t n_shares = plan.n_threads > 1 ? TILES_PER_THREAD * plan.n_threads : 1;
    const std::size_t share = few ? n_queries : divide_up(n_queries, n_shares);
    plan.tile = std::clamp<std::size_t>(share, 1, max_tile);
    plan.n_tiles = divide_up(n_queries, plan.tile);
    const std::size_t n_ranges = std::max(few ? plan.n_threads : 1, divide_up(n_items, MAX_RANGE));
    plan.range = std::max<std::size_t>(divide_up(divide_up(n_items, n_ranges), STRIP), 1) * STRIP;
    plan.n_ranges = std::max<std::size_t>(divide_up(n_items, plan.range), 1);
    return plan;
}

template <typename Run>
void for_each_part(const Search& search, const Plan& plan, Run&& run) {
    parallel_for(plan.n_parts(), plan.n_threads, [&](std::size_t part) {
        const std::size_t tile = part / plan.n_ranges, range = part % plan.n_ranges;
        run(Part{tile * plan.tile, std::min((tile + 1) * plan.tile, search.queries.n_items), range * plan.range,
                 std::min((range + 1) * plan.range, search.items.n_items), range});
    });
}

inline const std::uint64_t* query_of(const Search& search, std::size_t q) {
    return search.queries.words + q * search.queries.n_words;
}

inline std::size_t row_size_of(const Search& search) { return 64 * search.items.n_words + 1; }

}  // namespace asymhash
