// SPDX-License-Identifier: Apache-2.0
// drop_fences: removes fences once every value has its type.
#include "ops/fence.h"
#include "passes/passes.h"

#include <algorithm>

namespace ingot::passes {

const Pass drop_fences = {
    .name = "drop_fences",
    .summary = "remove the fences that held types",
    .run =
        [](const Graph& g, const PassOptions&) {
            bool any = std::any_of(g.nodes().begin(), g.nodes().end(),
                                   [](const Node& n) { return n.is(ops::fence_def); });
            return any ? rewrite(g,
                                 [](Rewriter&, const Node& n, std::span<const Value> in) {
                                     return n.is(ops::fence_def) ? std::optional<Values>({in[0]})
                                                                 : std::nullopt;
                                 })
                       : g;
        },
    .structural = true,
};

} // namespace ingot::passes
