// SPDX-License-Identifier: Apache-2.0
// Kernels of CUDA source text on the CPU: a function of the application's stands for each.
#pragma once

#include "ir/graph.h"
#include "plan/backend.h"

namespace ingot::cpu {

/// Errors: Unsupported for a cuda_source, of bodies too, without such a function.
void check_sources(const Graph& g, const CompileOptions& options);

} // namespace ingot::cpu
