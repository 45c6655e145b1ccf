// SPDX-License-Identifier: Apache-2.0
// Rules that merge consecutive views: transposes, and views that keep the order of elements.
#include "slim/views.h"

#include "slim/rules.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace ingot::slim {

std::optional<Axes> reshape_list(const Dims& from, const Dims& to) {
    Axes list;
    bool copies = false;
    for (size_t k = 0; k < to.size(); ++k) {
        const std::optional<int64_t> number = to[k].as_const();
        if (number && *number > 0) {
            list.push_back(*number);
        } else if (k < from.size() && from[k] == to[k]) {
            list.push_back(0);
            copies = true;
        } else if (!number) {
            list.push_back(-1);
        } else {
            return std::nullopt;
        }
    }
    const auto unknown = std::count(list.begin(), list.end(), -1);
    return unknown > 1 || (unknown == 1 && copies) ? std::nullopt : std::optional(list);
}

std::optional<Axes> permutation(const Context& c, const onnx::Node& n) {
    Axes perm = get_ints(n, "perm");
    if (perm.empty()) {
        const std::optional<int64_t> rank = c.rank(input(n, 0));
        if (!rank) {
            return std::nullopt;
        }
        perm.resize(static_cast<size_t>(*rank));
        std::iota(perm.rbegin(), perm.rend(), 0);
    }
    Axes sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i] != static_cast<int64_t>(i)) {
            return std::nullopt; // a malformed node stays as it is
        }
    }
    return perm;
}

namespace {

// Does every reader of a tensor have this type, so that merging all of them removes the tensor?
bool only_read_by(const Context& c, const std::string& name, std::string_view op) {
    const std::vector<size_t>& readers = c.edit.readers(name);
    return !c.edit.is_output(name) && std::all_of(readers.begin(), readers.end(), [&](size_t r) {
        return is_op(c.edit.node(r), op);
    });
}

bool merge_transposes(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), "Transpose");
    const auto inner = p ? permutation(c, c.edit.node(*p)) : std::nullopt;
    const auto outer = inner ? permutation(c, n) : std::nullopt;
    if (!outer || outer->size() != inner->size()) {
        return false;
    }
    Axes perm;
    for (int64_t axis : *outer) {
        perm.push_back((*inner)[static_cast<size_t>(axis)]);
    }
    if (!std::is_sorted(perm.begin(), perm.end()) && !only_read_by(c, input(n, 0), "Transpose")) {
        return false;
    }
    onnx::Node merged = n;
    set_input(merged, 0, input(c.edit.node(*p), 0));
    set_ints(merged, "perm", std::move(perm));
    c.edit.update(i, std::move(merged));
    return true;
}

// Whether only axes of size 1 move.
bool keeps_order(const Context& c, const onnx::Node& transpose) {
    const std::optional<Type> t = c.type(input(transpose, 0));
    const auto perm = permutation(c, transpose);
    if (!t || !perm || perm->size() != t->dims.size()) {
        return false;
    }
    Axes moved;
    std::copy_if(perm->begin(), perm->end(), std::back_inserter(moved),
                 [&](int64_t axis) { return !t->dims[static_cast<size_t>(axis)].is_const(1); });
    return std::is_sorted(moved.begin(), moved.end());
}

bool is_view(const Context& c, const onnx::Node& n) {
    return is_op(n, "Reshape") || is_op(n, "Flatten") || is_op(n, "Squeeze") ||
           is_op(n, "Unsqueeze") || (is_op(n, "Transpose") && keeps_order(c, n));
}

// The list of a Reshape whose meaning does not depend on the operand (no zeros).
std::optional<Axes> absolute_list(const Context& c, const onnx::Node& n) {
    const auto list = is_op(n, "Reshape") ? c.constant_ints(input(n, 1)) : std::nullopt;
    const bool zeros = list && std::find(list->begin(), list->end(), 0) != list->end();
    return zeros ? std::nullopt : list;
}

