#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "counts.hpp"

namespace asymhash {

namespace {

// Guessing pays where k * k is at least this part of the items. A falling threshold takes about k (1 + ln(n / k))
// candidates at 40 cycles each, a guessed one about 2.5 k, and the sample costs 20 n / k cycles.
constexpr std::size_t ITEMS_PER_SQUARE = 4;

// How many of the k nearest should be in the sample, and the fewest items to sample. More of them make the guess better
// and dearer: to count one item costs as much as to scan five.
constexpr std::size_t SAMPLE_HITS = 16, SMALLEST_SAMPLE = 512;

// Every step-th item of the part, if allowed.
std::vector<std::uint64_t> draw(const Search& search, const Part& part, std::size_t step) {
    const std::size_t n_words = search.items.n_words;
    std::vector<std::uint64_t> words(divide_up(part.last_item - part.first_item, step) * n_words);
    std::uint64_t* end = words.data();
    for (std::size_t i = part.first_item; i < part.last_item; i += step) {
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

}  // namespace

std::vector<std::size_t> guess_thresholds(const Search& search, const Part& part, std::size_t k) {
    const std::size_t n_queries = part.last_query - part.first_query, row_size = row_size_of(search);
    const std::size_t n_items = part.last_item - part.first_item, n_words = search.items.n_words;
    std::vector<std::size_t> guesses(n_queries, row_size);
    const std::size_t n_wanted = std::max(SMALLEST_SAMPLE, SAMPLE_HITS * n_items / k);
    if (k < n_items / ITEMS_PER_SQUARE / k || n_items < 4 * n_wanted) return guesses;
    const std::size_t step = n_items / n_wanted;
    const std::vector<std::uint64_t> words = draw(search, part, step);
    const Codes sample{words.data(), words.size() / n_words, n_words};
    Counters counters(n_queries, n_words);
    count_part(Search{search.queries, sample, nullptr, 1},
               Part{part.first_query, part.last_query, 0, sample.n_items, 0}, counters);
    // Three standard deviations more than the k nearest should have in the sample: one query in 700 is searched twice.
    const double hits = static_cast<double>(k) / static_cast<double>(step);
    const double wanted = hits + 3.0 * std::sqrt(hits) + 3.0;
    for (std::size_t q = 0; q < n_queries; ++q) {
        std::vector<std::int64_t> row(row_size);
        counters.add_to(q, row.data());
        guesses[q] = distance_above(row, wanted);
    }
    return guesses;
}

}  // namespace asymhash
