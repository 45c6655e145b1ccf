// SPDX-License-Identifier: Apache-2.0
// The lowering list of the CUDA backend: an engine's graph becomes nodes that its families run.
#pragma once

#include "kernels/arch.h"
#include "lower/lowering.h"

namespace ingot::cuda {

/// The passes of lowering.def, in order.
std::span<const Pass> lowering_passes();
/// Runs the list over the graph and its bodies, for a GPU with these properties, or of the compute
/// capability that the options ask for. Errors: Unsupported naming a node.
Graph lower(const Graph& g, const CompileOptions& options, const kernels::Arch& arch);
/// The same for a GPU of 9.0.
Graph lower(const Graph& g, const CompileOptions& options);

} // namespace ingot::cuda
