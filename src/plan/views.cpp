// SPDX-License-Identifier: Apache-2.0
#include "plan/views.h"

#include "base/checked.h"
#include "ops/primitives.h"

namespace ingot::plan {

namespace {

std::optional<Operand> with_view(const Operand& in, std::optional<View> v) {
    if (!v) {
        return std::nullopt;
    }
    return Operand{in.dtype, in.buffer, std::move(*v)};
}

std::optional<Operand> reshape(const Node& n, const Operand& in, const Type&,
                               const Symbols& symbols) {
    Shape shape = eval(n.as<Reshape>().dims, symbols);
    require(count_of(shape) == in.view.count(), ErrorCode::InvalidArgument, "reshape of ",
            in.view.shape, " to ", shape, ": the numbers of elements differ");
    return with_view(in, reshaped(in.view, shape));
}

std::optional<Operand> permute(const Node& n, const Operand& in, const Type&, const Symbols&) {
    return with_view(in, permuted(in.view, n.as<Permute>().perm));
}

std::optional<Operand> broadcast(const Node& n, const Operand& in, const Type&,
                                 const Symbols& symbols) {
    Shape shape = eval(n.as<Broadcast>().dims, symbols);
    size_t shift = shape.size() - in.view.shape.size();
    for (size_t i = 0; i < in.view.shape.size(); ++i) {
        int64_t d = in.view.shape[i];
        require(d == 1 || d == shape[i + shift], ErrorCode::InvalidArgument, "broadcast of ",
                in.view.shape, " to ", shape, ": axis ", i, " is neither 1 nor equal");
    }
    return with_view(in, broadcasted(in.view, shape));
}

std::optional<Operand> slice(const Node& n, const Operand& in, const Type&,
                             const Symbols& symbols) {
    const auto& a = n.as<Slice>();
    Shape starts = eval(a.starts, symbols);
    Shape sizes = eval(a.sizes, symbols);
    for (size_t i = 0; i < sizes.size(); ++i) {
        int64_t limit = in.view.shape[i];
        require(lies_within(starts[i], sizes[i], a.steps[i], limit), ErrorCode::InvalidArgument,
                "slice of axis ", i, " of size ", limit, ": start ", starts[i], ", size ", sizes[i],
                ", step ", a.steps[i], " leaves the axis");
    }
    return with_view(in, sliced(in.view, starts, sizes, a.steps));
}

std::optional<Operand> window(const Node& n, const Operand& in, const Type&, const Symbols&) {
    const auto& a = n.as<Window>();
    return with_view(in, windowed(in.view, a.axes, a.sizes, a.strides, a.dilations));
}

std::optional<Operand> bitcast(const Node&, const Operand& in, const Type& out,
                               const Symbols& symbols) {
    if (bit_width(in.dtype) == bit_width(out.dtype)) {
        return Operand{out.dtype, in.buffer, in.view};
    }
    if (!is_dense(in.view)) {
        return std::nullopt;
    }
    View v = dense(eval(out.dims, symbols));
    v.offset = in.view.offset * bit_width(in.dtype) / bit_width(out.dtype);
    return Operand{out.dtype, in.buffer, std::move(v)};
}

struct Rule {
    const OpDef* def;
    ViewRule rule;
};

} // namespace

ViewRule find_view(const OpDef& def) {
    static const Rule rules[] = {{&reshape_def, reshape},     {&permute_def, permute},
                                 {&broadcast_def, broadcast}, {&slice_def, slice},
                                 {&window_def, window},       {&bitcast_def, bitcast}};
    for (const Rule& r : rules) {
        if (r.def == &def) {
            return r.rule;
        }
    }
    return nullptr;
}

bool is_view(const Graph& g, const Node& n) {
    if (find_view(*n.def) == nullptr) {
        return false;
    }
    bool packed = is_packed(g.type(n.inputs[0]).dtype);
    return !packed || n.is(reshape_def) || n.is(bitcast_def);
}

} // namespace ingot::plan
