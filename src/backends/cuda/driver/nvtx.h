// SPDX-License-Identifier: Apache-2.0
// NVTX: named ranges for profilers. A profiler announces itself in NVTX_INJECTION64_PATH; without
// it, ranges go to a loaded libnvToolsExt, or nowhere.
#pragma once

namespace ingot::cuda {

/// The target of ranges. Thread safe; ranges nest per thread.
struct Nvtx {
    int (*push)(const char* name) = nullptr;
    int (*pop)() = nullptr;
    bool listening() const { return push != nullptr && pop != nullptr; }
};

/// The process's target, searched once.
const Nvtx& nvtx();
/// A new search: `injection` is the path of a profiler's library ("" for none).
Nvtx open_nvtx(const char* injection);

} // namespace ingot::cuda
