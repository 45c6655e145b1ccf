// SPDX-License-Identifier: Apache-2.0
// Reads from a compiled kernel what it takes from a GPU.
#pragma once

#include "plan/plan_report.h"

#include <string_view>

namespace ingot::cuda {

/// `capability`: the compute capability that it was compiled for (90 for 9.0). nullopt where the
/// binary is no ELF file for GPUs, or says nothing of this kernel; never fails, whatever the bytes
/// are.
std::optional<plan::KernelResources> cubin_resources(std::string_view binary,
                                                     std::string_view entry, int capability);

} // namespace ingot::cuda
