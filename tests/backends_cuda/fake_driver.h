// SPDX-License-Identifier: Apache-2.0
// A CUDA driver without a device: memory is the host's, kernels do nothing. It counts what lives,
// and any of its calls can be made to fail. One per process; used by one thread at a time.
#pragma once

#include "backends/cuda/driver.h"
#include "backends/cuda/gpu.h"

#include <memory>
#include <string>

namespace ingot::test::fake {

/// Everything as after the start, with this much memory.
void reset(int64_t memory = int64_t{1} << 30);
/// Call `n` from now on (1 is the next) that asks the device for work or memory gives `error`; with
/// `forever`, each one after it too. 0: none.
void fail_call(int64_t n, cuda::CUresult error, bool forever);
/// Calls so far that asked for work or memory.
int64_t calls();
/// What was made and not given back: "" or "2 buffers, 1 event".
std::string alive();
/// Seconds that the stream waited for the host.
double waited();

/// A GPU of compute capability 9.0 on this driver. Its compiler gives the text back.
std::unique_ptr<cuda::Gpu> make_gpu();

} // namespace ingot::test::fake
