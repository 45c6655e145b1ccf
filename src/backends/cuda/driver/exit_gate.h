// SPDX-License-Identifier: Apache-2.0
// Threads of this backend compile and time kernels while the program goes its way. When the process
// ends, the libraries that they work in are taken down under them: what enters those libraries from
// a thread of its own holds this gate, which closes, and waits for who is inside, before that.
#pragma once

namespace ingot::cuda {

class ExitGate {
public:
    /// Closed: the process is ending, and the libraries must not be entered.
    ExitGate();
    ~ExitGate();
    ExitGate(const ExitGate&) = delete;
    ExitGate& operator=(const ExitGate&) = delete;
    explicit operator bool() const { return open_; }

    /// After a library has made what lasts as long as the process: what is made later is taken down
    /// earlier, and the gate has to close before that.
    static void close_earlier();

private:
    bool open_;
};

} // namespace ingot::cuda
