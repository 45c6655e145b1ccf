// SPDX-License-Identifier: Apache-2.0
// Kernels of CUDA source text on the CPU: host functions of the application replace them.
#pragma once

#include "ir/graph.h"
#include "plan/backend.h"

namespace ingot::cpu {

/// Errors: Unsupported for a cuda_source, in bodies too, without a host function.
void check_sources(const Graph& g, const CompileOptions& options);

} // namespace ingot::cpu
