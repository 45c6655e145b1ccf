// SPDX-License-Identifier: Apache-2.0
// Functions of the emulated libcuda.so.1 for tests: a GPU that fails, and counts of each GPU's
// calls and memory. Thread safe.
#include "emulator/programs/emulated_device.h"

using namespace ingot::emulated_driver; // NOLINT(google-build-using-namespace)

namespace {

int64_t read(int i, int64_t Device::*counter) {
    std::scoped_lock lock(mutex());
    return device(i).*counter;
}

} // namespace

/// Each later call on the GPU returns this error (700: an illegal address); 0 lets it work again.
EXPORT void ingot_emulated_lose(int i, int error) {
    std::scoped_lock lock(mutex());
    device(i).lost = error;
}
/// Calls that a lost GPU has refused.
EXPORT int64_t ingot_emulated_refused(int i) {
    return read(i, &Device::calls_after);
}
/// Executable graphs that live, launches of such, and launches of kernels.
EXPORT int64_t ingot_emulated_graphs(int i) {
    return read(i, &Device::graphs);
}
EXPORT int64_t ingot_emulated_replays(int i) {
    return read(i, &Device::replays);
}
EXPORT int64_t ingot_emulated_launches(int i) {
    std::scoped_lock lock(mutex());
    return static_cast<int64_t>(device(i).gpu.launches());
}
/// Launches of kernels and graphs on streams of raised priority, or on others; not into graphs.
EXPORT int64_t ingot_emulated_calls(int i, bool urgent) {
    std::scoped_lock lock(mutex());
    return device(i).calls[urgent ? 1 : 0];
}
/// Kernels that are loaded.
EXPORT int64_t ingot_emulated_loaded(int i) {
    std::scoped_lock lock(mutex());
    return static_cast<int64_t>(device(i).loaded.size());
}
/// The number, from 1 in the order of loading, of the launched kernel that was loaded last, and of
/// the kernel that was launched last.
EXPORT int64_t ingot_emulated_newest(int i) {
    return read(i, &Device::newest);
}
EXPORT int64_t ingot_emulated_last(int i) {
    return read(i, &Device::last);
}

/// Bytes of device memory in use.
EXPORT int64_t ingot_emulated_used(int i) {
    return read(i, &Device::used);
}

/// Calls of cuMemAlloc and cuMemFree, which wait for the work of others on a real GPU; and streams
/// that were made.
EXPORT int64_t ingot_emulated_stopping(int i) {
    return read(i, &Device::stopping);
}
EXPORT int64_t ingot_emulated_streams(int i) {
    return read(i, &Device::streams);
}

/// Calls of a function so far, such as "cuEventRecord", of those that ask the GPU for something;
/// "": of all.
EXPORT int64_t ingot_emulated_counted(int i, const char* call) {
    std::scoped_lock lock(mutex());
    int64_t all = 0;
    for (const auto& [name, count] : device(i).counted) {
        all += *call == 0 || name == call ? count : 0;
    }
    return all;
}
/// Waits of streams for events that were recorded on others.
EXPORT int64_t ingot_emulated_hops(int i) {
    return read(i, &Device::hops);
}
/// Calls that lock pages of the host or unlock them.
EXPORT int64_t ingot_emulated_locking(int i) {
    return read(i, &Device::locking);
}
