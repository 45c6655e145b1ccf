// SPDX-License-Identifier: Apache-2.0
// The first CUDA device in place of the emulated GPU: INGOT_TEST_GPU=1 makes the API's tests use
// it. Its memory is managed, so that the tests share it with kernels.
#pragma once

#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

namespace ingot::test::real {

/// Whether the tests run on a device.
inline bool is_asked_for() {
    const char* v = std::getenv("INGOT_TEST_GPU");
    return v != nullptr && std::string(v) == "1";
}

/// CUDA driver calls of the tests beside Ingot's own. An error fails the running test.
class Driver {
public:
    static Driver& get() {
        static Driver driver;
        return driver;
    }
    /// 256-byte aligned; the host may use it where no kernel does.
    std::byte* allocate(size_t bytes) {
        enter();
        uint64_t p = 0;
        call("cuMemAllocManaged", &p, bytes, 1U);
        return reinterpret_cast<std::byte*>(p);
    }
    void release(void* memory) {
        enter();
        call("cuMemFree_v2", reinterpret_cast<uint64_t>(memory));
    }
    void synchronize() {
        enter();
        call("cuCtxSynchronize");
    }
    void read(void* to, const void* from, size_t bytes) {
        enter();
        call("cuCtxSynchronize");
        call("cuMemcpy", reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes);
    }
    void* create_stream() {
        enter();
        void* stream = nullptr;
        call("cuStreamCreate", &stream, 1U);
        return stream;
    }
    void* create_event() {
        enter();
        void* event = nullptr;
        call("cuEventCreate", &event, 0U);
        return event;
    }
    void begin_capture(void* stream) { call("cuStreamBeginCapture_v2", stream, 1); }
    /// Launches the captured graph and waits for it, at each call.
    std::function<void()> end_capture(void* stream) {
        void* graph = nullptr;
        void* executable = nullptr;
        call("cuStreamEndCapture", stream, &graph);
        call("cuGraphInstantiateWithFlags", &executable, graph, uint64_t{0});
        return [this, stream, executable] {
            call("cuGraphLaunch", executable, stream);
            call("cuStreamSynchronize", stream);
        };
    }

private:
    Driver() {
        std::string problem;
        library_ = SharedLibrary::open("libcuda.so.1", problem);
        EXPECT_EQ(problem, "");
        call("cuInit", 0U);
        call("cuDevicePrimaryCtxRetain", &context_, 0);
    }
    void enter() { call("cuCtxSetCurrent", context_); }
    template <typename... Arguments>
    void call(const char* name, Arguments... arguments) {
        using Function = int (*)(Arguments...);
        auto* f = reinterpret_cast<Function>(library_.symbol(name));
        ASSERT_NE(f, nullptr) << name;
        EXPECT_EQ(f(arguments...), 0) << name;
    }

    SharedLibrary library_;
    void* context_ = nullptr;
};

} // namespace ingot::test::real
