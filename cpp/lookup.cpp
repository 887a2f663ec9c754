#include "lookup.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace asymhash {

namespace {

// ---- portable

inline std::uint16_t count_bits(std::uint16_t bits) {
    std::uint16_t x = bits;
    x = static_cast<std::uint16_t>(x - ((x >> 1) & 0x5555));
    x = static_cast<std::uint16_t>((x & 0x3333) + ((x >> 2) & 0x3333));
    x = static_cast<std::uint16_t>((x + (x >> 4)) & 0x0f0f);
    return static_cast<std::uint16_t>((x + (x >> 8)) & 0x1f);
}

void distances_portable(const Block& block, const QueryGroup& queries, std::uint16_t (*distances)[PLANE_BLOCK]) {
    for (std::size_t r = 0; r < GROUP; ++r) {
        std::uint16_t* row = distances[r];
        for (std::size_t i = 0; i < block.n_items; ++i) row[i] = 0;
        for (std::size_t p = 0; p < block.n_planes; ++p) {
            const std::uint16_t* plane = block.planes + p * PLANE_BLOCK;
            const std::uint16_t query = queries.planes[r][p];
            for (std::size_t i = 0; i < block.n_items; ++i) {
                row[i] = static_cast<std::uint16_t>(row[i] + count_bits(static_cast<std::uint16_t>(plane[i] ^ query)));
            }
        }
    }
}

void product_portable(const Block& block, const QueryGroup& queries, const Table& table, const std::int16_t* x,
                      std::int64_t* sums) {
    std::uint16_t distances[GROUP][PLANE_BLOCK];
    distances_portable(block, queries, distances);
    for (std::size_t r = 0; r < GROUP; ++r) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < block.n_items; ++i) sum += table.entries[distances[r][i]] * x[i];
        sums[r] += sum;
    }
}

void masked_portable(const Block& block, const QueryGroup& queries, const Table& dissimilar, const Table& similar,
                     const GroupMasks& masks, const std::int16_t* x, std::int64_t* sums) {
    std::uint16_t distances[GROUP][PLANE_BLOCK];
    distances_portable(block, queries, distances);
    for (std::size_t r = 0; r < GROUP; ++r) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < block.n_items; ++i) {
            const bool is_similar = (masks[r][i / 8] >> (i % 8)) & 1;
            sum += (is_similar ? similar : dissimilar).entries[distances[r][i]] * x[i];
        }
        sums[r] += sum;
    }
}

#if defined(__x86_64__)

// ---- AVX2: 16 items a register; bits are counted by looking up both nibbles of every byte

// Number of planes whose byte counts fit in a byte: 31 * 8 = 248.
constexpr std::size_t AVX2_MAX_PLANES = 31;

ASYMHASH_AVX2 inline __m256i count_bytes(__m256i x) {
    const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    const __m256i low = _mm256_shuffle_epi8(counts, _mm256_and_si256(x, nibble));
    return _mm256_add_epi8(low, _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble)));
}

// Distances of 16 items in 16-bit lanes.
ASYMHASH_AVX2 inline __m256i distances_of_16(const Block& block, const std::uint16_t* query, std::size_t first) {
    __m256i bytes = _mm256_setzero_si256();
    for (std::size_t p = 0; p < block.n_planes; ++p) {
        const std::uint16_t* plane = block.planes + p * PLANE_BLOCK + first;
        const __m256i items = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(plane));
        const __m256i mine = _mm256_set1_epi16(static_cast<short>(query[p]));
        bytes = _mm256_add_epi8(bytes, count_bytes(_mm256_xor_si256(items, mine)));
    }
    return _mm256_add_epi16(_mm256_and_si256(bytes, _mm256_set1_epi16(0x00ff)), _mm256_srli_epi16(bytes, 8));
}

