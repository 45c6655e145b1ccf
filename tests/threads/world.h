// SPDX-License-Identifier: Apache-2.0
// The objects that eight threads share, and the actions of each of them while the others act too
// (spec 004, "Threading"): everything in TensorRT's list of thread-safe operations, and each object
// that its table calls one per thread, one per thread.
#pragma once

#include "threads/fixture.h"
#include "threads/twice_plugin.h"

#include <chrono>
#include <optional>
#include <span>

namespace ingot {
class Backend;
}

namespace ingot::test {

/// The objects that all threads use. On a GPU (a QuietGpu) results are not checked.
struct World {
    explicit World(bool on_gpu);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Device device() const { return on_gpu ? Device::kGPU : Device::kCPU; }
    /// The value to compare a result with, which is `v` on the CPU.
    std::optional<float> value(float v) const { return on_gpu ? std::nullopt : std::optional(v); }
    /// Deletes everything that the library made.
    void let_go();
    /// The next call of this thread is an error, which a recorder receives.
    void expect_error() { errors.fetch_add(1, std::memory_order_relaxed); }
    std::unique_ptr<nv::ICudaEngine> load(const nv::IHostMemory& bytes) const {
        return test::load(*runtime, bytes);
    }

    bool on_gpu;
    std::string folder; // for files, removed at the end
    Allocator allocator;
    Recorder recorder; // of builder and runtime
    TwiceCreator twice;
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::IBuilderConfig> config; // makes caches of timings, builds nothing
    std::unique_ptr<nv::ITimingCache> timings;
    std::unique_ptr<nv::IHostMemory> product; // times 3
    std::unique_ptr<nv::IHostMemory> refittable;
    std::unique_ptr<nv::IHostMemory> streamed;
    std::unique_ptr<nv::IHostMemory> plugged; // 2 x
    std::unique_ptr<nv::IRuntime> runtime;
    std::unique_ptr<nv::ICudaEngine> engine;         // of product
    std::unique_ptr<nv::ICudaEngine> plugged_engine; // of plugged
    std::unique_ptr<nv::IRuntimeCache> kernels;
    std::atomic<int32_t> errors{0}; // expected
};

/// One of the eight.
struct Worker {
    int number;
    std::mt19937_64 random;
    int64_t below(int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }
    /// Lets others run first, so that results are checked after they acted.
    void pause() {
        std::this_thread::sleep_for(std::chrono::microseconds(below(2) == 0 ? 0 : below(200)));
    }
};

struct Action {
    const char* name;
    void (*run)(World& w, Worker& me);
};

/// For builders, networks, parsers, timing caches.
std::span<const Action> build_actions();
/// For the runtime, engines, contexts, refitters, inspectors, kernel caches.
std::span<const Action> run_actions();
/// For process-wide objects: plugins, sources of kernels, folders.
std::span<const Action> process_actions();

} // namespace ingot::test
