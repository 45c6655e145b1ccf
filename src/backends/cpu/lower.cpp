// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lower.h"

#include "ir/rewrite.h"
#include "lower/lowering.h"

namespace ingot::cpu {

namespace {

const plan::LoweringPass passes[] = {
    {"sink_constants", [](const Graph& g) { return plan::sink_constants(g); }},
    {"widen_halves", [](const Graph& g) { return widen_halves(g); }},
    {"dequantized_constants", [](const Graph& g) { return plan::dequantized_constants(g); }},
    {"expand", [](const Graph& g) { return plan::expand_unclaimed(g, cpu_kernels()); }},
    {"fuse_maps", [](const Graph& g) { return plan::fuse_maps(g); }},
    {"fuse_epilogues", [](const Graph& g) { return plan::fuse_epilogues(g, cpu_kernels()); }},
    {"dead_code", [](const Graph& g) { return dead_code(g); }},
};

} // namespace

Graph lower(const Graph& g, const CompileOptions& options) {
    return plan::run_lowering(passes, g, options);
}

} // namespace ingot::cpu
