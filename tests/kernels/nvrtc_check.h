// SPDX-License-Identifier: Apache-2.0
// Compiles device text by NVRTC, as on a machine with a GPU, and reports faults in the result.
#pragma once

#include "kernels/arch.h"

#include <string>
#include <vector>

namespace ingot::test {

struct NvrtcProgram {
    std::string name; // for messages: family and tactic, or model
    std::string text;
    int cc = 0;
    int64_t shared = 0; // dynamic
};

struct NvrtcReport {
    std::string problems; // one a line; "" when the program is fine
    double milliseconds = 0;
    size_t ptx_bytes = 0;
    int64_t spilled = 0;
    int64_t local = 0;
    bool only_size = false; // the problems are spills, local memory and size of the text alone
};

/// The pinned NVRTC of .deps, or the system's; the reason when there is none.
std::string missing_nvrtc();

/// The number of texts that this process compiled rather than found (emulator/kept.h).
int nvrtc_compilations();

/// Results are kept (emulator/kept.h) by text, version of NVRTC and its options. Thread safe.
/// Faults: errors of the compiler, spills, local memory, serialised wgmma, more shared memory than
/// the GPU has, PTX above 64 KiB.
NvrtcReport check_by_nvrtc(const NvrtcProgram& p);

/// The same for many on all CPUs; reports failures of the current test, and a summary. Programs in
/// nvrtc_known.txt may spill, use local memory and have PTX up to the listed bytes: the list is to
/// shrink. INGOT_NVRTC_OUT names a file to which the present faults are appended.
/// Whether all are good.
bool expect_good_by_nvrtc(const std::vector<NvrtcProgram>& programs, const std::string& what);

} // namespace ingot::test
