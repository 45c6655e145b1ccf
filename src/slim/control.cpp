// SPDX-License-Identifier: Apache-2.0
// Rules for control flow that is decided at compile time.
#include "slim/rules.h"

#include <algorithm>
#include <memory>

namespace ingot::slim {

namespace {

const onnx::Graph* branch(const onnx::Node& n, bool condition) {
    const onnx::Attribute* a = find_attribute(n, condition ? "then_branch" : "else_branch");
    return a == nullptr ? nullptr : a->g.get();
}

// Moves the nodes and constants of the taken branch into the graph. Names are unique in the whole
// model, so only the results are renamed.
bool decided_if(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<double> condition = c.filled_with(input(n, 0));
    const onnx::Graph* body = condition ? branch(n, *condition != 0) : nullptr;
    if (body == nullptr || !body->sparse_initializers.empty() ||
        body->outputs.size() != n.outputs.size()) {
        return false;
    }
    std::vector<onnx::Node> nodes = body->nodes;
    for (size_t k = 0; k < n.outputs.size(); ++k) {
        if (!n.outputs[k].empty()) {
            nodes.push_back(make_node("Identity", {body->outputs[k].name}, n.outputs[k], n.name));
        }
    }
    const std::vector<onnx::Tensor> constants = body->initializers;
    c.edit.erase(i);
    for (const onnx::Tensor& t : constants) {
        c.edit.adopt_constant(t);
    }
    for (onnx::Node& moved : nodes) {
        c.edit.append(std::move(moved));
    }
    return true;
}

const Rule rules[] = {
    {"decided-if", "constant_folding", "If whose condition is constant", {"If"}, decided_if},
};

} // namespace

const RuleTable control_rules = rules;

} // namespace ingot::slim
