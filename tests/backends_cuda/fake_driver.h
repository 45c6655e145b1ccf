// SPDX-License-Identifier: Apache-2.0
// A CUDA driver without a device: memory is the host's, kernels do nothing. It counts what lives,
// and any of its calls can be made to fail. One per process; used by one thread at a time.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/gpu.h"

#include <memory>
#include <string>
#include <vector>

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

/// What streams were asked since the last call (the first starts the log), in order: "launch",
/// "record", "record the caller's" (an event), "wait", "mark", "keep N bytes, hits R", "upload on
/// stream N" (numbered as they occur), each with " (captured)" where it was.
std::vector<std::string> take_log();
/// What the device was given to do since the last call (the first starts it), with the priority
/// that it has there, in order: "launch at -1", "launch a graph at 0", "upload at 0"; "recorded
/// launch at 0" for what goes into a graph of ours, which then runs at the priority of the stream
/// it is launched on.
std::vector<std::string> take_work();
/// The priorities that the device has (0 and -5 after reset()); both 0: none.
void set_priorities(int least, int greatest);
/// A stream of a caller's; others of theirs have 0.
void set_priority_of(void* stream, int priority);
/// Graphs were instantiated with these flags so far, or'ed.
unsigned long long graph_flags();
/// This stream of a caller's is captured from now on, and so is what waits for it; null: none is.
void capture(void* stream);
/// Bytes of the cache that are set aside.
size_t set_aside();

/// It has three devices.
const cuda::Driver& fake_driver();
/// Makes the context of that device current on this thread; -1: none.
void set_current(int device);

/// A GPU of compute capability 9.0 on this driver. Its compiler gives the text back.
std::unique_ptr<cuda::Gpu> make_gpu(int index = 0);

} // namespace ingot::test::fake
