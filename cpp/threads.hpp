// Fork and join: the work is cut into parts, and every part is done once, by whichever thread is free.
//
// Nothing here may change a result: a part's work must not depend on who does it or when.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace asymhash {

// Calls work(part) for every part in 0..n_parts-1 on at most n_threads threads, this one among them.
// The first exception of any part is thrown again here, once all threads have stopped.
template <typename Work>
void parallel_for(std::size_t n_parts, std::size_t n_threads, Work work) {
    n_threads = std::min(n_threads, n_parts);
    if (n_threads <= 1) {
        for (std::size_t part = 0; part < n_parts; ++part) work(part);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::vector<std::exception_ptr> errors(n_threads);
    auto run = [&](std::size_t thread) {
        try {
            for (std::size_t part; (part = next.fetch_add(1)) < n_parts;) work(part);
        } catch (...) {
            errors[thread] = std::current_exception();
            next.store(n_parts);
        }
    };
    std::vector<std::thread> others;
    for (std::size_t thread = 1; thread < n_threads; ++thread) {
        try {
            others.emplace_back(run, thread);
        } catch (...) {  // no more threads to be had: those that run do the work
            break;
        }
    }
    run(0);
    for (std::thread& other : others) other.join();
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace asymhash
