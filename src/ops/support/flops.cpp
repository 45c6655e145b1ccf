// SPDX-License-Identifier: Apache-2.0
#include "ops/support/flops.h"

#include "ir/rewrite.h"
#include "ops/evaluator.h"
#include "ops/primitives.h"

namespace ingot {

double count_flops(const Graph& g, std::span<const Shape> inputs) {
    Symbols symbols;
    for (size_t i = 0; i < inputs.size(); ++i) {
        Value v = g.inputs()[i];
        bind_symbols(g.type(v).dims, inputs[i], symbols, g.value_name(v));
    }
    Graph primitives = expand_composites(g, [](const Graph&, const Node&) { return false; });
    double flops = 0;
    visit_nodes(primitives, [&](const Graph& owner, const Node& n) {
        if (!n.is(dot_def)) {
            return;
        }
        auto size = [&](const Dim& d) {
            return static_cast<double>(d.try_eval(symbols).value_or(1));
        };
        double product = 2;
        for (const Dim& d : owner.type(n.outputs[0]).dims) {
            product *= size(d);
        }
        for (int64_t axis : n.as<Dot>().a_contract) {
            product *= size(owner.type(n.inputs[0]).dims[static_cast<size_t>(axis)]);
        }
        flops += product;
    });
    return flops;
}

} // namespace ingot
