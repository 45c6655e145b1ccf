// SPDX-License-Identifier: Apache-2.0
// The kernels of the CUDA backend: all families, control flow, and host evaluation for the other
// ops.
#pragma once

#include "plan/kernel.h"

namespace ingot::cuda {

const plan::KernelSet& cuda_kernels();
/// The same for plans that only place values: no tactic is chosen, and no step can run.
const plan::KernelSet& placing_kernels();

} // namespace ingot::cuda
