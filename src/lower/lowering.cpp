// SPDX-License-Identifier: Apache-2.0
#include "lower/lowering.h"

#include "ir/rewrite.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::plan {

Graph expand_unclaimed(const Graph& g, const KernelSet& kernels) {
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

Graph run_lowering(std::span<const LoweringPass> passes, const Graph& g,
                   const CompileOptions& options) {
    Graph out = g;
    for (const LoweringPass& p : passes) {
        if (std::find(options.disabled_passes.begin(), options.disabled_passes.end(), p.name) !=
            options.disabled_passes.end()) {
            continue;
        }
        out =
            with_place([&p] { return str("lowering pass ", p.name); }, [&] { return p.run(out); });
        if (options.after_pass) {
            options.after_pass(p.name, out);
        }
    }
    return out;
}

} // namespace ingot::plan
