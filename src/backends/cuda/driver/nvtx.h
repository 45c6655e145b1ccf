// SPDX-License-Identifier: Apache-2.0
// NVTX: named ranges for profilers. A profiler that wants them says so in NVTX_INJECTION64_PATH;
// without it, or in a process where libnvToolsExt is loaded, ranges go there or nowhere.
#pragma once

namespace ingot::cuda {

/// Where ranges go. Thread safe; ranges nest per thread.
struct Nvtx {
    int (*push)(const char* name) = nullptr;
    int (*pop)() = nullptr;
    bool listening() const { return push != nullptr && pop != nullptr; }
};

/// Looked for once.
const Nvtx& nvtx();
/// The same without remembering: `injection` is the path of a profiler's library ("" for none).
Nvtx open_nvtx(const char* injection);

} // namespace ingot::cuda
