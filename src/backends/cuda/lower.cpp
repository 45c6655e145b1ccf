// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lower.h"

#include "backends/cuda/kernel_set.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"

namespace ingot::cuda {

namespace {

const plan::LoweringPass passes[] = {
    {"sink_constants", [](const Graph& g) { return plan::sink_constants(g); }},
    {"quantized_products", [](const Graph& g) { return plan::quantized_products(g); }},
    {"expand", [](const Graph& g) { return plan::expand_unclaimed(g, cuda_kernels()); }},
    {"merge_dots", [](const Graph& g) { return plan::merge_dots(g); }},
    // Before maps are lifted, so that chains move as one, and after.
    {"fuse_maps", [](const Graph& g) { return plan::fuse_maps(g); }},
    {"lift_maps", [](const Graph& g) { return plan::lift_maps(g); }},
    {"fuse_maps", [](const Graph& g) { return plan::fuse_maps(g); }},
    {"fuse_halves", [](const Graph& g) { return plan::fuse_halves(g, cuda_kernels()); }},
    {"fuse_epilogues", [](const Graph& g) { return plan::fuse_epilogues(g, cuda_kernels()); }},
    {"fuse_prologues", [](const Graph& g) { return plan::fuse_prologues(g, cuda_kernels()); }},
    {"fuse_moves", [](const Graph& g) { return plan::fuse_moves(g, cuda_kernels()); }},
    {"dead_code", [](const Graph& g) { return dead_code(g); }},
};

} // namespace

Graph lower(const Graph& g, const CompileOptions& options) {
    return plan::run_lowering(passes, g, options);
}

} // namespace ingot::cuda
