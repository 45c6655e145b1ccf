// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/exit_gate.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>

namespace ingot::cuda {

namespace {

struct Gate {
    std::mutex mutex;
    std::condition_variable left;
    int inside = 0;
    bool registered = false;
    bool closed = false;
};

Gate& gate() {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static auto& g = *new Gate; // outlives every thread
    return g;
}

void close() {
    Gate& g = gate();
    std::unique_lock lock(g.mutex);
    g.closed = true;
    g.left.wait(lock, [&g] { return g.inside == 0; });
}

} // namespace

ExitGate::ExitGate() : open_(false) {
    Gate& g = gate();
    std::scoped_lock lock(g.mutex);
    if (!g.closed) {
        open_ = true;
        g.inside++;
        if (!g.registered) {
            g.registered = std::atexit(close) == 0;
        }
    }
}

ExitGate::~ExitGate() {
    if (!open_) {
        return;
    }
    Gate& g = gate();
    std::scoped_lock lock(g.mutex);
    if (--g.inside == 0) {
        g.left.notify_all();
    }
}

void ExitGate::close_earlier() {
    Gate& g = gate();
    std::scoped_lock lock(g.mutex);
    if (!g.closed) {
        std::atexit(close);
    }
}

} // namespace ingot::cuda
