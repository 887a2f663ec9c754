#include "scan.hpp"

#include <algorithm>

#include "cpu.hpp"

namespace asymhash {

namespace {

// A collector always has room for one strip more, and a vector that is stored whole.
constexpr std::size_t ROOM = STRIP + 8;

// Adding to a counter that was written a moment ago waits 4 to 5 cycles; neighbouring keys take turns.
constexpr std::size_t N_TABLES = 4;

// The fewest keys beyond k before they are counted. Counting falls due less often with more of them, but the threshold
// falls later: with 8, k = 1 takes 50 keys of a million instead of 14, and counts them six times.
constexpr std::size_t FEWEST_SPARE = 8;

// Keys to make room for at first; most queries need no more.
constexpr std::size_t FIRST_KEYS = 4 * STRIP;

}  // namespace

Collector::Collector(const std::uint64_t* query, std::size_t k, std::size_t threshold, std::size_t most)
    : query_(query),
      threshold_(threshold),
      k_(k),
      most_(most),
      limit_(std::min(FIRST_KEYS, most)),
      keys_(limit_ + ROOM) {}

Collector Collector::of_nearest(const std::uint64_t* query, std::size_t k, std::size_t n_bits, std::size_t start) {
    Collector collector(query, k, start, k + std::max(k, FEWEST_SPARE));
    collector.counts_.resize(N_TABLES * (n_bits + 2));
    return collector;
}

Collector Collector::of_within(const std::uint64_t* query, std::size_t radius) {
    return Collector(query, 0, radius + 1, SIZE_MAX);
}

void Collector::make_room() {
    if (size_ > most_) keep_the_nearest();
    if (size_ <= limit_) return;
    limit_ = std::min(2 * limit_, most_);
    keys_.resize(limit_ + ROOM);
}

// Lets the threshold fall to the distance of the k-th key; keeps all keys below it and the first ones at it, up to k.
void Collector::keep_the_nearest() {
    if (size_ <= k_) return;
    const std::size_t row_size = static_cast<std::size_t>(threshold_) + 1;  // no key is beyond the threshold
    std::fill(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(N_TABLES * row_size), 0);
    for (std::size_t i = 0; i < size_; ++i) ++counts_[i % N_TABLES * row_size + distance_of(keys_[i])];
    std::size_t distance = 0, n_below = 0;
    for (;; ++distance) {
        std::size_t n_here = 0;
        for (std::size_t t = 0; t < N_TABLES; ++t) n_here += counts_[t * row_size + distance];
        if (n_below + n_here >= k_) break;
        n_below += n_here;
    }
    std::size_t kept = 0, n_ties = k_ - n_below;
    for (std::size_t i = 0; i < size_; ++i) {
        const Key key = keys_[i];
        const bool tie = (distance_of(key) == distance) & (n_ties > 0);
        n_ties -= tie;
        keys_[kept] = key;
        kept += tie | (distance_of(key) < distance);
    }
    size_ = kept;
    threshold_ = distance;
}

std::vector<Key> Collector::take() {
    if (k_ > 0) keep_the_nearest();
    keys_.resize(size_);
    return std::move(keys_);
}

Scan current_scan() {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return scan_avx512;
    if (current_level() == Level::avx2) return scan_avx2;
#endif
    return scan_portable;
}

DirectScan current_direct_scan() {
#if defined(__x86_64__)
    if (current_level() == Level::avx512) return scan_directly_avx512;
#endif
    return nullptr;
}

}  // namespace asymhash
