#include "products.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "lookup.hpp"
#include "threads.hpp"

namespace asymhash {

namespace {

// Rows of output that one part of the work has: enough to pay for cutting every block into planes again.
constexpr std::size_t PART_ROWS = 2048;
// Below this many pairs a second thread costs more (10 to 20 us) than it brings.
constexpr std::size_t PAIRS_PER_THREAD = std::size_t{1} << 21;

std::size_t threads_for(std::size_t n_pairs, std::size_t n_threads) {
    return std::min(n_threads, n_pairs / PAIRS_PER_THREAD + 1);
}

QueryGroup group_of(const Codes& queries, std::size_t first, std::size_t n_bits, std::size_t end) {
    QueryGroup group;
    for (std::size_t r = 0; r < GROUP; ++r) {
        const std::size_t i = std::min(first + r, end - 1);  // behind the last query: the last one again
        const std::uint64_t* code = queries.words + i * queries.n_words;
        for (std::size_t p = 0; p < n_planes_of(n_bits); ++p) group.planes[r][p] = plane_of(code, p, n_bits);
    }
    return group;
}

// Calls visit(block, first item of the block, queries of a group, first query, queries in it) for queries begin..end-1
// and all items.
template <typename Visit>
void for_each_group(const Codes& queries, std::size_t begin, std::size_t end, const Codes& items, std::size_t n_bits,
                    Visit visit) {
    const std::size_t n_planes = n_planes_of(n_bits);
    std::vector<std::uint16_t> planes(n_planes * PLANE_BLOCK);
    for (std::size_t first = 0; first < items.n_items; first += PLANE_BLOCK) {
        const std::size_t size = std::min(PLANE_BLOCK, items.n_items - first);
        fill_planes(items, first, size, n_bits, planes.data());
        const Block block{planes.data(), n_planes, size};
        for (std::size_t q = begin; q < end; q += GROUP) {
            visit(block, first, group_of(queries, q, n_bits, end), q, std::min(GROUP, end - q));
        }
    }
}

template <typename Work>
void for_each_part(std::size_t n_rows, std::size_t n_columns, std::size_t n_threads, Work work) {
    const std::size_t threads = threads_for(n_rows * n_columns, n_threads);
    // Parts do not overlap in what they write; how many there are changes nothing but the balance.
    const std::size_t rows = threads == 1 ? n_rows : std::min(PART_ROWS, (n_rows + threads - 1) / threads);
    const std::size_t n_parts = rows == 0 ? 0 : (n_rows + rows - 1) / rows;
    parallel_for(n_parts, threads, [&](std::size_t part) { work(part * rows, std::min(n_rows, (part + 1) * rows)); });
}

std::unique_ptr<Table> padded_table(const std::int16_t* table, std::size_t n_bits) {
    auto padded = std::make_unique<Table>();
    std::memset(padded->entries, 0, sizeof padded->entries);
    std::copy(table, table + n_bits + 1, padded->entries);
    padded->n_entries = n_bits + 1;
    return padded;
}

// Kernels read whole registers: behind the last item the weights are zero.
std::vector<std::int16_t> padded_weights(const std::int16_t* x, std::size_t n_items) {
    std::vector<std::int16_t> weights((n_items + 31) / 32 * 32, 0);
    std::copy(x, x + n_items, weights.begin());
    return weights;
}

#define ASYMHASH_INLINE __attribute__((always_inline)) inline

// WORDS is the number of words of a code, 0 where it is known only at run time.
template <std::size_t WORDS>
ASYMHASH_INLINE std::size_t distance(const std::uint64_t* a, const std::uint64_t* b, std::size_t n_words) {
    if constexpr (WORDS > 0) n_words = WORDS;
    std::size_t count = 0;
    for (std::size_t w = 0; w < n_words; ++w) count += static_cast<std::size_t>(__builtin_popcountll(a[w] ^ b[w]));
    return count;
}

// Calls visit(item, distance) for the similar items of one query. Bits beyond n_bits would lead out of a table, so n_bits
// stands for all that are too far.
template <std::size_t WORDS, typename Visit>
ASYMHASH_INLINE void visit_row(const std::uint64_t* query, const Codes& items, const std::int32_t* begin,
                               const std::int32_t* end, std::size_t n_bits, Visit& visit) {
    for (const std::int32_t* p = begin; p < end; ++p) {
        const auto j = static_cast<std::size_t>(*p);
        visit(j, std::min(distance<WORDS>(query, items.words + j * items.n_words, items.n_words), n_bits));
    }
}

// What is summed over the similar items of a row.
template <typename Sum, typename Entry, typename Weight>
struct RowSum {
    const Entry* table;
    const Weight* x;
    Sum sum = 0;
    ASYMHASH_INLINE void operator()(std::size_t j, std::size_t d) {
        sum += static_cast<Sum>(table[d]) * static_cast<Sum>(x[j]);
    }
};

// How many similar items are at each distance. Adding to a counter that was written a moment ago waits, and similar items
// share few distances: four tables take turns.
struct RowCounts {
    std::int64_t* tables;
    std::size_t n_entries;
    std::size_t turn = 0;
    ASYMHASH_INLINE void operator()(std::size_t, std::size_t d) { ++tables[turn++ % 4 * n_entries + d]; }
};

template <typename Visit>
void row_portable(const std::uint64_t* query, const Codes& items, const std::int32_t* begin, const std::int32_t* end,
                  std::size_t n_bits, Visit& visit) {
    if (items.n_words == 1) return visit_row<1>(query, items, begin, end, n_bits, visit);
    visit_row<0>(query, items, begin, end, n_bits, visit);
}

// The same with the instruction that counts bits, of which the portable build knows nothing.
#if defined(__x86_64__)
template <typename Visit>
ASYMHASH_AVX2 void row_popcnt(const std::uint64_t* query, const Codes& items, const std::int32_t* begin,
                              const std::int32_t* end, std::size_t n_bits, Visit& visit) {
    if (items.n_words == 1) return visit_row<1>(query, items, begin, end, n_bits, visit);
    visit_row<0>(query, items, begin, end, n_bits, visit);
}
#endif

// Visits the similar items of query i.
template <typename Visit>
void visit_positives(const Codes& queries, const Codes& items, const Positives& positives, std::size_t i,
                     std::size_t n_bits, Visit& visit) {
    const std::uint64_t* query = queries.words + i * queries.n_words;
    const std::int32_t* begin = positives.indices + positives.indptr[i];
    const std::int32_t* end = positives.indices + positives.indptr[i + 1];
#if defined(__x86_64__)
    if (current_level() != Level::portable) return row_popcnt(query, items, begin, end, n_bits, visit);
#endif
    row_portable(query, items, begin, end, n_bits, visit);
}

template <typename Sum, typename Entry, typename Weight>
void sum_positives(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                   const Entry* table, const Weight* x, Sum* out, std::size_t n_threads) {
    const std::size_t n_rows = queries.n_items;
    const std::size_t per_row = n_rows == 0 ? 0 : static_cast<std::size_t>(positives.indptr[n_rows]) / n_rows;
    // One similar pair costs about as much as 16 pairs of the block kernels.
    for_each_part(n_rows, 16 * per_row, n_threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            RowSum<Sum, Entry, Weight> row{table, x};
            visit_positives(queries, items, positives, i, n_bits, row);
            out[i] += row.sum;
        }
    });
}

}  // namespace

