// Fork and join: the one way in which kernels use threads.
//
// A kernel cuts its work into parts whose results do not depend on who computes them; threads take parts one
// by one, so a slow core takes fewer. Threads live for one call: starting one costs about 20 microseconds,
// so kernels ask for them only where there is that much work (useful_threads).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace asymhash {

// How many of n_threads are worth starting for `work` words of 64 bits to compare or add. 2^20 of them take 40 to 80
// microseconds in one thread, two to four times what a thread takes to start.
inline std::size_t useful_threads(std::size_t n_threads, std::size_t work) {
    return std::clamp<std::size_t>(work >> 20, 1, std::max<std::size_t>(n_threads, 1));
}

// Calls run(part) once for every part below n_parts, in any order, in at most n_threads threads of which the
// caller's is one. The first exception ends the taking of parts and is thrown again to the caller.
template <typename Run>
void parallel_for(std::size_t n_parts, std::size_t n_threads, Run&& run) {
    n_threads = std::min(n_threads, n_parts);
    if (n_threads <= 1) {
        for (std::size_t part = 0; part < n_parts; ++part) run(part);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto work = [&]() noexcept {
        for (std::size_t part; (part = next.fetch_add(1)) < n_parts;) {
            try {
                run(part);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(failing);
                if (!failure) failure = std::current_exception();
                next.store(n_parts);
            }
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(n_threads - 1);
    try {
        while (helpers.size() + 1 < n_threads) helpers.emplace_back(work);
    } catch (const std::exception&) {
        // No more threads, or memory for them, to be had: those that run, and the caller's, do all parts.
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace asymhash
