// SPDX-License-Identifier: Apache-2.0
// The lowering list of the CPU backend: an engine's graph becomes nodes that its kernels run.
#pragma once

#include "lower/lowering.h"

namespace ingot::cpu {

/// The passes of lowering.def, in order.
std::span<const Pass> lowering_passes();
/// Runs the list over the graph and its bodies. Errors: Unsupported naming a node.
Graph lower(const Graph& g, const CompileOptions& options);

} // namespace ingot::cpu
