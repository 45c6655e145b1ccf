// SPDX-License-Identifier: Apache-2.0
// Rules that write shape operands as constants instead of computing them at run time, and omit
// operands that equal their defaults.
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>

namespace ingot::slim {

namespace {

bool constant_reshape(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    if (c.edit.constant(input(n, 1)) != nullptr) {
        return false;
    }
    const std::optional<Type> from = c.type(input(n, 0));
    const std::optional<Type> to = c.type(n.outputs[0]);
    const auto list = from && to ? reshape_list(from->dims, to->dims) : std::nullopt;
    if (!list) {
        return false;
    }
    onnx::Node changed = n;
    set_input(changed, 1, c.add_ints(*list, n.outputs[0] + "_shape"));
    remove_attribute(changed, "allowzero");
    c.edit.update(i, std::move(changed));
    return true;
}

// Expand keeps a size when its list has a 1 there.
bool constant_expand(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    if (c.edit.constant(input(n, 1)) != nullptr) {
        return false;
    }
    const std::optional<Type> from = c.type(input(n, 0));
    const std::optional<Type> to = c.type(n.outputs[0]);
    if (!from || !to || to->rank() < from->rank()) {
        return false;
    }
    const size_t grown = to->dims.size() - from->dims.size();
    std::vector<int64_t> list;
    for (size_t k = 0; k < to->dims.size(); ++k) {
        const Dim& size = to->dims[k];
        if (k >= grown && from->dims[k - grown] == size) {
            list.push_back(1);
        } else if (size.is_const()) {
            list.push_back(size.value());
        } else {
            return false;
        }
    }
    onnx::Node changed = n;
    set_input(changed, 1, c.add_ints(list, n.outputs[0] + "_shape"));
    c.edit.update(i, std::move(changed));
    return true;
}

// Recurrent operators start with zeros when no state is given.
bool zero_state(Context& c, size_t i) {
    onnx::Node n = c.edit.node(i);
    bool changed = false;
    for (size_t k : {size_t{5}, size_t{6}}) {
        if (has_input(n, k) && c.filled_with(input(n, k)) == 0.0) {
            set_input(n, k, "");
            changed = true;
        }
    }
    while (!n.inputs.empty() && n.inputs.back().empty()) {
        n.inputs.pop_back();
    }
    if (changed) {
        c.edit.update(i, std::move(n));
    }
    return changed;
}

// From opset 15 on, Shape's own attributes express Shape(x)[a:b].
bool slice_of_shape(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(n, 0), "Shape");
    const auto starts = c.parameter(n, "starts", 1);
    const auto ends = c.parameter(n, "ends", 2);
    const auto steps = c.parameter(n, "steps", 4);
    const bool simple = starts.known && ends.known && starts.known->size() == 1 &&
                        (!steps.given || steps.known == std::vector<int64_t>{1});
    if (c.opset < 15 || !p || !simple || !c.edit.node(*p).attributes.empty()) {
        return false;
    }
    onnx::Node shape = c.edit.node(*p);
    set_int(shape, "start", starts.known->front());
    set_int(shape, "end", ends.known->front());
    shape.outputs = n.outputs;
    c.edit.erase(*p);
    c.edit.update(i, std::move(shape));
    return true;
}

// A broadcast that elementwise operators do themselves: op(Expand(x), y) is op(x, y) when the
// result has the same sizes without it.
bool needless_expand(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    for (size_t k = 0; k < n.inputs.size(); ++k) {
        const std::optional<size_t> p = c.producer(input(n, k), "Expand");
        const std::optional<Type> result = c.type(n.outputs[0]);
        if (!p || !result) {
            continue;
        }
        const std::string& source = input(c.edit.node(*p), 0);
        const std::optional<Type> direct = c.type(source);
        std::optional<Dims> dims = direct ? std::optional(direct->dims) : std::nullopt;
        for (size_t o = 0; dims && o < n.inputs.size(); ++o) {
            const std::optional<Type> other = c.type(input(n, o));
            if (o != k) {
                dims = other ? broadcast(*dims, other->dims) : std::nullopt;
            }
        }
        if (dims == result->dims) {
            onnx::Node changed = n;
            set_input(changed, k, source);
            c.edit.update(i, std::move(changed));
            return true;
        }
    }
    return false;
}

const Rule rules[] = {
    {"constant-reshape",
     "constant_folding",
     "Reshape to computed sizes that a constant can express",
     {"Reshape"},
     constant_reshape},
    {"constant-expand",
     "constant_folding",
     "Expand to computed sizes that a constant can express",
     {"Expand"},
     constant_expand},
    {"zero-state",
     "dead_node_elimination",
     "initial states of zeros, which are the default",
     {"LSTM", "GRU", "RNN"},
     zero_state},
    {"slice-of-shape", "graph_fusion", "Slice of Shape", {"Slice"}, slice_of_shape},
    {"needless-expand",
     "dead_node_elimination",
     "Expand before an operator that broadcasts",
     {"Add", "Sub", "Mul", "Div", "Pow", "Where", "Equal", "Less", "Greater", "LessOrEqual",
      "GreaterOrEqual", "And", "Or", "Xor"},
     needless_expand},
};

} // namespace

const RuleTable shape_rules = rules;

} // namespace ingot::slim
