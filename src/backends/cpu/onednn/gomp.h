// SPDX-License-Identifier: Apache-2.0
// The OpenMP runtime of oneDNN, implemented on Ingot's threads.
#pragma once

#include "backends/cpu/onednn/interface.h"

namespace ingot::cpu::onednn {

/// While it lives, this thread's parallel regions run on `threads`.
class ThreadsInUse {
public:
    explicit ThreadsInUse(const Threads& threads);
    ~ThreadsInUse();
    ThreadsInUse(const ThreadsInUse&) = delete;
    ThreadsInUse& operator=(const ThreadsInUse&) = delete;

private:
    const Threads* before_;
};

} // namespace ingot::cpu::onednn
