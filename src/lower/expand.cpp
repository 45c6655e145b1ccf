// SPDX-License-Identifier: Apache-2.0
// expand: composites that no kernel accepts become primitives; groups made for other backends
// dissolve.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/primitives.h"

namespace ingot::plan {

namespace {

Graph expanded(const Graph& g, const KernelSet& kernels) {
    // Groups that came with the graph were made for some other backend.
    Graph single = rewrite_all(g, [](const Graph& part) {
        return rewrite(part, [](Rewriter& r, const Node& n, std::span<const Value> in) {
            return n.is(fused_def) ? std::optional(inline_graph(r.out(), *n.as<Fused>().body, in))
                                   : std::nullopt;
        });
    });
    return expand_composites(single, [&kernels](const Graph& in, const Node& n) {
        return kernels.find(n.def->name, group_of(in, n)) != nullptr;
    });
}

} // namespace

Pass expand(const KernelSet& kernels) {
    return {
        .name = "expand",
        .summary = "composites that no kernel accepts become primitives",
        .run = [&kernels](const Graph& g, const PassOptions&) { return expanded(g, kernels); },
        .structural = true,
        .handles_bodies = true,
    };
}

} // namespace ingot::plan
