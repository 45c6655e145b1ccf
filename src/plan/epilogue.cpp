// SPDX-License-Identifier: Apache-2.0
#include "plan/epilogue.h"

#include "ops/primitives.h"

namespace ingot::plan {

const Node* epilogue_of(const Group& group) {
    return group.nodes.size() > 1 ? &group.nodes[1] : nullptr;
}

std::optional<std::string> refuse_epilogue(const Group& group) {
    if (group.nodes.size() > 2 || group.outputs.size() != 1) {
        return "more than one node after the main one";
    }
    const Node* map = epilogue_of(group);
    if (map == nullptr) {
        return std::nullopt;
    }
    if (!map->is(map_def) || group.outputs[0] != map->outputs[0]) {
        return "the node after is not a map";
    }
    const Type& from = group.graph.type(group.nodes[0].outputs[0]);
    const Type& to = group.graph.type(map->outputs[0]);
    return from.dims == to.dims ? std::nullopt
                                : std::optional(str("the map makes ", to, " of ", from));
}

std::optional<std::string> refuse_packed(const Group& group, Value apart) {
    for (const Node& n : group.nodes) {
        for (const Values* values : {&n.inputs, &n.outputs}) {
            for (Value v : *values) {
                DType t = group.graph.type(v).dtype;
                if (is_packed(t) && v != apart) {
                    return str("elements are ", t);
                }
            }
        }
    }
    return std::nullopt;
}

int argument_count(const ExprInstr& c) {
    return c.op == ExprOp::In || c.op == ExprOp::Const ? 0
           : c.op == ExprOp::Cast                      ? 1
           : c.op == ExprOp::Select                    ? 3
                                                       : arity(c.op);
}

std::vector<int> uses_of(const Expr& e) {
    std::vector<int> uses(e.code.size(), 0);
    uses.back() = 1;
    for (const ExprInstr& c : e.code) {
        for (int k = 0; k < argument_count(c); ++k) {
            ++uses[static_cast<size_t>(c.args[static_cast<size_t>(k)])];
        }
    }
    return uses;
}

} // namespace ingot::plan