ASYMHASH_AVX2 void distances_avx2(const Block& block, const QueryGroup& queries,
                                  std::uint16_t (*distances)[PLANE_BLOCK]) {
    for (std::size_t r = 0; r < GROUP; ++r) {
        for (std::size_t i = 0; i < block.n_items; i += 16) {
            const __m256i found = distances_of_16(block, queries.planes[r], i);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(distances[r] + i), found);
        }
    }
}

// Low and high bytes of a table of at most 256 entries, 16 to a register; pshufb looks up 16 entries at a time.
struct ByteTables {
    __m256i low[16], high[16];
    std::size_t n_groups;
};

ASYMHASH_AVX2 inline ByteTables byte_tables(const Table& table) {
    ByteTables bytes;
    bytes.n_groups = (table.n_entries + 15) / 16;
    for (std::size_t g = 0; g < bytes.n_groups; ++g) {
        alignas(16) std::uint8_t low[16], high[16];
        for (std::size_t e = 0; e < 16; ++e) {
            const auto entry = static_cast<std::uint16_t>(table.entries[16 * g + e]);
            low[e] = static_cast<std::uint8_t>(entry & 0xff);
            high[e] = static_cast<std::uint8_t>(entry >> 8);
        }
        bytes.low[g] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(low)));
        bytes.high[g] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(high)));
    }
    return bytes;
}

// 32 rounds add 2 * 2 * 32767 * 511 each to a 32-bit lane, which just fits.
constexpr std::size_t AVX2_RUN = 32 * 32;

ASYMHASH_AVX2 inline std::int64_t run_avx2(const Block& block, const std::uint16_t* query, const ByteTables& tables,
                                           const std::int16_t* x, std::size_t begin, std::size_t end) {
    __m256i sum = _mm256_setzero_si256();
    for (std::size_t i = begin; i < end; i += 32) {
        const __m256i distances =
            _mm256_packus_epi16(distances_of_16(block, query, i), distances_of_16(block, query, i + 16));
        __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
        for (std::size_t g = 0; g < tables.n_groups; ++g) {
            // Entries of this group get an index 0x70..0x7f, all others one with the top bit, which reads zero.
            const __m256i inside = _mm256_sub_epi8(distances, _mm256_set1_epi8(static_cast<char>(16 * g)));
            const __m256i index = _mm256_adds_epu8(inside, _mm256_set1_epi8(0x70));
            low = _mm256_or_si256(low, _mm256_shuffle_epi8(tables.low[g], index));
            high = _mm256_or_si256(high, _mm256_shuffle_epi8(tables.high[g], index));
        }
        // Packing and unpacking both stay inside 128-bit lanes, so the items come back in their order.
        const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
        const __m256i x1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        const __m256i x2 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i + 16));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(first, x1));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(second, x2));
    }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    std::int64_t total = 0;
    for (const std::int32_t lane : lanes) total += lane;
    return total;
}

ASYMHASH_AVX2 void product_avx2(const Block& block, const QueryGroup& queries, const Table& table,
                                const std::int16_t* x, std::int64_t* sums) {
    const ByteTables tables = byte_tables(table);
    for (std::size_t r = 0; r < GROUP; ++r) {
        for (std::size_t i = 0; i < block.n_items; i += AVX2_RUN) {
            const std::size_t end = std::min(i + AVX2_RUN, block.n_items);
            sums[r] += run_avx2(block, queries.planes[r], tables, x, i, end);
        }
    }
}

// ---- AVX-512: 32 items a register, tables in registers

// Distances of 32 items in 16-bit lanes; P is the number of planes, 0 where it is known only at run time.
template <std::size_t P>
ASYMHASH_AVX512 inline __m512i distances_of_32(const Block& block, const std::uint16_t* query, std::size_t first) {
    const std::size_t n_planes = P == 0 ? block.n_planes : P;
    __m512i distances = _mm512_setzero_si512();
    for (std::size_t p = 0; p < n_planes; ++p) {
        const __m512i items = _mm512_loadu_si512(block.planes + p * PLANE_BLOCK + first);
        const __m512i mine = _mm512_set1_epi16(static_cast<short>(query[p]));
        distances = _mm512_add_epi16(distances, _mm512_popcnt_epi16(_mm512_xor_si512(items, mine)));
    }
    return distances;
}

