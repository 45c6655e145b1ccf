// SPDX-License-Identifier: Apache-2.0
// if and loop for every backend: the host drives, bodies are programs on the same device.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

extern const KernelTable control_kernels;

} // namespace ingot::plan
