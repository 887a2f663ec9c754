#include "cpu.hpp"

#include <atomic>
#include <stdexcept>

namespace asymhash {

namespace {

constexpr const char* NAMES[] = {"portable", "avx2", "avx512"};

Level detect() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return Level::portable;
    // The kernels of this level count bits with VPOPCNTDQ and BITALG, look up with VBMI and add with VNNI:
    // Ice Lake, Zen 4 and later. AVX-512 without them gains little over AVX2.
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vpopcntdq") &&
                            __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vnni");
    return has_avx512 ? Level::avx512 : Level::avx2;
#else
    return Level::portable;
#endif
}

std::atomic<Level>& switch_of_levels() {
    static std::atomic<Level> level{best_level()};
    return level;
}

}  // namespace

Level best_level() {
    static const Level level = detect();
    return level;
}

Level current_level() { return switch_of_levels().load(std::memory_order_relaxed); }

std::string level_name(Level level) { return NAMES[static_cast<int>(level)]; }

std::vector<std::string> level_names() {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(best_level()); ++i) names.emplace_back(NAMES[i]);
    return names;
}

void force_level(const std::string& name) {
    for (int i = 0; i <= static_cast<int>(best_level()); ++i) {
        if (name == NAMES[i]) {
            switch_of_levels().store(static_cast<Level>(i), std::memory_order_relaxed);
            return;
        }
    }
    throw std::invalid_argument("this machine has no kernel level " + name);
}

}  // namespace asymhash