template <std::size_t P>
ASYMHASH_AVX512 void distances_avx512(const Block& block, const QueryGroup& queries,
                                      std::uint16_t (*distances)[PLANE_BLOCK]) {
    for (std::size_t r = 0; r < GROUP; ++r) {
        for (std::size_t i = 0; i < block.n_items; i += 32) {
            _mm512_storeu_si512(distances[r] + i, distances_of_32<P>(block, queries.planes[r], i));
        }
    }
}

// A table of up to 128 entries in registers: T of them, with 32 entries each.
template <std::size_t T>
struct Registers {
    __m512i entries[T];
};

// Entries of 32 distances. T is the number of registers that the table fills, or 0 where it does not fit in four:
// then it is looked up 64 entries at a time.
template <std::size_t T>
ASYMHASH_AVX512 inline __m512i look_up(__m512i distances, const Table& table, const Registers<T == 0 ? 2 : T>& first) {
    if constexpr (T == 1) return _mm512_permutexvar_epi16(distances, first.entries[0]);
    __m512i found = _mm512_permutex2var_epi16(first.entries[0], distances, first.entries[1]);
    if constexpr (T == 4) {
        const __mmask32 upper = _mm512_test_epi16_mask(distances, _mm512_set1_epi16(64));
        const __m512i beyond = _mm512_permutex2var_epi16(first.entries[2], distances, first.entries[3]);
        return _mm512_mask_mov_epi16(found, upper, beyond);
    }
    if constexpr (T == 0) {
        const __m512i high_bits = _mm512_srli_epi16(distances, 6);
        for (std::size_t g = 1; g * 64 < table.n_entries; ++g) {
            const __mmask32 mine = _mm512_cmpeq_epi16_mask(high_bits, _mm512_set1_epi16(static_cast<short>(g)));
            const __m512i low = _mm512_loadu_si512(table.entries + 64 * g);
            const __m512i high = _mm512_loadu_si512(table.entries + 64 * g + 32);
            found = _mm512_mask_mov_epi16(found, mine, _mm512_permutex2var_epi16(low, distances, high));
        }
    }
    return found;
}

template <std::size_t T>
ASYMHASH_AVX512 inline Registers<T == 0 ? 2 : T> registers_of(const Table& table) {
    Registers<T == 0 ? 2 : T> registers;
    for (std::size_t t = 0; t < (T == 0 ? 2 : T); ++t) registers.entries[t] = _mm512_loadu_si512(table.entries + 32 * t);
    return registers;
}

// Sums of 32-bit lanes, which fit since a block has PLANE_BLOCK items and |x| is at most MAX_WEIGHT.
ASYMHASH_AVX512 inline std::int64_t total_of(__m512i lanes) {
    const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(lanes));
    const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(lanes, 1));
    return _mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
}

template <std::size_t P, std::size_t T>
ASYMHASH_AVX512 void product_avx512(const Block& block, const QueryGroup& queries, const Table& table,
                                    const std::int16_t* x, std::int64_t* sums) {
    const auto first = registers_of<T>(table);
    __m512i parts[GROUP];
    for (std::size_t r = 0; r < GROUP; ++r) parts[r] = _mm512_setzero_si512();
    for (std::size_t i = 0; i < block.n_items; i += 32) {
        const __m512i weights = _mm512_loadu_si512(x + i);
        for (std::size_t r = 0; r < GROUP; ++r) {
            const __m512i distances = distances_of_32<P>(block, queries.planes[r], i);
            parts[r] = _mm512_dpwssd_epi32(parts[r], look_up<T>(distances, table, first), weights);
        }
    }
    for (std::size_t r = 0; r < GROUP; ++r) sums[r] += total_of(parts[r]);
}

