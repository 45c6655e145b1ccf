// SPDX-License-Identifier: Apache-2.0
// CpuOptions: the compile options of the CPU backend alone. options.cpp sets those with a row in
// src/api/options.
#pragma once

#include "plan/compile_options.h"

namespace ingot {

struct CpuOptions {
    /// False restricts the backend to its own loops (libingot_cpu.so is not opened).
    bool use_library = true;
};

} // namespace ingot
