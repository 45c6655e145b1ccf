// SPDX-License-Identifier: Apache-2.0
// A CUDA driver without a device: memory is the host's, kernels do nothing. It counts live objects,
// and any of its calls can be made to fail. One per process; each call is safe on any thread.
#pragma once

#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/gpu.h"

#include <memory>
#include <string>
#include <vector>

namespace ingot::test::fake {

/// The driver's handle for device 0; the others follow. A handle is no number.
constexpr int first_handle = 10;

/// Resets everything, with this much memory.
void reset(int64_t memory = int64_t{1} << 30);
/// Call `n` from now on (1 is the next) that asks the device for work or memory gives `error`; with
/// `forever`, each one after it too. 0: none.
void fail_call(int64_t n, cuda::CUresult error, bool forever);
/// The number of calls that requested work or memory.
int64_t calls();
/// Objects that are still alive: "" or "2 buffers, 1 event".
std::string alive();
/// Seconds that the stream waited for the host.
double waited();

/// Operations on streams since the last call (the first starts the log), in order: "launch",
/// "record", "record the caller's" (an event), "wait", "mark", "keep N bytes, hits R", "upload on
/// stream N" (numbered as they occur), each with " (captured)" where it was.
std::vector<std::string> take_log();
/// Work of the device since the last call (the first starts the log), with its priority, in order:
/// "launch at -1", "launch a graph at 0", "upload at 0"; "recorded launch at 0" for what goes into
/// a graph of ours, which then runs at the priority of the stream it is launched on.
std::vector<std::string> take_work();
/// The priorities that the device has (0 and -5 after reset()); both 0: none.
void set_priorities(int least, int greatest);
/// Sets the priority of a caller's stream; the default is 0.
void set_priority_of(void* stream, int priority);
/// Graphs were instantiated with these flags so far, or'ed.
unsigned long long graph_flags();
/// Captures this caller's stream from now on, and streams that wait for it; null: ends the capture.
void capture(void* stream);
/// Launches since the log began, of kernels and graphs outside of captures, that nothing keeps
/// behind the launch before.
int64_t unordered();
/// The handle of a caller's stream is from now on that of another one, as after its destruction.
void replace_stream(void* stream);
/// Bytes of the cache that are set aside.
size_t set_aside();

/// It has three devices.
const cuda::Driver& fake_driver();
/// Makes the context of that device current on this thread; -1: none.
void set_current(int device);

/// A GPU of compute capability 9.0 on this driver. Its compiler gives the text back.
std::unique_ptr<cuda::Gpu> make_gpu(int index = 0);

} // namespace ingot::test::fake