template <std::size_t P, std::size_t T>
ASYMHASH_AVX512 void masked_avx512(const Block& block, const QueryGroup& queries, const Table& dissimilar,
                                   const Table& similar, const GroupMasks& masks, const std::int16_t* x,
                                   std::int64_t* sums) {
    const auto first = registers_of<T>(dissimilar), others = registers_of<T>(similar);
    __m512i parts[GROUP];
    for (std::size_t r = 0; r < GROUP; ++r) parts[r] = _mm512_setzero_si512();
    for (std::size_t i = 0; i < block.n_items; i += 32) {
        const __m512i weights = _mm512_loadu_si512(x + i);
        for (std::size_t r = 0; r < GROUP; ++r) {
            const __m512i distances = distances_of_32<P>(block, queries.planes[r], i);
            std::uint32_t mask;
            std::memcpy(&mask, masks[r] + i / 8, sizeof mask);
            const __m512i entries = _mm512_mask_mov_epi16(look_up<T>(distances, dissimilar, first), mask,
                                                          look_up<T>(distances, similar, others));
            parts[r] = _mm512_dpwssd_epi32(parts[r], entries, weights);
        }
    }
    for (std::size_t r = 0; r < GROUP; ++r) sums[r] += total_of(parts[r]);
}

template <std::size_t P>
MaskedKernel masked_kernel_avx512(std::size_t n_entries) {
    if (n_entries <= 32) return masked_avx512<P, 1>;
    if (n_entries <= 64) return masked_avx512<P, 2>;
    return masked_avx512<P, 0>;
}

template <std::size_t P>
ProductKernel product_kernel_avx512(std::size_t n_entries) {
    if (n_entries <= 32) return product_avx512<P, 1>;
    if (n_entries <= 64) return product_avx512<P, 2>;
    if (n_entries <= 128) return product_avx512<P, 4>;
    return product_avx512<P, 0>;
}

#endif

}  // namespace

ProductKernel product_kernel(Level level, std::size_t n_planes, std::size_t n_entries) {
#if defined(__x86_64__)
    if (level == Level::avx512) {
        switch (n_planes) {
            case 1: return product_kernel_avx512<1>(n_entries);
            case 2: return product_kernel_avx512<2>(n_entries);
            case 3: return product_kernel_avx512<3>(n_entries);
            case 4: return product_kernel_avx512<4>(n_entries);
            case 8: return product_kernel_avx512<8>(n_entries);
            default: return product_kernel_avx512<0>(n_entries);
        }
    }
    if (level == Level::avx2 && n_entries <= 256 && n_planes <= AVX2_MAX_PLANES) return product_avx2;
#else
    (void)level, (void)n_planes, (void)n_entries;
#endif
    return product_portable;
}

MaskedKernel masked_kernel(Level level, std::size_t n_planes, std::size_t n_entries) {
#if defined(__x86_64__)
    if (level == Level::avx512) {
        switch (n_planes) {
            case 1: return masked_kernel_avx512<1>(n_entries);
            case 2: return masked_kernel_avx512<2>(n_entries);
            case 3: return masked_kernel_avx512<3>(n_entries);
            case 4: return masked_kernel_avx512<4>(n_entries);
            default: return masked_kernel_avx512<0>(n_entries);
        }
    }
#else
    (void)level, (void)n_planes, (void)n_entries;
#endif
    return masked_portable;
}

DistanceKernel plane_distance_kernel(Level level, std::size_t n_planes) {
#if defined(__x86_64__)
    if (level == Level::avx512) {
        switch (n_planes) {
            case 1: return distances_avx512<1>;
            case 2: return distances_avx512<2>;
            case 3: return distances_avx512<3>;
            case 4: return distances_avx512<4>;
            case 8: return distances_avx512<8>;
            default: return distances_avx512<0>;
        }
    }
    if (level == Level::avx2 && n_planes <= AVX2_MAX_PLANES) return distances_avx2;
#else
    (void)level, (void)n_planes;
#endif
    return distances_portable;
}

}  // namespace asymhash
