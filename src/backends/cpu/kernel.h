// SPDX-License-Identifier: Apache-2.0
// The CPU backend's kernels. Each file in kernels/ defines one `<stem>_kernels`; CMake lists them.
#pragma once

#include "plan/kernel.h"
#include "plan/program.h"

namespace ingot::cpu {

using namespace plan; // kernels speak the planner's words throughout

std::span<const KernelTable* const> all_cpu_kernels();
const KernelSet& cpu_kernels();

} // namespace ingot::cpu