// Merges two consecutive views into one Reshape when a constant can express the sizes.
bool merge_views(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    if (!c.edit.used_once(input(n, 0)) || !is_view(c, n)) {
        return false;
    }
    const std::optional<size_t> p = c.edit.producer(input(n, 0));
    if (!p || !is_view(c, c.edit.node(*p))) {
        return false;
    }
    const std::string source = input(c.edit.node(*p), 0);
    std::optional<Axes> list = absolute_list(c, n);
    if (!list) {
        const std::optional<Type> from = c.type(source);
        const std::optional<Type> to = c.type(n.outputs[0]);
        list = from && to ? reshape_list(from->dims, to->dims) : std::nullopt;
    }
    if (!list) {
        return false;
    }
    onnx::Node merged = make_node("Reshape", {source}, n.outputs[0], n.name);
    merged.inputs.push_back(c.add_ints(*list, n.outputs[0] + "_shape"));
    c.edit.update(i, std::move(merged));
    return true;
}

// --- Squeeze and Unsqueeze -----------------------------------------------------------------------

// Applies a node that removes or inserts axes of size 1 to a list of axes.
bool follow(const Context& c, const onnx::Node& n, Axes& list) {
    const Context::Parameter axes = c.parameter(n, "axes", 1);
    if (!axes.known) {
        return false;
    }
    const bool grows = is_op(n, "Unsqueeze");
    const auto rank = static_cast<int64_t>(list.size() + (grows ? axes.known->size() : 0));
    Axes at;
    for (int64_t a : *axes.known) {
        at.push_back(a < 0 ? a + rank : a);
    }
    std::sort(at.begin(), at.end());
    if (at.empty() || at.front() < 0 || at.back() >= rank) {
        return false;
    }
    if (grows) {
        for (int64_t a : at) {
            list.insert(list.begin() + a, -1);
        }
    } else {
        for (auto a = at.rbegin(); a != at.rend(); ++a) {
            list.erase(list.begin() + *a);
        }
    }
    return true;
}

void set_axes(Context& c, onnx::Node& n, Axes axes) {
    if (c.opset < 13) {
        set_ints(n, "axes", std::move(axes));
    } else {
        n.inputs.resize(1);
        n.inputs.push_back(c.add_ints(axes, n.outputs[0] + "_axes"));
    }
}

bool merge_squeezes(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), n.op_type);
    const std::optional<int64_t> rank = p ? c.rank(input(c.edit.node(*p), 0)) : std::nullopt;
    if (!rank || !only_read_by(c, input(n, 0), n.op_type)) {
        return false;
    }
    Axes list(static_cast<size_t>(*rank));
    std::iota(list.begin(), list.end(), 0);
    if (!follow(c, c.edit.node(*p), list) || !follow(c, n, list)) {
        return false;
    }
    Axes axes;
    const bool grows = is_op(n, "Unsqueeze");
    for (int64_t k = 0; k < (grows ? static_cast<int64_t>(list.size()) : *rank); ++k) {
        const bool here = grows ? list[static_cast<size_t>(k)] < 0
                                : std::find(list.begin(), list.end(), k) == list.end();
        if (here) {
            axes.push_back(k);
        }
    }
    onnx::Node merged = n;
    set_input(merged, 0, input(c.edit.node(*p), 0));
    set_axes(c, merged, std::move(axes));
    c.edit.update(i, std::move(merged));
    return true;
}

const Rule rules[] = {
    {"merge-transposes",
     "graph_fusion",
     "a transpose of a transpose",
     {"Transpose"},
     merge_transposes},
    {"merge-squeezes",
     "graph_fusion",
     "two squeezes, or two unsqueezes, in a row",
     {"Squeeze", "Unsqueeze"},
     merge_squeezes},
    {"merge-views",
     "graph_fusion",
     "two views that keep the order of elements become a Reshape",
     {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"},
     merge_views},
};

} // namespace

const RuleTable view_rules = rules;

} // namespace ingot::slim
