// One pass of several queries over one block: whatever is nearer than a query's threshold is handed to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "blocks.hpp"

namespace asymhash {

// A found item as one number whose order is (distance, id).
using Key = std::uint64_t;
constexpr int DISTANCE_SHIFT = 48;  // ids below 2^48
constexpr Key ID_MASK = (Key{1} << DISTANCE_SHIFT) - 1;

inline std::size_t distance_of(Key key) { return static_cast<std::size_t>(key >> DISTANCE_SHIFT); }

// The first `limit` of `size` keys by (distance, id), if ids ascend within each distance already and all distances are
// below n_distances.
std::vector<Key> sorted_keys(const Key* keys, std::size_t size, std::size_t n_distances, std::size_t limit);

// What one query has found so far, ids ascending, and how near an item must be to interest it.
//
// There is no heap: distances are small integers, so counting how many were found at each tells how far the threshold
// may fall. For small k, where every candidate is a mispredicted branch, each is counted as it comes; for large k
// all are counted when the buffer is full. An item at the threshold itself is refused: there are k nearer ones, or as
// near with smaller ids.
class Collector {
public:
    // The k nearest items of codes of at most n_bits bits, among those nearer than `start`; n_bits + 1 means all.
    static Collector of_nearest(const std::uint64_t* query, std::size_t k, std::size_t n_bits, std::size_t start);
    // All items at `radius` or nearer.
    static Collector of_within(const std::uint64_t* query, std::size_t radius);

    const std::uint64_t* query() const { return query_; }
    // Items at a smaller distance are wanted, no others.
    std::uint64_t threshold() const { return threshold_; }

    // Where to write the next keys; there is room for one strip and a vector.
    Key* end() { return keys_.data() + size_; }
    // Says that n keys were written at end(), all below the threshold. The threshold may fall.
    void settle(std::size_t n) {
        size_ += n;
        if (counts_each_) count_last(n);
        if (size_ > limit_) make_room();
    }

    // Takes the keys that count, in their order: the k nearest, or all.
    std::vector<Key> take() const;

private:
    Collector(const std::uint64_t* query, std::size_t k, std::size_t threshold, std::size_t most);
    void count_last(std::size_t n);
    void count_all();
    void keep_the_nearest();
    void make_room();

    const std::uint64_t* query_;
    std::uint64_t threshold_;
    std::size_t k_;      // 0 where all are wanted
    std::size_t most_;   // keys to hold before only the nearest are kept
    bool counts_each_ = false;
    std::size_t n_below_ = 0;  // keys below the threshold, once counted
    std::size_t size_ = 0;
    std::size_t limit_;  // size at which to make room
    std::size_t n_distances_;  // of all keys there may be
    std::vector<Key> keys_;
    std::vector<std::uint32_t> counts_;
};

// Passes the queries of n collectors over the block.
using Scan = void (*)(const Block& block, Collector* collectors, std::size_t n);

void scan_portable(const Block& block, Collector* collectors, std::size_t n);
#if defined(__x86_64__)
void scan_avx2(const Block& block, Collector* collectors, std::size_t n);
void scan_avx512(const Block& block, Collector* collectors, std::size_t n);
#endif

// The scan of the level in use.
Scan current_scan();

// For one query alone, which is not worth transposing codes for: whole strips of items as they lie, ids from `first`.
using DirectScan = void (*)(const Codes& strips, std::uint64_t first, Collector& collector);

#if defined(__x86_64__)
void scan_directly_avx512(const Codes& strips, std::uint64_t first, Collector& collector);
#endif

// Null where the level in use has none.
DirectScan current_direct_scan();

}  // namespace asymhash
