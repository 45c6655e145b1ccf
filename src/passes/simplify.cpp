// SPDX-License-Identifier: Apache-2.0
// simplify: local identities that keep every bit of a result. Removes nodes without effect, merges
// neighbours of a kind, and moves known values into attributes.
#include "passes/simplify.h"

#include "passes/passes.h"

namespace ingot::passes {

Graph simplified(const Graph& g) {
    const Rules all[] = {size_rules(),     control_rules(), map_rules(), view_rules(),
                         movement_rules(), region_rules(),  dot_rules(), rounding_rules()};
    return apply_rules(g, all);
}

const Pass simplify = {
    .name = "simplify",
    .summary = "remove and merge nodes by local identities",
    .run = [](const Graph& g, const PassOptions&) { return simplified(g); },
    .structural = true,
};

} // namespace ingot::passes
