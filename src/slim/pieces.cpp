// SPDX-License-Identifier: Apache-2.0
// Rules about pieces of tensors: slices of slices, concatenations of concatenations.
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>
#include <map>

namespace ingot::slim {

namespace {

struct Range {
    int64_t start = 0;
    int64_t end = 0;
    int64_t step = 1;
};
using Ranges = std::map<int64_t, Range>; // by axis

// The range that a Slice with constant bounds takes along each axis that it names.
std::optional<Ranges> ranges_of(const Context& c, const onnx::Node& n, int64_t rank) {
    const Context::Parameter starts = c.parameter(n, "starts", 1);
    const Context::Parameter ends = c.parameter(n, "ends", 2);
    const Context::Parameter axes = c.parameter(n, "axes", 3);
    const Context::Parameter steps = c.parameter(n, "steps", 4);
    if (!starts.known || !ends.known || (axes.given && !axes.known) ||
        (steps.given && !steps.known)) {
        return std::nullopt;
    }
    Ranges out;
    for (size_t k = 0; k < starts.known->size(); ++k) {
        const bool complete = k < ends.known->size() && (!axes.given || k < axes.known->size()) &&
                              (!steps.given || k < steps.known->size());
        if (!complete) {
            return std::nullopt;
        }
        int64_t axis = axes.given ? (*axes.known)[k] : static_cast<int64_t>(k);
        axis += axis < 0 ? rank : 0;
        const Range r{(*starts.known)[k], (*ends.known)[k], steps.given ? (*steps.known)[k] : 1};
        if (!out.emplace(axis, r).second) {
            return std::nullopt;
        }
    }
    return out;
}

// x[a.start:a.end][b.start:b.end], where both count forward from 0.
std::optional<Range> range_of_range(const Range& a, const Range& b) {
    const bool simple = a.step == 1 && b.step == 1 && a.start >= 0 && a.end >= 0 && b.start >= 0 &&
                        b.end >= 0 && a.start <= INT32_MAX && b.start <= INT32_MAX;
    if (!simple) {
        return std::nullopt;
    }
    const int64_t end = b.end > INT64_MAX - a.start ? INT64_MAX : a.start + b.end;
    return Range{a.start + b.start, std::min(a.end, end), 1};
}

void set_ranges(Context& c, onnx::Node& n, const Ranges& ranges) {
    Axes starts, ends, axes, steps;
    for (const auto& [axis, r] : ranges) {
        starts.push_back(r.start);
        ends.push_back(r.end);
        axes.push_back(axis);
        steps.push_back(r.step);
    }
    if (c.opset < 10) {
        set_ints(n, "starts", starts);
        set_ints(n, "ends", ends);
        set_ints(n, "axes", axes);
        return;
    }
    const std::string stem = n.outputs[0];
    const bool plain = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; });
    n.inputs.resize(1);
    n.inputs.push_back(c.add_ints(starts, stem + "_starts"));
    n.inputs.push_back(c.add_ints(ends, stem + "_ends"));
    n.inputs.push_back(c.add_ints(axes, stem + "_axes"));
    if (!plain) {
        n.inputs.push_back(c.add_ints(steps, stem + "_steps"));
    }
}

bool merge_slices(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.only_producer(input(n, 0), "Slice");
    const std::optional<int64_t> rank = p ? c.rank(input(c.edit.node(*p), 0)) : std::nullopt;
    auto merged = rank ? ranges_of(c, c.edit.node(*p), *rank) : std::nullopt;
    const auto outer = merged ? ranges_of(c, n, *rank) : std::nullopt;
    if (!outer) {
        return false;
    }
    for (const auto& [axis, r] : *outer) {
        const auto [at, fresh] = merged->emplace(axis, r);
        const auto both = fresh ? std::optional(r) : range_of_range(at->second, r);
        if (!both) {
            return false;
        }
        at->second = *both;
    }
    onnx::Node slice = n;
    set_input(slice, 0, input(c.edit.node(*p), 0));
    set_ranges(c, slice, *merged);
    c.edit.update(i, std::move(slice));
    return true;
}

std::optional<int64_t> concat_axis(const Context& c, const onnx::Node& n) {
    const int64_t axis = get_int(n, "axis", 0);
    const std::optional<int64_t> rank = axis < 0 ? c.rank(n.outputs[0]) : std::optional<int64_t>(0);
    return rank ? std::optional(axis < 0 ? axis + *rank : axis) : std::nullopt;
}

bool merge_concats(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<int64_t> axis = concat_axis(c, n);
    onnx::Node merged = n;
    merged.inputs.clear();
    for (const std::string& name : n.inputs) {
        const std::optional<size_t> p = c.only_producer(name, "Concat");
        if (axis && p && concat_axis(c, c.edit.node(*p)) == axis) {
            const std::vector<std::string>& inner = c.edit.node(*p).inputs;
            merged.inputs.insert(merged.inputs.end(), inner.begin(), inner.end());
        } else {
            merged.inputs.push_back(name);
        }
    }
    if (merged.inputs == n.inputs) {
        return false;
    }
    c.edit.update(i, std::move(merged));
    return true;
}

bool drop_empty_parts(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    const std::optional<int64_t> axis = concat_axis(c, n);
    onnx::Node kept = n;
    std::erase_if(kept.inputs, [&](const std::string& name) {
        const std::optional<Type> t = c.type(name);
        return axis && t && *axis < t->rank() && t->dims[static_cast<size_t>(*axis)].is_const(0);
    });
    if (kept.inputs.empty() || kept.inputs.size() == n.inputs.size()) {
        return false;
    }
    c.edit.update(i, std::move(kept));
    return true;
}

// The parts of one Split, concatenated in their order.
bool concat_of_split(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<size_t> p = c.producer(input(n, 0), "Split");
    if (!p || c.edit.node(*p).outputs != n.inputs) {
        return false;
    }
    const std::string source = input(c.edit.node(*p), 0);
    const std::optional<int64_t> rank = c.rank(source);
    const int64_t split = get_int(c.edit.node(*p), "axis", 0);
    const int64_t concat = get_int(n, "axis", 0);
    const bool same =
        rank && (split < 0 ? split + *rank : split) == (concat < 0 ? concat + *rank : concat);
    const std::string gone = n.outputs[0];
    return same && c.edit.bypass(i, gone, source);
}

const Rule rules[] = {
    {"merge-slices", "graph_fusion", "a slice of a slice", {"Slice"}, merge_slices},
    {"merge-concats",
     "graph_fusion",
     "a concatenation inside one along the same axis",
     {"Concat"},
     merge_concats},
    {"drop-empty-part",
     "dead_node_elimination",
     "empty tensors in a concatenation",
     {"Concat"},
     drop_empty_parts},
    {"concat-of-split",
     "graph_fusion",
     "all parts of a Split put together again",
     {"Concat"},
     concat_of_split},
};

} // namespace

const RuleTable piece_rules = rules;

} // namespace ingot::slim
