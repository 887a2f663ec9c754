#include "walsh.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "cpu.hpp"
#include "threads.hpp"

namespace asymhash {

namespace {

// The 2^k numbers are a matrix: the low bits of a code are the column, the high bits the row. One row is 32 KiB and is
// transformed where it lies; columns are transformed 16 at a time in a buffer of their own, because the same columns of
// all rows fall on few sets of the cache. So a transform passes over the memory twice, however large it is.
constexpr std::size_t ROW_BITS = 12;
constexpr std::size_t LANES = 8;
constexpr std::size_t PANEL = 16;
// Below this size (2^17 numbers: 1 MiB) a second thread costs more than it brings.
constexpr std::size_t NUMBERS_PER_THREAD = std::size_t{1} << 16;

typedef double Lanes __attribute__((vector_size(64), aligned(64)));
typedef long long Places __attribute__((vector_size(64)));

#define ASYMHASH_INLINE __attribute__((always_inline)) inline

// Butterflies across rows of `width` numbers, for every bit of the row number.
ASYMHASH_INLINE void across_rows(double* data, std::size_t n_rows, std::size_t width) {
    std::size_t half = 1;
    // Two bits at a time: half as many passes over the numbers.
    for (; 4 * half <= n_rows; half *= 4) {
        for (std::size_t base = 0; base < n_rows; base += 4 * half) {
            for (std::size_t i = base; i < base + half; ++i) {
                double* a = data + i * width;
                double* b = a + half * width;
                double* c = b + half * width;
                double* d = c + half * width;
                for (std::size_t w = 0; w < width; w += LANES) {
                    Lanes &x = *reinterpret_cast<Lanes*>(a + w), &y = *reinterpret_cast<Lanes*>(b + w);
                    Lanes &z = *reinterpret_cast<Lanes*>(c + w), &t = *reinterpret_cast<Lanes*>(d + w);
                    const Lanes xy = x + y, x_y = x - y, zt = z + t, z_t = z - t;
                    x = xy + zt;
                    y = x_y + z_t;
                    z = xy - zt;
                    t = x_y - z_t;
                }
            }
        }
    }
    for (; 2 * half <= n_rows; half *= 2) {
        for (std::size_t base = 0; base < n_rows; base += 2 * half) {
            for (std::size_t w = base * width; w < (base + half) * width; w += LANES) {
                Lanes &x = *reinterpret_cast<Lanes*>(data + w), &y = *reinterpret_cast<Lanes*>(data + w + half * width);
                const Lanes sum = x + y;
                y = x - y;
                x = sum;
            }
        }
    }
}

// The transform of n neighbouring numbers, n a power of two and at least LANES.
ASYMHASH_INLINE void transform_row(double* data, std::size_t n) {
    const Places swap1 = {1, 0, 3, 2, 5, 4, 7, 6}, swap2 = {2, 3, 0, 1, 6, 7, 4, 5}, swap4 = {4, 5, 6, 7, 0, 1, 2, 3};
    const Lanes sign1 = {1, -1, 1, -1, 1, -1, 1, -1}, sign2 = {1, 1, -1, -1, 1, 1, -1, -1},
                sign4 = {1, 1, 1, 1, -1, -1, -1, -1};
    for (std::size_t i = 0; i < n; i += LANES) {
        Lanes x = *reinterpret_cast<Lanes*>(data + i);
        x = x * sign1 + __builtin_shuffle(x, swap1);
        x = x * sign2 + __builtin_shuffle(x, swap2);
        x = x * sign4 + __builtin_shuffle(x, swap4);
        *reinterpret_cast<Lanes*>(data + i) = x;
    }
    across_rows(data, n / LANES, LANES);
}

using RowKernel = void (*)(double*, std::size_t);
using PanelKernel = void (*)(double*, std::size_t);

void row_portable(double* data, std::size_t n) { transform_row(data, n); }
void panel_portable(double* data, std::size_t n_rows) { across_rows(data, n_rows, PANEL); }
#if defined(__x86_64__)
ASYMHASH_AVX2 void row_avx2(double* data, std::size_t n) { transform_row(data, n); }
ASYMHASH_AVX2 void panel_avx2(double* data, std::size_t n) { across_rows(data, n, PANEL); }
ASYMHASH_AVX512 void row_avx512(double* data, std::size_t n) { transform_row(data, n); }
ASYMHASH_AVX512 void panel_avx512(double* data, std::size_t n) { across_rows(data, n, PANEL); }
#endif

// The next address that a register can be loaded from in one piece.
double* aligned(double* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return reinterpret_cast<double*>((address + sizeof(Lanes) - 1) / sizeof(Lanes) * sizeof(Lanes));
}

struct Kernels {
    RowKernel row;
    PanelKernel panel;
};

Kernels kernels_of(Level level) {
#if defined(__x86_64__)
    if (level == Level::avx512) return {row_avx512, panel_avx512};
    if (level == Level::avx2) return {row_avx2, panel_avx2};
#else
    (void)level;
#endif
    return {row_portable, panel_portable};
}

// Zeroed memory. A large cube lies in pages of 2 MiB where the system has them: a panel touches one line of every row,
// and with pages of 4 KiB each of them would be another page. A small one comes from the heap, whose pages are there
// already: at 16 bits the system's zeroing of fresh pages costs as much as the transform.
class Numbers {
   public:
    explicit Numbers(std::size_t count) : bytes_(count * sizeof(double)), is_mapped_(bytes_ >= HUGE) {
        if (!is_mapped_) {
            data_ = static_cast<double*>(::operator new(bytes_, std::align_val_t{sizeof(Lanes)}));
            std::memset(data_, 0, bytes_);
            return;
        }
        void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        madvise(memory, bytes_, MADV_HUGEPAGE);
#endif
        data_ = static_cast<double*>(memory);
    }
    ~Numbers() {
        if (is_mapped_) {
            munmap(data_, bytes_);
        } else {
            ::operator delete(data_, std::align_val_t{sizeof(Lanes)});
        }
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;
    double* data() { return data_; }

   private:
    static constexpr std::size_t HUGE = std::size_t{4} << 20;
    std::size_t bytes_;
    bool is_mapped_;
    double* data_;
};

// A code as a number; bits beyond n_bits are left out, so that it always is a valid place.
inline std::size_t place_of(const Codes& codes, std::size_t i, std::size_t mask) {
    return static_cast<std::size_t>(codes.words[i * codes.n_words]) & mask;
}

class Cube {
   public:
    Cube(std::size_t n_bits, std::size_t n_threads)
        : n_bits_(std::max<std::size_t>(n_bits, 3)),  // shorter codes are codes of three bits, the others zero
          row_bits_(std::min(n_bits_, ROW_BITS)),
          size_(std::size_t{1} << n_bits_),
          n_threads_(std::min(n_threads, size_ / NUMBERS_PER_THREAD + 1)),
          kernels_(kernels_of(current_level())),
          numbers_(size_) {}

