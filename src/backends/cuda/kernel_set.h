// SPDX-License-Identifier: Apache-2.0
// The kernels of the CUDA backend: every family, control flow, and evaluation on the host for what
// is left.
#pragma once

#include "plan/kernel.h"

namespace ingot::cuda {

const plan::KernelSet& cuda_kernels();

} // namespace ingot::cuda
