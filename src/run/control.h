// SPDX-License-Identifier: Apache-2.0
// if, loop and tensor_to_dims for every backend: the host controls, bodies are programs on the same
// device.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

extern const KernelTable control_kernels;

} // namespace ingot::plan
