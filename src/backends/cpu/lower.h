// SPDX-License-Identifier: Apache-2.0
// The lowering list of the CPU backend: an engine's graph becomes nodes that its kernels run.
#pragma once

#include "plan/backend.h"

namespace ingot::cpu {

/// Runs the list over the graph and its bodies. Errors: Unsupported naming a node.
Graph lower(const Graph& g, const CompileOptions& options);

/// The passes, each a Graph -> Graph that leaves the meaning as it is.
Graph sink_constants(const Graph& g);   // constants that bodies capture move into them
Graph expand_unclaimed(const Graph& g); // composites that no kernel accepts become primitives
Graph fuse_maps(const Graph& g);        // maps into the maps that read them
Graph fuse_epilogues(const Graph& g);   // maps into the kernels that produce their operand

} // namespace ingot::cpu
