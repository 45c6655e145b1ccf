// SPDX-License-Identifier: Apache-2.0
// The passes of all lowering lists, one by one.
#pragma once

#include "backends/cuda/kernel_set.h"
#include "lower/lowering.h"

namespace ingot::plan {

#define INGOT_PASS(name) Pass name(const KernelSet& kernels);
#include "backends/cpu/lowering.def"
#include "backends/cuda/lowering.def"
#undef INGOT_PASS

using MakePass = Pass (*)(const KernelSet& kernels);
/// The graph after a pass, made for a GPU's kernels or for these.
inline Graph after(MakePass make, const Graph& g, const KernelSet& kernels = cuda::cuda_kernels()) {
    return run_pass(make(kernels), g);
}

} // namespace ingot::plan
