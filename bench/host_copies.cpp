// SPDX-License-Identifier: Apache-2.0
// Ways of a request's body to a GPU: copies out of memory that another core has just written, by
// one thread and by several, into pageable and pinned memory, and the transfers behind them. Prints
// JSON, median microseconds. Without a driver it measures what needs none.
//   g++ -O2 -march=x86-64-v3 -std=c++20 -Isrc bench/host_copies.cpp build/libingot_base.a -ldl -o
//   host_copies host_copies [BYTES] [REPEATS]
#include "base/cpus.h"
#include "base/thread_pool.h"

#include <dlfcn.h>
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

void keep_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    sched_setaffinity(0, sizeof one, &one);
}

/// Past the caches: the reader of the target is the GPU.
void copy_streaming(std::byte* to, const std::byte* from, size_t bytes) {
    constexpr size_t ahead = 1024;
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(from + at + ahead), _MM_HINT_T0);
        for (size_t half : {0U, 32U}) {
            __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + half));
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + half), v);
        }
    }
    std::memcpy(to + at, from + at, bytes - at);
    _mm_sfence();
}

struct Cuda {
    using Address = unsigned long long;
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    Address device = 0;
    void* stream = nullptr;

    template <class... Args>
    bool call(const char* name, Args... args) const {
        auto* f = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
        return f != nullptr && f(args...) == 0;
    }
    bool open(size_t bytes) {
        int gpu = 0;
        void* context = nullptr;
        return library != nullptr && call("cuInit", 0U) && call("cuDeviceGet", &gpu, 0) &&
               call("cuDevicePrimaryCtxRetain", &context, gpu) &&
               call("cuCtxSetCurrent", context) && call("cuMemAlloc_v2", &device, bytes) &&
               call("cuStreamCreate", &stream, 1U);
    }
    void transfer(const void* from, size_t bytes) const {
        call("cuMemcpyHtoDAsync_v2", device, from, bytes, stream);
        call("cuStreamSynchronize", stream);
    }
};

class Bench {
public:
    Bench(size_t bytes, int repeats)
        : bytes_(bytes), repeats_(repeats), source_(allocate(bytes + 4096)),
          cpus_(ingot::usable_cpus()) {}
    static std::byte* allocate(size_t bytes) {
        auto* memory = static_cast<std::byte*>(
            std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)); // NOLINT
        std::memset(memory, 1, bytes);
        return memory;
    }
    std::byte* source() const { return source_; }
    /// Another core writes the source; after `gap` and `before` the work is timed.
    void time(
        const std::string& name, microseconds gap, const std::function<void()>& work,
        const std::function<void()>& before = [] {}) {
        std::vector<double> times;
        for (int i = 0; i < repeats_; ++i) {
            std::thread([&] {
                keep_to(cpus_.front());
                std::memset(source_, i, bytes_);
            }).join();
            if (gap.count() > 0) {
                std::this_thread::sleep_for(gap);
            }
            before();
            Clock::time_point begin = Clock::now();
            work();
            times.push_back(
                std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
        std::sort(times.begin(), times.end());
        std::printf("%s\n \"%s, after %d us\": %.1f", first_ ? "{" : ",", name.c_str(),
                    static_cast<int>(gap.count()), times[times.size() / 2]);
        std::fflush(stdout);
        first_ = false;
    }

private:
    size_t bytes_;
    int repeats_;
    std::byte* source_;
    std::vector<int> cpus_;
    bool first_ = true;
};

void copies(Bench& bench, std::byte* target, size_t bytes, const std::string& kind) {
    for (microseconds gap : {microseconds(0), microseconds(1000)}) {
        bench.time("memcpy to " + kind, gap, [&] { std::memcpy(target, bench.source(), bytes); });
        bench.time("streaming to " + kind, gap,
                   [&] { copy_streaming(target, bench.source(), bytes); });
        for (int threads : {2, 4, 8}) {
            if (threads > static_cast<int>(ingot::usable_cpus().size())) {
                continue;
            }
            ingot::ThreadPool pool(threads);
            auto copy = [&] {
                pool.parallel_for(static_cast<int64_t>(bytes), 64 << 10, [&](int64_t a, int64_t b) {
                    std::memcpy(target + a, bench.source() + a, static_cast<size_t>(b - a));
                });
            };
            std::string name = std::to_string(threads) + " threads to " + kind;
            bench.time(name, gap, copy);
            bench.time(name + " that were woken 15 us before", gap, copy, [&] {
                pool.parallel_for(threads, 1, [](int64_t, int64_t) {});
                Clock::time_point end = Clock::now() + microseconds(15);
                while (Clock::now() < end) {
                }
            });
        }
    }
}

/// A body on its way to the GPU: copied into pinned memory and sent, as a whole or in pieces, of
/// which each is sent while the next is copied.
void copies_with_transfers(Bench& bench, const Cuda& cuda, std::byte* pinned, size_t bytes) {
    for (int threads : {1, 4}) {
        ingot::ThreadPool pool(threads);
        for (size_t pieces : {1U, 2U, 4U, 8U}) {
            size_t piece = (bytes / pieces + 4095) / 4096 * 4096;
            auto send = [&] {
                for (size_t at = 0; at < bytes; at += piece) {
                    size_t length = std::min(piece, bytes - at);
                    pool.parallel_for(static_cast<int64_t>(length), 32 << 10,
                                      [&](int64_t a, int64_t b) {
                                          std::memcpy(pinned + at + a, bench.source() + at + a,
                                                      static_cast<size_t>(b - a));
                                      });
                    cuda.call("cuMemcpyHtoDAsync_v2", cuda.device + at, pinned + at, length,
                              cuda.stream);
                }
                cuda.call("cuStreamSynchronize", cuda.stream);
            };
            for (microseconds gap : {microseconds(0), microseconds(1000)}) {
                bench.time("copied and sent in " + std::to_string(pieces) + " pieces by " +
                               std::to_string(threads) + " threads",
                           gap, send);
            }
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 602112; // an image
    int repeats = argc > 2 ? std::atoi(argv[2]) : 300;
    Bench bench(bytes, repeats);
    std::unique_ptr<std::byte, void (*)(void*)> pageable(Bench::allocate(bytes), std::free);
    copies(bench, pageable.get(), bytes, "pageable memory");
    Cuda cuda;
    if (cuda.open(bytes)) {
        std::byte* pinned = nullptr;
        if (cuda.call("cuMemHostAlloc", reinterpret_cast<void**>(&pinned), bytes, 1U)) {
            std::memset(pinned, 1, bytes);
            copies(bench, pinned, bytes, "pinned memory");
            bench.time("transfer from pinned memory", microseconds(0),
                       [&] { cuda.transfer(pinned, bytes); });
            copies_with_transfers(bench, cuda, pinned, bytes);
        }
        bench.time("transfer from pageable memory", microseconds(0),
                   [&] { cuda.transfer(bench.source(), bytes); });
        if (cuda.call("cuMemHostRegister_v2", static_cast<void*>(bench.source()), bytes, 0U)) {
            bench.time("transfer from registered memory", microseconds(0),
                       [&] { cuda.transfer(bench.source(), bytes); });
        }
    }
    std::printf("\n}\n");
    return 0;
}
