#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "counts.hpp"
#include "scan.hpp"

namespace asymhash {

namespace {

// A falling threshold takes about k (1 + ln(n / k)) candidates at 40 cycles each, a guessed one two to six k, and the
// sample costs cycles by its size. Where k * k is at least this part of the items, the sample is counted, which costs as
// much as scanning five times; below, it is searched itself, for the few of the k nearest that should be in it.
constexpr std::size_t ITEMS_PER_SQUARE = 4;

// From this k and this many queries on a sample is searched: below, a falling threshold takes too few candidates to save
// any, and fewer queries do not pay for the drawing (0.08 ms of 40,000 among 10^6 items, to save each 0.01 ms).
constexpr std::size_t SMALLEST_SEARCHED_K = 48, SEARCHING_QUERIES = 16;

// A sample that is searched has at most so many words: 2 MiB. Beyond, its drawing alone, of which every item is a line of
// the cache that is read for it, costs more than a falling threshold: 14 ms of 45 at 10^7 items, 64 bits and k = 100.
constexpr std::size_t MOST_SEARCHED_WORDS = std::size_t{1} << 18;

// How many of the k nearest should be in a sample that is counted, in one that is searched, and the fewest items to
// sample. More of them make the guess better and dearer.
constexpr std::size_t COUNTED_HITS = 16, SEARCHED_HITS = 4, SMALLEST_SAMPLE = 512;

// One item of every `step` of the part, if allowed. Not always the first of them: items may be interleaved, and with a
// period that divides the step the sample would know one kind only, and mislead every query. So the place inside a step
// advances by the golden ratio, which no period meets; it costs an addition and a product.
std::vector<std::uint64_t> draw(const Search& search, const Part& part, std::size_t step) {
    const std::size_t n_words = search.items.n_words;
    std::vector<std::uint64_t> words(divide_up(part.last_item - part.first_item, step) * n_words);
    std::uint64_t* end = words.data();
    std::uint64_t place = 0x9e3779b97f4a7c15u;  // a fraction of 2^64
    for (std::size_t start = part.first_item; start < part.last_item; start += step) {
        const std::uint64_t width = std::min(step, part.last_item - start);
        const std::size_t i = start + static_cast<std::size_t>((place >> 32) * width >> 32);
        place += 0x9e3779b97f4a7c15u;
        const std::uint64_t* item = search.items.words + i * n_words;
        for (std::size_t w = 0; w < n_words; ++w) end[w] = item[w];
        const bool allowed = search.allowed == nullptr || (search.allowed[i / 64] >> (i % 64) & 1) != 0;
        end += allowed ? n_words : 0;
    }
    words.resize(static_cast<std::size_t>(end - words.data()));
    return words;
}

// The smallest distance with at least `wanted` items below it.
std::size_t distance_above(const std::vector<std::int64_t>& row, double wanted) {
    std::int64_t n_below = 0;
    std::size_t distance = 0;
    while (distance < row.size() && static_cast<double>(n_below) < wanted) n_below += row[distance++];
    return static_cast<double>(n_below) < wanted ? row.size() : distance;
}

// For each query the smallest distance with at least `wanted` items of the sample below it; row_size where there is none.
std::vector<std::size_t> counted_thresholds(const Search& search, const Part& part, const Codes& sample, double wanted) {
    const std::size_t n_queries = part.last_query - part.first_query;
    Counters counters(n_queries, sample.n_words);
    count_part(Search{search.queries, sample, nullptr, 1},
               Part{part.first_query, part.last_query, 0, sample.n_items, 0}, counters);
    std::vector<std::size_t> thresholds;
    for (std::size_t q = 0; q < n_queries; ++q) {
        std::vector<std::int64_t> row(row_size_of(search));
        counters.add_to(q, row.data());
        thresholds.push_back(distance_above(row, wanted));
    }
    return thresholds;
}

std::vector<std::size_t> searched_thresholds(const Search& search, const Part& part, const Codes& sample, double wanted) {
    const std::size_t row_size = row_size_of(search), k = static_cast<std::size_t>(std::ceil(wanted));
    std::vector<Collector> collectors;
    for (std::size_t q = part.first_query; q < part.last_query; ++q) {
        collectors.push_back(Collector::of_nearest(query_of(search, q), k, row_size - 1, row_size));
    }
    const Scan scan = current_scan();
    BlockReader reader(sample, nullptr, 0, sample.n_items);
    for (Block block; reader.next(block);) scan(block, collectors.data(), collectors.size());
    std::vector<std::size_t> thresholds;
    for (const Collector& collector : collectors) {
        const std::vector<Key> found = collector.take();
        thresholds.push_back(found.size() < k ? row_size : distance_of(found.back()) + 1);
    }
    return thresholds;
}

}  // namespace

std::vector<std::size_t> guess_thresholds(const Search& search, const Part& part, std::size_t k) {
    const std::size_t n_items = part.last_item - part.first_item, n_words = search.items.n_words;
    const std::size_t n_queries = part.last_query - part.first_query;
    const bool counts = k >= n_items / ITEMS_PER_SQUARE / k;
    const bool searches = k >= SMALLEST_SEARCHED_K && n_queries >= SEARCHING_QUERIES;
    const std::size_t n_hits = counts ? COUNTED_HITS : SEARCHED_HITS;
    const std::size_t n_wanted = std::max(SMALLEST_SAMPLE, n_hits * n_items / k);
    const bool is_too_large = !counts && n_wanted * n_words > MOST_SEARCHED_WORDS;
    if (!(counts || searches) || is_too_large || n_items < 4 * n_wanted) {
        return std::vector<std::size_t>(n_queries, row_size_of(search));
    }
    const std::size_t step = n_items / n_wanted;
    const std::vector<std::uint64_t> words = draw(search, part, step);
    const Codes sample{words.data(), words.size() / n_words, n_words};
    // Three standard deviations more than the k nearest should have in the sample: one query in 700 is searched twice.
    const double hits = static_cast<double>(k) / static_cast<double>(step);
    const double wanted = hits + 3.0 * std::sqrt(hits) + 3.0;
    return (counts ? counted_thresholds : searched_thresholds)(search, part, sample, wanted);
}

}  // namespace asymhash
