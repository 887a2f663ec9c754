#include "search.hpp"

#include <algorithm>
#include <utility>

#include "plan.hpp"
#include "sample.hpp"
#include "scan.hpp"

namespace asymhash {

namespace {

// Candidates that the queries of a tile may hold: 128 MB of keys, where the queries are not fewer anyway.
constexpr std::size_t TILE_KEYS = std::size_t{1} << 24;

// Passes all queries of the part over its items, block by block.
void scan_part(const Search& search, const Part& part, std::vector<Collector>& collectors) {
    std::size_t first = part.first_item;
    const DirectScan direct = current_direct_scan();
    if (direct != nullptr && collectors.size() == 1 && search.allowed == nullptr) {
        const std::size_t n = (part.last_item - first) / STRIP * STRIP, n_words = search.items.n_words;
        direct(Codes{search.items.words + first * n_words, n, n_words}, first, collectors[0]);
        first += n;
    }
    const Scan scan = current_scan();
    BlockReader reader(search.items, search.allowed, first, part.last_item);
    for (Block block; reader.next(block);) scan(block, collectors.data(), collectors.size());
}

void write_keys(const std::vector<Key>& keys, std::uint16_t* distances, std::int64_t* ids) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        distances[i] = static_cast<std::uint16_t>(distance_of(keys[i]));
        ids[i] = static_cast<std::int64_t>(keys[i] & ID_MASK);
    }
}

// The k nearest items of the part for each of its queries, in their order.
std::vector<std::vector<Key>> nearest_in_part(const Search& search, const Part& part, std::size_t k) {
    const std::size_t n_bits = row_size_of(search) - 1;
    const std::vector<std::size_t> starts = guess_thresholds(search, part, k);
    std::vector<Collector> collectors;
    collectors.reserve(starts.size());
    for (std::size_t q = 0; q < starts.size(); ++q) {
        collectors.push_back(Collector::of_nearest(query_of(search, part.first_query + q), k, n_bits, starts[q]));
    }
    scan_part(search, part, collectors);
    std::vector<std::vector<Key>> found(starts.size());
    std::vector<std::size_t> misled;
    for (std::size_t q = 0; q < starts.size(); ++q) {
        found[q] = collectors[q].take();
        if (found[q].size() < k && starts[q] <= n_bits) misled.push_back(q);
    }
    if (misled.empty()) return found;
    // The guess was too low for these queries: once more, from the beginning, all in one pass.
    std::vector<Collector> again;
    again.reserve(misled.size());
    for (const std::size_t q : misled) {
        again.push_back(Collector::of_nearest(query_of(search, part.first_query + q), k, n_bits, n_bits + 1));
    }
    scan_part(search, part, again);
    for (std::size_t i = 0; i < misled.size(); ++i) found[misled[i]] = again[i].take();
    return found;
}

// What every query found in every range of items: lists[query * n_ranges + range].
using Lists = std::vector<std::vector<Key>>;

// Puts the ranges of one query together, first items first, and keeps the first `limit` keys in their order.
std::vector<Key> join_ranges(Lists& lists, std::size_t query, std::size_t n_ranges, std::size_t n_distances,
                             std::size_t limit) {
    std::vector<Key> keys = std::move(lists[query * n_ranges]);
    if (n_ranges == 1) return keys;
    for (std::size_t range = 1; range < n_ranges; ++range) {
        const std::vector<Key>& more = lists[query * n_ranges + range];
        keys.insert(keys.end(), more.begin(), more.end());
    }
    return sorted_keys(keys.data(), keys.size(), n_distances, limit);
}

}  // namespace

void nearest_items(const Search& search, std::size_t k, std::uint16_t* distances, std::int64_t* ids) {
    const std::size_t n_distances = row_size_of(search);
    const Plan plan = plan_for(search, std::clamp<std::size_t>(TILE_KEYS / k, 1, MAX_TILE));
    const auto write_row = [&](std::size_t q, const std::vector<Key>& keys) {
        const std::size_t n = keys.size();
        write_keys(keys, distances + q * k, ids + q * k);
        std::fill(distances + q * k + n, distances + (q + 1) * k, static_cast<std::uint16_t>(n_distances));
        std::fill(ids + q * k + n, ids + (q + 1) * k, -1);
    };
    Lists lists(plan.n_ranges > 1 ? search.queries.n_items * plan.n_ranges : 0);
    for_each_part(search, plan, [&](const Part& part) {
        std::vector<std::vector<Key>> found = nearest_in_part(search, part, k);
        for (std::size_t q = part.first_query; q < part.last_query; ++q) {
            std::vector<Key>& keys = found[q - part.first_query];
            if (plan.n_ranges > 1) {
                lists[q * plan.n_ranges + part.range] = std::move(keys);
            } else {
                write_row(q, keys);
            }
        }
    });
    if (plan.n_ranges == 1) return;
    // The ranges are as many as the threads, so putting them together is too little work for threads.
    for (std::size_t q = 0; q < search.queries.n_items; ++q) {
        write_row(q, join_ranges(lists, q, plan.n_ranges, n_distances, k));
    }
}

Matches items_within(const Search& search, std::size_t radius) {
    const std::size_t n_queries = search.queries.n_items, n_distances = row_size_of(search);
    const Plan plan = plan_for(search, MAX_TILE);
    Lists lists(n_queries * plan.n_ranges);
    for_each_part(search, plan, [&](const Part& part) {
        std::vector<Collector> found;
        for (std::size_t q = part.first_query; q < part.last_query; ++q) {
            found.push_back(Collector::of_within(query_of(search, q), radius));
        }
        scan_part(search, part, found);
        for (std::size_t q = part.first_query; q < part.last_query; ++q) {
            lists[q * plan.n_ranges + part.range] = found[q - part.first_query].take();
        }
    });
    Matches matches;
    matches.offsets.resize(n_queries + 1);
    for (std::size_t q = 0; q < n_queries; ++q) {
        std::size_t n = 0;
        for (std::size_t range = 0; range < plan.n_ranges; ++range) n += lists[q * plan.n_ranges + range].size();
        matches.offsets[q + 1] = matches.offsets[q] + static_cast<std::int64_t>(n);
    }
    const std::size_t n_matches = static_cast<std::size_t>(matches.offsets[n_queries]);
    matches.distances.resize(n_matches);
    matches.ids.resize(n_matches);
    parallel_for(n_queries, useful_threads(plan.n_threads, 8 * n_matches), [&](std::size_t q) {
        const std::vector<Key> keys = join_ranges(lists, q, plan.n_ranges, n_distances, SIZE_MAX);
        const std::int64_t first = matches.offsets[q];
        write_keys(keys, matches.distances.data() + first, matches.ids.data() + first);
    });
    return matches;
}

}  // namespace asymhash
