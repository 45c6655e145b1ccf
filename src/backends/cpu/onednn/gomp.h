// SPDX-License-Identifier: Apache-2.0
// The OpenMP runtime that oneDNN is compiled against, on Ingot's threads.
#pragma once

#include "backends/cpu/onednn/library.h"

namespace ingot::cpu::onednn {

/// While it lives, parallel regions of this thread run on `threads`.
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