void lookup_product(const Codes& queries, const Codes& items, std::size_t n_bits, const std::int16_t* table,
                    const std::int16_t* x, std::int64_t* out, std::size_t n_threads) {
    const auto padded = padded_table(table, n_bits);
    const std::vector<std::int16_t> weights = padded_weights(x, items.n_items);
    std::fill(out, out + queries.n_items, 0);
    const ProductKernel kernel = product_kernel(current_level(), n_planes_of(n_bits), n_bits + 1);
    for_each_part(queries.n_items, items.n_items, n_threads, [&](std::size_t begin, std::size_t end) {
        for_each_group(queries, begin, end, items, n_bits,
                       [&](const Block& block, std::size_t first, const QueryGroup& group, std::size_t q,
                           std::size_t size) {
                           std::int64_t sums[GROUP] = {};
                           kernel(block, group, *padded, weights.data() + first, sums);
                           for (std::size_t r = 0; r < size; ++r) out[q + r] += sums[r];
                       });
    });
}

void masked_product(const Codes& queries, const Codes& items, const PairMask& mask, std::size_t n_bits,
                    const std::int16_t* dissimilar, const std::int16_t* similar, const std::int16_t* x,
                    std::int64_t* out, std::size_t n_threads) {
    const auto far = padded_table(dissimilar, n_bits), near = padded_table(similar, n_bits);
    const std::vector<std::int16_t> weights = padded_weights(x, items.n_items);
    std::fill(out, out + queries.n_items, 0);
    const MaskedKernel kernel = masked_kernel(current_level(), n_planes_of(n_bits), n_bits + 1);
    for_each_part(queries.n_items, items.n_items, n_threads, [&](std::size_t begin, std::size_t end) {
        for_each_group(queries, begin, end, items, n_bits,
                       [&](const Block& block, std::size_t first, const QueryGroup& group, std::size_t q,
                           std::size_t size) {
                           GroupMasks masks;
                           for (std::size_t r = 0; r < GROUP; ++r) {
                               masks[r] = mask.bytes + std::min(q + r, end - 1) * mask.stride + first / 8;
                           }
                           std::int64_t sums[GROUP] = {};
                           kernel(block, group, *far, *near, masks, weights.data() + first, sums);
                           for (std::size_t r = 0; r < size; ++r) out[q + r] += sums[r];
                       });
    });
}

