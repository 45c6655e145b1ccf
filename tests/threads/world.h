// SPDX-License-Identifier: Apache-2.0
// What eight threads share, and what each of them may do with it while the others do the same
// (spec 004, "Threading"): everything of TensorRT's list of thread-safe operations, and every
// object that its table calls one per thread, one per thread.
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

/// The objects that all threads use. On a GPU (a QuietGpu) results are not looked at.
struct World {
    explicit World(bool on_gpu);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Device device() const { return on_gpu ? Device::kGPU : Device::kCPU; }
    /// What a result that is `v` on the CPU can be held against.
    std::optional<float> value(float v) const { return on_gpu ? std::nullopt : std::optional(v); }
    /// Deletes everything that the library made.
    void let_go();
    /// A call of this thread is about to be an error, of which a recorder is told.
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
    /// Lets others go first, so that what was asked for is looked at after they did something.
    void pause() {
        std::this_thread::sleep_for(std::chrono::microseconds(below(2) == 0 ? 0 : below(200)));
    }
};

struct Action {
    const char* name;
    void (*run)(World& w, Worker& me);
};

/// With builders, networks, parsers, timing caches.
std::span<const Action> build_actions();
/// With the runtime, engines, contexts, refitters, inspectors, caches of kernels.
std::span<const Action> run_actions();
/// With what the process has one of: plugins, sources of kernels, folders.
std::span<const Action> process_actions();

} // namespace ingot::test
