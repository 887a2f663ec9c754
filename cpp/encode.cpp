#include "encode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "encode_product.hpp"
#include "encode_rows.hpp"
#include "threads.hpp"

namespace asymhash {

namespace {

// Features or bits, whichever are more, that a thread takes at a time: 0.1 to 1 ms of work.
constexpr std::size_t PART_VALUES = std::size_t{1} << 19;

template <typename Scalar>
class Encoder {
   public:
    Encoder(const Scalar* rows, const SignMap& map, std::uint64_t* words) : rows_(rows), map_(map), words_(words) {}

    std::size_t part_rows() const {
        const std::size_t n_panels = PART_VALUES / (PANEL * std::max({map_.n_features, map_.n_bits, std::size_t{1}}));
        return PANEL * std::max<std::size_t>(n_panels, 1);
    }

    void encode(std::size_t first, std::size_t end, std::vector<std::int64_t>& open) const {
        // Zeros at first: a last panel that is not full is multiplied in whole steps.
        std::vector<float> values(panel_size(map_.n_features));
        float norms[PANEL];
        for (std::size_t row = first; row < end; row += PANEL) {
            const std::size_t size = std::min(PANEL, end - row);
            by_row_.widen(rows_ + row * map_.n_features, size, map_.n_features, values.data(), norms);
            const Panel panel{values.data(), norms, size};
            for (std::size_t group = 0; group < map_.n_groups(); group += RANGE_GROUPS) {
                const GroupRange range{group, std::min(RANGE_GROUPS, map_.n_groups() - group)};
                const Ahead ahead = group == 0 ? after(row + size, end) : Ahead{nullptr, 0};
                keep_signs(panel, row, range, ahead, open);
            }
        }
        std::sort(open.begin(), open.end());
    }

   private:
    Ahead after(std::size_t row, std::size_t end) const {
        const std::size_t size = std::min(PANEL, end - row);
        const Scalar* next = rows_ + row * map_.n_features;
        return {reinterpret_cast<const char*>(next), size * map_.n_features * sizeof(Scalar)};
    }

    // Writes the words of a range, with the signs that float32 leaves open taken from float64.
    void keep_signs(const Panel& panel, std::size_t row, const GroupRange& range, const Ahead& ahead,
                    std::vector<std::int64_t>& open) const {
        alignas(64) float totals[PANEL * RANGE_BITS];
        std::uint64_t set[PANEL], unsure[PANEL];
        by_panel_.multiply(panel, map_, range, ahead, totals);
        by_panel_.compare(totals, panel, map_, range, set, unsure);
        const std::size_t first = range.first * GROUP, n_bits = std::min(RANGE_BITS, map_.n_bits - first);
        const std::uint64_t used = ~std::uint64_t{0} >> (64 - n_bits);
        for (std::size_t r = 0; r < panel.n_rows; ++r) {
            std::uint64_t word = set[r] & used;
            for (std::uint64_t left = unsure[r] & used; left != 0; left &= left - 1) {
                const std::size_t t = static_cast<std::size_t>(__builtin_ctzll(left));
                word &= ~(std::uint64_t{1} << t);
                word |= std::uint64_t{sign_of(row + r, first + t, open)} << t;
            }
            words_[(row + r) * map_.n_words() + first / 64] = word;
        }
    }

    // Whether the float64 sum is at least zero; where its own rounding leaves that open, the entry is named.
    bool sign_of(std::size_t row, std::size_t bit, std::vector<std::int64_t>& open) const {
        const std::size_t d = map_.n_features;
        const ExactSum sum = by_row_.exact_sum(rows_ + row * d, map_.exact_weights + bit * d, d);
        const double offset = map_.exact_offset[bit], value = sum.value + offset, length = std::fabs(value);
        // 1e-300 is more than underflow can take from all terms.
        const double bound = map_.exact_slope * (sum.size + std::fabs(offset)) + 1e-300;
        const bool is_sure = length > bound && length < std::numeric_limits<double>::infinity();
        if (!is_sure) open.push_back(static_cast<std::int64_t>(row * map_.n_bits + bit));
        return value >= 0;
    }

    const Scalar* rows_;
    SignMap map_;
    std::uint64_t* words_;
    RowKernels<Scalar> by_row_ = row_kernels<Scalar>();
    ProductKernels by_panel_ = product_kernels();
};

}  // namespace

template <typename Scalar>
std::vector<std::int64_t> encode_signs(const Scalar* rows, std::size_t n_rows, const SignMap& map,
                                       std::uint64_t* words, std::size_t n_threads) {
    const Encoder<Scalar> encoder(rows, map, words);
    const std::size_t part_rows = encoder.part_rows(), n_parts = (n_rows + part_rows - 1) / part_rows;
    std::vector<std::vector<std::int64_t>> opens(n_parts);
    // 8 products take about as long as comparing a word.
    const std::size_t work = n_rows * map.n_features * map.n_groups() * GROUP / 8;
    parallel_for(n_parts, useful_threads(n_threads, work), [&](std::size_t part) {
        encoder.encode(part * part_rows, std::min((part + 1) * part_rows, n_rows), opens[part]);
    });
    std::size_t n_open = 0;
    for (const std::vector<std::int64_t>& open : opens) n_open += open.size();
    std::vector<std::int64_t> all;
    all.reserve(n_open);
    for (const std::vector<std::int64_t>& open : opens) all.insert(all.end(), open.begin(), open.end());
    return all;
}

#define ASYMHASH_ENCODE(Scalar)                                                                                      \
    template std::vector<std::int64_t> encode_signs(const Scalar*, std::size_t, const SignMap&, std::uint64_t*,      \
                                                    std::size_t)
ASYMHASH_ENCODE(float);
ASYMHASH_ENCODE(double);
ASYMHASH_ENCODE(Half);
ASYMHASH_ENCODE(std::uint8_t);
ASYMHASH_ENCODE(std::int8_t);

}  // namespace asymhash
