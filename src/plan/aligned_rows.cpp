// SPDX-License-Identifier: Apache-2.0
// Planner, part three: rows of odd lengths get a gap behind them, so that each begins at a multiple
// of 16 bytes, where kernels with Kernel::aligned_rows read them and nobody needs them dense.
#include "ops/primitives.h"
#include "plan/planner.h"
#include "plan/row_alignment.h"
#include "plan/views.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr int64_t fewest_rows = 64;
constexpr int longest_chain = 8;      // of views
constexpr size_t row_axes[] = {1, 2}; // a row is one axis, or heads and their elements

/// A view that is dense in that order, with gaps behind rows of so many axes; nullopt where they
/// need none.
std::optional<View> with_gaps(const View& v, DType t, const Order& order, size_t axes) {
    if (order.size() < axes || bit_width(t) < 8 || v.count() == 0) {
        return std::nullopt;
    }
    int64_t row = 1;
    for (size_t i = order.size() - axes; i < order.size(); ++i) {
        row *= v.shape[static_cast<size_t>(order[i])];
    }
    int64_t pitch = aligned_pitch(row, t);
    if (pitch == row || row < shortest_aligned_row || v.count() / row < fewest_rows) {
        return std::nullopt;
    }
    View out = v;
    for (size_t i = 0; i + axes < order.size(); ++i) {
        int64_t& stride = out.strides[static_cast<size_t>(order[i])];
        stride = stride / row * pitch;
    }
    return out;
}

} // namespace

Operand Planner::new_arena(DType t, const View& view) {
    int64_t last = 0;
    for (size_t axis = 0; axis < view.shape.size(); ++axis) {
        last += (view.shape[axis] - 1) * view.strides[axis];
    }
    Storage s;
    s.bytes = static_cast<int64_t>(byte_size(t, view.count() == 0 ? 0 : last + 1));
    return {t, new_storage(std::move(s)), view};
}

Planner::Readers Planner::readers_of(Value v, const View& view, int chain) const {
    if (!output_of_[v.id].empty() || chain == longest_chain) {
        return Readers::Dense;
    }
    Readers all = Readers::Any;
    for (uint32_t user : program_.users[v.id]) {
        Readers one = reader_of(user, v, view, chain);
        if (one == Readers::Dense) {
            return one;
        }
        all = std::max(all, one);
    }
    return all;
}

Planner::Readers Planner::reader_of(uint32_t user, Value v, const View& view, int chain) const {
    const Node& n = graph_.nodes()[user];
    const NodeInfo& info = program_.nodes[user];
    if (info.segment != plan_->segment || info.binds) {
        return Readers::Dense;
    }
    if (n.is(concat_def)) {
        return Readers::Any; // copies its operands
    }
    if (info.kernel == nullptr) {
        ViewRule rule = find_view(*n.def);
        Operand in{graph_.type(v).dtype, 0, view};
        std::optional<Operand> out;
        if (rule != nullptr && n.inputs[0] == v) {
            out = rule(n, in, graph_.type(n.outputs[0]), plan_->symbols);
        }
        return out ? readers_of(n.outputs[0], out->view, chain + 1) : Readers::Dense;
    }
    std::vector<View> views;
    for (Value in : n.inputs) {
        const Operand& o = plan_->placed[in.id].operand;
        views.push_back(in == v ? view : o.buffer >= 0 ? o.view : dense(shape_of(in)));
    }
    Layouts layouts = wanted_layouts(n, info, views);
    for (size_t i = 0; i < views.size(); ++i) {
        if (n.inputs[i] == v && layouts.want[i]) {
            return Readers::Dense;
        }
    }
    return info.kernel->aligned_rows ? Readers::Aligned : Readers::Any;
}

std::optional<View> Planner::aligned_rows(Value v, const Order& order) const {
    View whole = dense(shape_of(v), order);
    for (size_t axes : row_axes) {
        std::optional<View> view = with_gaps(whole, graph_.type(v).dtype, order, axes);
        if (view && readers_of(v, *view, 0) == Readers::Aligned) {
            return view;
        }
    }
    return std::nullopt;
}

std::optional<Operand> Planner::aligned_copy(const Node& n, const Order& order) {
    Operand from = operand_of(n.inputs[0]);
    ViewRule rule = find_view(*n.def);
    View whole = dense(from.view.shape, order);
    for (size_t axes : row_axes) {
        std::optional<View> view = with_gaps(whole, from.dtype, order, axes);
        if (!view || is_constant(n.inputs[0])) {
            continue;
        }
        std::optional<Operand> out =
            rule(n, {from.dtype, 0, *view}, graph_.type(n.outputs[0]), plan_->symbols);
        if (out && readers_of(n.outputs[0], out->view, 0) == Readers::Aligned) {
            Operand to = new_arena(from.dtype, *view);
            add_copy(from, to, nullptr);
            return to;
        }
    }
    return std::nullopt;
}

} // namespace ingot::plan
