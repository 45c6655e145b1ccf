// SPDX-License-Identifier: Apache-2.0
// The fake driver's state, which one thread at a time may touch.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends_cuda/launch_order.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ingot::test::fake {

struct State {
    int64_t memory = 0;
    int64_t used = 0;
    int64_t calls = 0;
    int64_t failing = 0; // the call, counted as `calls`
    cuda::CUresult error = 0;
    bool forever = false;
    double waited = 0;
    std::map<const void*, std::pair<std::string, int64_t>> living; // kind, bytes
    std::vector<std::pair<void (*)(void*), void*>> queued;         // host functions
    bool capturing = false;
    void* captured = nullptr;  // the stream of a caller's that is being captured
    std::vector<void*> joined; // streams that wait for it since
    bool keeps_log = false;
    std::vector<std::string> log;                   // what streams were asked, in order
    std::map<cuda::CUevent, cuda::CUstream> events; // where captured ones were recorded last
    size_t set_aside = 0;
    std::map<cuda::CUstream, cuda::CUcontext> owners;
    std::vector<cuda::CUstream> numbered;
    int least = 0;
    int greatest = -5;
    std::map<const void*, int> priorities; // of streams
    bool keeps_work = false;
    std::vector<std::string> work; // what streams were given to do
    unsigned long long graph_flags = 0;
    LaunchOrder order; // while the log is kept
};

/// The state of all streams, which this thread alone may touch while the object lives. Kernels are
/// loaded and weights uploaded by threads of the backend beside the test's own.
class Locked {
public:
    State* operator->() const { return &one(); }
    State& operator*() const { return one(); }

private:
    static State& one() {
        static State s;
        return s;
    }
    static std::recursive_mutex& mutex() {
        static std::recursive_mutex m;
        return m;
    }
    std::unique_lock<std::recursive_mutex> lock_{mutex()};
};

inline Locked state() {
    return {};
}

} // namespace ingot::test::fake
