// SPDX-License-Identifier: Apache-2.0
// Keeps background compile and timing threads out of driver and NVRTC during process exit, when
// these libraries are torn down. Such threads hold this gate while they are inside; at exit it
// closes and waits for them.
#pragma once

namespace ingot::cuda {

class ExitGate {
public:
    /// Closed: the process is ending; do not enter the libraries.
    ExitGate();
    ~ExitGate();
    ExitGate(const ExitGate&) = delete;
    ExitGate& operator=(const ExitGate&) = delete;
    explicit operator bool() const { return open_; }

    /// Call this after a library creates objects that live until process exit: later objects are
    /// destroyed earlier, and the gate must close before that.
    static void close_earlier();

private:
    bool open_;
};

} // namespace ingot::cuda
