// SPDX-License-Identifier: Apache-2.0
// raise_roll: the end of an axis concatenated with its beginning is a roll; nested rolls become
// one.
#include "ops/roll.h"
#include "passes/passes.h"
#include "passes/rules.h"

#include <algorithm>

namespace ingot::passes {

namespace {

// Elements start .. start + size of x along one axis; other axes whole.
struct Part {
    Value x;
    Dim start;
    Dim size;
};

std::optional<Part> part(const Graph& g, Value v, size_t axis) {
    const Node* n = g.producer(v);
    if (n == nullptr || !n->is(slice_def)) {
        return std::nullopt;
    }
    const Slice& a = n->as<Slice>();
    const Dims& in = g.type(n->inputs[0]).dims;
    for (size_t i = 0; i < in.size(); ++i) {
        bool whole = a.starts[i].is_const(0) && a.sizes[i] == in[i];
        if (a.steps[i] != 1 || (i != axis && !whole)) {
            return std::nullopt;
        }
    }
    return Part{n->inputs[0], a.starts[axis], a.sizes[axis]};
}

std::optional<Values> joined_parts(Site& s) {
    if (s.input_count() != 2) {
        return std::nullopt;
    }
    auto axis = static_cast<size_t>(s.as<Concat>().axis);
    auto end = part(s.g(), s.in(0), axis);
    auto begin = part(s.g(), s.in(1), axis);
    if (!end || !begin || end->x != begin->x || !begin->start.is_const(0) ||
        !(end->start == begin->size) ||
        !(end->start + end->size == s.g().type(end->x).dims[axis])) {
        return std::nullopt;
    }
    return Values{ops::roll(s.g(), {{static_cast<int64_t>(axis)}, {end->size}}, end->x)};
}

// Merges a roll along other axes, or along the same axis.
std::optional<Values> roll_of_roll(Site& s) {
    const Node* inner = s.producer(0, ops::roll_def);
    if (inner == nullptr) {
        return std::nullopt;
    }
    const auto& outer = s.as<ops::Roll>();
    ops::Roll both = inner->as<ops::Roll>();
    const Value x = inner->inputs[0];
    const Dims& sizes = s.g().type(x).dims;
    for (size_t k = 0; k < outer.axes.size(); ++k) {
        auto at = std::find(both.axes.begin(), both.axes.end(), outer.axes[k]);
        if (at == both.axes.end()) {
            both.axes.push_back(outer.axes[k]);
            both.shifts.push_back(outer.shifts[k]);
            continue;
        }
        Dim& shift = both.shifts[static_cast<size_t>(at - both.axes.begin())];
        if (!shift.is_const() || !outer.shifts[k].is_const() ||
            !sizes[static_cast<size_t>(*at)].is_const()) {
            return std::nullopt;
        }
        shift = shift + outer.shifts[k];
    }
    return Values{ops::roll(s.g(), std::move(both), x)};
}

} // namespace

const Pass raise_roll = {
    .name = "raise_roll",
    .summary = "recognise rolls",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&concat_def, joined_parts},
                                           {&ops::roll_def, roll_of_roll}};
            return apply_rules(g, Rules(rows));
        },
    .structural = true,
};

} // namespace ingot::passes
