// SPDX-License-Identifier: Apache-2.0
#include "lower/gathered_bytes.h"

#include "lower/dequantised.h"
#include "ops/ops.h"

namespace ingot::plan {

std::optional<Values> gathered_bytes(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    const Node* p = n.is(gather_def) ? g.producer(in[0]) : nullptr;
    if (p == nullptr || !p->is(ops::dequantize_def) || p->as<ops::Dequantize>().block != 0 ||
        g.constant(p->inputs[0]) == nullptr || bit_width(g.type(p->inputs[0]).dtype) != 8 ||
        !is_one(g, p->inputs[1]) || (p->inputs.size() == 3 && !is_one(g, p->inputs[2]))) {
        return std::nullopt;
    }
    const OpDef& dequantize = *p->def; // the graph grows below
    auto attrs = p->attrs;
    Values operands = p->inputs;
    operands[0] = g.add(*n.def, n.attrs, Values{operands[0], in[1]})[0];
    return g.add(dequantize, attrs, operands);
}

} // namespace ingot::plan
