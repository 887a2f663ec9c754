// Which instruction level this machine has, and the one switch that tests use to force a lower one.
#pragma once

#include <string>
#include <vector>

// What a function of a level may use; the same lists as in cpu.cpp. Those of the highest level came together in Ice Lake
// and Zen 4; AVX-512 without them is treated as AVX2.
#define ASYMHASH_AVX2 __attribute__((target("avx2,fma")))
#define ASYMHASH_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx512bitalg,avx512vpopcntdq")))

namespace asymhash {

// Ordered: a machine that has one level has all those before it.
enum class Level { portable = 0, avx2 = 1, avx512 = 2 };

// The best level of this machine.
Level best_level();

// The level in use: the best one, or the one that was forced.
Level current_level();

// Names of the usable levels, lowest first.
std::vector<std::string> level_names();
std::string level_name(Level level);

// Throws std::invalid_argument when this machine does not have the level.
void force_level(const std::string& name);

}  // namespace asymhash