void pair_histogram(const Codes& queries, const Codes& items, std::size_t n_bits, std::int64_t* counts,
                    std::size_t n_threads) {
    const DistanceKernel kernel = plane_distance_kernel(current_level(), n_planes_of(n_bits));
    // Two pairs are counted by one addition to a table of two distances; two such tables in turn, because adding to
    // the same counter twice in a row waits for the first.
    const std::size_t side = n_bits + 1;
    const bool by_two = side <= 64;
    const std::size_t size_of_table = by_two ? side * side : side;
    const std::size_t threads = threads_for(queries.n_items * items.n_items, n_threads);
    const std::size_t rows = std::max<std::size_t>(1, std::min(PART_ROWS, (queries.n_items + threads - 1) / threads));
    const std::size_t n_parts = (queries.n_items + rows - 1) / rows;
    std::vector<std::vector<std::int64_t>> totals(n_parts, std::vector<std::int64_t>(side, 0));
    parallel_for(n_parts, threads, [&](std::size_t part) {
        std::vector<std::int64_t> pairs(2 * size_of_table, 0);
        std::uint16_t distances[GROUP][PLANE_BLOCK];
        std::vector<std::int64_t>& total = totals[part];
        std::int64_t* even = pairs.data();
        std::int64_t* odd = even + size_of_table;
        for_each_group(queries, part * rows, std::min(queries.n_items, (part + 1) * rows), items, n_bits,
                       [&](const Block& block, std::size_t, const QueryGroup& group, std::size_t, std::size_t size) {
                           kernel(block, group, distances);
                           for (std::size_t r = 0; r < size; ++r) {
                               const std::uint16_t* row = distances[r];
                               std::size_t i = 0;
                               if (by_two) {
                                   for (; i + 4 <= block.n_items; i += 4) {
                                       ++even[row[i] * side + row[i + 1]];
                                       ++odd[row[i + 2] * side + row[i + 3]];
                                   }
                               }
                               for (; i < block.n_items; ++i) ++total[row[i]];
                           }
                       });
        if (by_two) {
            for (std::size_t a = 0; a < side; ++a) {
                for (std::size_t b = 0; b < side; ++b) {
                    const std::int64_t found = even[a * side + b] + odd[a * side + b];
                    total[a] += found;
                    total[b] += found;
                }
            }
        }
    });
    std::fill(counts, counts + side, 0);
    for (const std::vector<std::int64_t>& total : totals) {
        for (std::size_t d = 0; d < side; ++d) counts[d] += total[d];
    }
}

void positives_product(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                       const std::int64_t* table, const std::int16_t* x, std::int64_t* out, std::size_t n_threads) {
    sum_positives(queries, items, positives, n_bits, table, x, out, n_threads);
}

void positives_product(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                       const double* table, const double* x, double* out, std::size_t n_threads) {
    sum_positives(queries, items, positives, n_bits, table, x, out, n_threads);
}

void positives_histogram(const Codes& queries, const Codes& items, const Positives& positives, std::size_t n_bits,
                         std::int64_t* counts, std::size_t n_threads) {
    const std::size_t n_rows = queries.n_items;
    const std::size_t threads = n_rows == 0 ? 1 : threads_for(16 * static_cast<std::size_t>(positives.indptr[n_rows]), n_threads);
    const std::size_t rows = std::max<std::size_t>(1, (n_rows + threads - 1) / threads);
    const std::size_t n_parts = (n_rows + rows - 1) / rows;
    std::vector<std::vector<std::int64_t>> totals(n_parts, std::vector<std::int64_t>(n_bits + 1, 0));
    parallel_for(n_parts, threads, [&](std::size_t part) {
        std::vector<std::int64_t> tables(4 * (n_bits + 1), 0);
        RowCounts counted{tables.data(), n_bits + 1};
        for (std::size_t i = part * rows; i < std::min(n_rows, (part + 1) * rows); ++i) {
            visit_positives(queries, items, positives, i, n_bits, counted);
        }
        for (std::size_t entry = 0; entry < tables.size(); ++entry) totals[part][entry % (n_bits + 1)] += tables[entry];
    });
    std::fill(counts, counts + n_bits + 1, 0);
    for (const std::vector<std::int64_t>& total : totals) {
        for (std::size_t d = 0; d <= n_bits; ++d) counts[d] += total[d];
    }
}

}  // namespace asymhash