    double* data() { return numbers_.data(); }
    std::size_t size() const { return size_; }
    std::size_t mask() const { return size_ - 1; }

    void transform_rows() {
        const std::size_t row = std::size_t{1} << row_bits_;
        parallel_for(n_rows(), n_threads_, [&](std::size_t r) { kernels_.row(data() + r * row, row); });
    }

    // Transforms columns, calls visit(row, first column, PANEL numbers) for each of them, and transforms back if asked.
    template <typename Visit>
    void transform_columns(bool back, Visit visit) {
        const std::size_t row = std::size_t{1} << row_bits_;
        const std::size_t width = std::min(PANEL, row);
        parallel_for(row / width, n_threads_, [&](std::size_t panel) {
            std::vector<double> buffer(n_rows() * PANEL + LANES);
            double* columns = aligned(buffer.data());
            double* first = data() + panel * width;
            for (std::size_t r = 0; r < n_rows(); ++r) std::copy(first + r * row, first + r * row + width, columns + r * PANEL);
            kernels_.panel(columns, n_rows());
            for (std::size_t r = 0; r < n_rows(); ++r) visit(r, panel * width, width, columns + r * PANEL);
            if (!back) return;
            kernels_.panel(columns, n_rows());
            for (std::size_t r = 0; r < n_rows(); ++r) std::copy(columns + r * PANEL, columns + r * PANEL + width, first + r * row);
        });
    }

    std::size_t n_rows() const { return size_ >> row_bits_; }
    std::size_t row_bits() const { return row_bits_; }

   private:
    std::size_t n_bits_, row_bits_, size_, n_threads_;
    Kernels kernels_;
    Numbers numbers_;
};

std::size_t weight(std::size_t frequency) { return static_cast<std::size_t>(__builtin_popcountll(frequency)); }

}  // namespace

void walsh_product(const Codes& queries, const Codes& items, std::size_t n_bits, const double* spectrum,
                   const double* x, double* out, std::size_t n_threads) {
    Cube cube(n_bits, n_threads);
    double* data = cube.data();
    const std::size_t mask = (std::size_t{1} << n_bits) - 1;
    for (std::size_t j = 0; j < items.n_items; ++j) data[place_of(items, j, mask)] += x[j];
    cube.transform_rows();
    std::vector<std::size_t> weights(std::size_t{1} << cube.row_bits());
    for (std::size_t c = 0; c < weights.size(); ++c) weights[c] = weight(c & mask);
    cube.transform_columns(true, [&](std::size_t row, std::size_t column, std::size_t width, double* numbers) {
        const std::size_t high = weight(row);
        for (std::size_t c = 0; c < width; ++c) numbers[c] *= spectrum[high + weights[column + c]];
    });
    cube.transform_rows();
    // Codes of less than three bits were doubled once for each bit that was added.
    const double scale = static_cast<double>(mask + 1) / static_cast<double>(cube.size());
    for (std::size_t i = 0; i < queries.n_items; ++i) out[i] = data[place_of(queries, i, mask)] * scale;
}

void walsh_correlation(const Codes& queries, const Codes& items, std::size_t n_bits, std::int64_t* weights,
                       std::size_t n_threads) {
    const std::size_t mask = (std::size_t{1} << n_bits) - 1;
    Cube mine(n_bits, n_threads), theirs(n_bits, n_threads);
    for (std::size_t i = 0; i < queries.n_items; ++i) mine.data()[place_of(queries, i, mask)] += 1.0;
    for (std::size_t j = 0; j < items.n_items; ++j) theirs.data()[place_of(items, j, mask)] += 1.0;
    for (Cube* cube : {&mine, &theirs}) {
        cube->transform_rows();
        if (cube->n_rows() > 1) {
            const std::size_t row = std::size_t{1} << cube->row_bits();
            double* data = cube->data();
            cube->transform_columns(false, [&](std::size_t r, std::size_t column, std::size_t width, double* numbers) {
                std::copy(numbers, numbers + width, data + r * row + column);
            });
        }
    }
    // Whole numbers below 2^53 all along, so the order does not matter.
    std::fill(weights, weights + n_bits + 1, 0);
    const double* a = mine.data();
    const double* b = theirs.data();
    for (std::size_t s = 0; s <= mask; ++s) {
        weights[weight(s)] += static_cast<std::int64_t>(a[s]) * static_cast<std::int64_t>(b[s]);
    }
}

}  // namespace asymhash
