#include "scan.hpp"

#include <algorithm>

#include "cpu.hpp"

namespace asymhash {

namespace {

// A collector always has room for one strip more, and a vector that is stored whole.
constexpr std::size_t ROOM = STRIP + 8;

// Adding to a counter that was written a moment ago waits 4 to 5 cycles; neighbouring keys take turns.
constexpr std::size_t N_TABLES = 4;

// Up to this k every key is counted as it comes, so that the threshold falls at once. With 100 queries, 64 bits and 10^6
// items that takes 3.8 ms in place of 4.3 for k = 100, 5.2 in place of 6.0 for 300; beyond, among 10^5 items, the
// counting costs more than the candidates (k = 1000: 3.2 in place of 2.8).
constexpr std::size_t SMALL_K = 512;

// With more possible distances than this for each key, comparing keys is cheaper than counting distances.
constexpr std::size_t DISTANCES_PER_KEY = 8;

// Keys to make room for at first; most queries need no more.
constexpr std::size_t FIRST_KEYS = 4 * STRIP;

}  // namespace

// A stable counting sort by distance; what falls behind the limit all goes to one place after it, without a branch.
std::vector<Key> sorted_keys(const Key* keys, std::size_t size, std::size_t n_distances, std::size_t limit) {
    limit = std::min(limit, size);
    if (n_distances > DISTANCES_PER_KEY * size) {
        std::vector<Key> sorted(keys, keys + size);
        std::sort(sorted.begin(), sorted.end());
        sorted.resize(limit);
        return sorted;
    }
    std::vector<std::size_t> places(n_distances + 1);
    for (std::size_t i = 0; i < size; ++i) ++places[distance_of(keys[i]) + 1];
    for (std::size_t d = 1; d < n_distances; ++d) places[d] += places[d - 1];
    std::vector<Key> sorted(limit + 1);
    for (std::size_t i = 0; i < size; ++i) sorted[std::min(places[distance_of(keys[i])]++, limit)] = keys[i];
    sorted.pop_back();
    return sorted;
}

Collector::Collector(const std::uint64_t* query, std::size_t k, std::size_t threshold, std::size_t most)
    : query_(query),
      threshold_(threshold),
      k_(k),
      most_(most),
      limit_(std::min(FIRST_KEYS, most)),
      n_distances_(threshold),
      keys_(limit_ + ROOM) {}

Collector Collector::of_nearest(const std::uint64_t* query, std::size_t k, std::size_t n_bits, std::size_t start) {
    Collector collector(query, k, start, k + std::max(k, FIRST_KEYS));
    collector.counts_each_ = k <= SMALL_K;
    collector.counts_.resize((collector.counts_each_ ? 1 : N_TABLES) * (n_bits + 2));
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

void Collector::count_last(std::size_t n) {
    for (std::size_t i = size_ - n; i < size_; ++i) ++counts_[distance_of(keys_[i])];
    n_below_ += n;
    while (n_below_ >= k_) n_below_ -= counts_[--threshold_];
}

// Lets the threshold fall to the distance of the k-th key.
void Collector::count_all() {
    const std::size_t row_size = static_cast<std::size_t>(threshold_) + 1;  // no key is beyond the threshold
    std::fill(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(N_TABLES * row_size), 0);
    for (std::size_t i = 0; i < size_; ++i) ++counts_[i % N_TABLES * row_size + distance_of(keys_[i])];
    n_below_ = 0;
    for (threshold_ = 0;; ++threshold_) {
        std::size_t n_here = 0;
        for (std::size_t t = 0; t < N_TABLES; ++t) n_here += counts_[t * row_size + threshold_];
        if (n_below_ + n_here >= k_) break;
        n_below_ += n_here;
    }
}

// Keeps all keys below the threshold and the first ones at it, up to k.
void Collector::keep_the_nearest() {
    if (size_ <= k_) return;
    if (!counts_each_) count_all();
    std::size_t kept = 0, n_ties = k_ - n_below_;
    for (std::size_t i = 0; i < size_; ++i) {
        const Key key = keys_[i];
        const bool tie = (distance_of(key) == threshold_) & (n_ties > 0);
        n_ties -= tie;
        keys_[kept] = key;
        kept += tie | (distance_of(key) < threshold_);
    }
    size_ = kept;
}

std::vector<Key> Collector::take() const {
    return sorted_keys(keys_.data(), size_, n_distances_, k_ > 0 ? k_ : size_);
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
