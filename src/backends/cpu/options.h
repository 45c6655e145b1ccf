// SPDX-License-Identifier: Apache-2.0
// CpuOptions: the compile options that the CPU backend alone knows. Those with a row in
// src/api/options are set by options.cpp.
#pragma once

#include "plan/compile_options.h"

namespace ingot {

struct CpuOptions {
    /// False keeps the backend to its own loops (libingot_cpu.so is not opened).
    bool use_library = true;
};

} // namespace ingot
