// SPDX-License-Identifier: Apache-2.0
// Rules about reductions: axes that are removed and restored, softmax before log or argmax.
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>
#include <array>

namespace ingot::slim {

namespace {

constexpr std::array<std::string_view, 12> reductions = {
    "ArgMax",    "ArgMin",     "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",    "ReduceSumSquare"};

// The axes of a reduction, non-negative and ascending; nullopt for all or unknown ones.
std::optional<Axes> reduced_axes(const Context& c, const onnx::Node& n, int64_t rank) {
    Axes axes;
    if (n.op_type == "ArgMax" || n.op_type == "ArgMin") {
        axes = {get_int(n, "axis", 0)};
    } else {
        const Context::Parameter p = c.parameter(n, "axes", 1);
        if (!p.known || p.known->empty()) {
            return std::nullopt;
        }
        axes = *p.known;
    }
    for (int64_t& a : axes) {
        a += a < 0 ? rank : 0;
    }
    std::sort(axes.begin(), axes.end());
    return axes;
}

std::optional<Axes> given_axes(const Context& c, const onnx::Node& n, int64_t rank) {
    const Context::Parameter p = c.parameter(n, "axes", 1);
    if (!p.known) {
        return std::nullopt;
    }
    Axes axes = *p.known;
    for (int64_t& a : axes) {
        a += a < 0 ? rank : 0;
    }
    std::sort(axes.begin(), axes.end());
    return axes;
}

// Unsqueeze after a reduction that drops those axes, or Squeeze after one that keeps them.
bool merge_reduce_view(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<size_t> p =
        c.edit.used_once(input(n, 0)) ? c.edit.producer(input(n, 0)) : std::nullopt;
    if (!p || !c.edit.node(*p).domain.empty() ||
        std::find(reductions.begin(), reductions.end(), c.edit.node(*p).op_type) ==
            reductions.end()) {
        return false;
    }
    onnx::Node reduce = c.edit.node(*p);
    const bool grows = n.op_type == "Unsqueeze";
    const std::optional<int64_t> rank = c.rank(input(reduce, 0));
    if (!rank || get_int(reduce, "keepdims", 1) != (grows ? 0 : 1)) {
        return false;
    }
    const auto axes = reduced_axes(c, reduce, *rank);
    if (!axes || given_axes(c, n, *rank) != axes) {
        return false;
    }
    set_int(reduce, "keepdims", grows ? 1 : 0);
    reduce.outputs = n.outputs;
    c.edit.erase(i);
    c.edit.update(*p, std::move(reduce));
    return true;
}

bool log_softmax(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(n, 0), "Softmax");
    if (!p) {
        return false;
    }
    onnx::Node fused = c.edit.node(*p);
    fused.op_type = "LogSoftmax";
    fused.outputs = n.outputs;
    c.edit.erase(i);
    c.edit.update(*p, std::move(fused));
    return true;
}

// Softmax preserves the position of the largest element along its axis.
bool monotone_arg(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    std::optional<size_t> p = c.producer(input(n, 0), "Softmax");
    p = p ? p : c.producer(input(n, 0), "LogSoftmax");
    const std::optional<int64_t> rank = p ? c.rank(input(n, 0)) : std::nullopt;
    if (!rank || !c.edit.used_once(input(n, 0))) {
        return false;
    }
    int64_t axis = get_int(n, "axis", 0);
    int64_t softmax = get_int(c.edit.node(*p), "axis", c.opset < 13 ? 1 : -1);
    axis += axis < 0 ? *rank : 0;
    softmax += softmax < 0 ? *rank : 0;
    // Before opset 13, softmax flattens its axis and all later ones into one.
    if (axis != softmax || (c.opset < 13 && softmax != *rank - 1)) {
        return false;
    }
    onnx::Node changed = n;
    set_input(changed, 0, input(c.edit.node(*p), 0));
    c.edit.update(i, std::move(changed));
    return true;
}

const Rule rules[] = {
    {"merge-reduce-view",
     "graph_fusion",
     "axes that a reduction drops and a view restores",
     {"Unsqueeze", "Squeeze"},
     merge_reduce_view},
    {"log-softmax", "graph_fusion", "Log of Softmax", {"Log"}, log_softmax, false},
    {"monotone-argmax",
     "graph_fusion",
     "ArgMax or ArgMin of a softmax",
     {"ArgMax", "ArgMin"},
     monotone_arg,
     false},
};

} // namespace

const RuleTable reduce_rules = rules;

} // namespace ingot::slim
