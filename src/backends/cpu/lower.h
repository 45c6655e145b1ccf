// SPDX-License-Identifier: Apache-2.0
// The lowering list of the CPU backend: an engine's graph becomes nodes that its kernels run.
#pragma once

#include "backends/cpu/kernel.h"

namespace ingot::cpu {

/// Runs the list over the graph and its bodies. Errors: Unsupported naming a node.
Graph lower(const Graph& g, const CompileOptions& options);

/// f16 and bf16 between nodes become f32 where results stay within their types' tolerances.
Graph widen_halves(const Graph& g);

} // namespace ingot::cpu
