// SPDX-License-Identifier: Apache-2.0
// What the lowering lists of backends are made of: passes from an engine's graph to nodes that a
// backend's kernels run. Each leaves the meaning as it is.
#pragma once

#include "plan/kernel.h"

namespace ingot::plan {

struct LoweringPass {
    std::string_view name;
    Graph (*run)(const Graph&);
};

/// Runs the list over the graph and its bodies, as the options say. Errors: Unsupported naming a
/// node; the trail names the pass.
Graph run_lowering(std::span<const LoweringPass> passes, const Graph& g,
                   const CompileOptions& options);

Graph sink_constants(const Graph& g); // constants that bodies capture move into them
/// Constants that are dequantised become floats, up to 1 GiB of them.
Graph dequantized_constants(const Graph& g);
/// Products of quantised operands become integer ones; dots with quantised weights quantized_dot.
Graph quantized_products(const Graph& g);
/// Composites that no kernel accepts become primitives; groups made for other backends dissolve.
Graph expand_unclaimed(const Graph& g, const KernelSet& kernels);
/// Products of one operand with several constant matrices become one.
Graph merge_dots(const Graph& g);
/// Maps move before the reshapes and permutes that part them from the kernel they could follow.
Graph lift_maps(const Graph& g);
Graph fuse_maps(const Graph& g); // maps into the maps that read them
/// Maps into the kernels that produce their operand, where those accept.
Graph fuse_epilogues(const Graph& g, const KernelSet& kernels);
/// Maps of the two halves of a product's columns (gated linear units) into its kernel, likewise.
Graph fuse_halves(const Graph& g, const KernelSet& kernels);
/// Reshapes and permutes into the rolls that they surround and into maps that read them.
Graph fuse_moves(const Graph& g, const KernelSet& kernels);
/// Casts of 16-bit floats into the kernels that read them, and norms of perhaps few rows into the
/// products that alone read them, where those accept.
Graph fuse_prologues(const Graph& g, const KernelSet& kernels);

} // namespace ingot::plan
