// The scan without any instructions of one machine: loops that compilers vectorise as far as the base level goes.
#include "bits.hpp"
#include "scan.hpp"

#include <algorithm>

namespace asymhash {

namespace {

void scan_one(const Block& block, Collector& collector) {
    const std::uint64_t* query = collector.query();
    for (std::size_t start = 0; start < block.n_items; start += STRIP) {
        std::uint64_t distances[STRIP] = {};
        for (std::size_t w = 0; w < block.n_words; ++w) {
            const std::uint64_t* plane = block.words + w * block.stride + start;
            for (std::size_t i = 0; i < STRIP; ++i) distances[i] += count_bits(plane[i] ^ query[w]);
        }
        const std::size_t n = std::min(STRIP, block.n_items - start);
        const std::uint64_t threshold = collector.threshold();
        Key* const begin = collector.end();
        Key* end = begin;
        for (std::size_t i = 0; i < n; ++i) {  // written always, counted if near: no branch to mispredict
            const std::uint64_t id = block.ids != nullptr ? block.ids[start + i] : block.first + start + i;
            *end = (distances[i] << DISTANCE_SHIFT) | id;
            end += distances[i] < threshold;
        }
        if (end != begin) collector.settle(static_cast<std::size_t>(end - begin));
    }
}

}  // namespace

void scan_portable(const Block& block, Collector* collectors, std::size_t n) {
    for (std::size_t q = 0; q < n; ++q) {
        if (collectors[q].threshold() > 0) scan_one(block, collectors[q]);
    }
}

}  // namespace asymhash
