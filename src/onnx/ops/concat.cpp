// SPDX-License-Identifier: Apache-2.0
// Concat, Split, Pad, CenterCropPad.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Values concat(NodeContext& c) {
    Values in;
    for (int i = 0; i < c.input_count(); ++i) {
        in.push_back(c.in(i));
    }
    c.ensure(!in.empty(), "there are no inputs");
    c.ensure(c.has_attribute("axis") || c.opset < 4, "required attribute 'axis' is missing");
    return {ops::concat(c.g, in, c.i("axis", 1))};
}

// --- Split -------------------------------------------------------------------------------------

Values split_into(NodeContext& c, int64_t axis, const Dims& sizes) {
    Values out;
    Dim start = 0;
    for (const Dim& size : sizes) {
        out.push_back(ops::slice(c.g, c.in(0), axis, start, size));
        start = start + size;
    }
    return out;
}

Dims equal_parts(const NodeContext& c, const Dim& size, int64_t count) {
    if (c.opset < 18) {
        Dim part = floor_div(size, count);
        c.ensure(!size.is_const() || part * Dim(count) == size, "size ", size,
                 " does not divide into ", count, " equal parts");
        return Dims(static_cast<size_t>(count), part);
    }
    Dim part = ceil_div(size, count);
    Dims sizes(static_cast<size_t>(count), part);
    if (part * Dim(count) == size) {
        return sizes;
    }
    if (count == 2) {
        return {part, size - part};
    }
    for (size_t i = 1; i < sizes.size(); ++i) {
        // The last parts get the rest, which may be empty.
        sizes[i] = min(part, max(size - part * Dim(static_cast<int64_t>(i)), Dim(0)));
    }
    return sizes;
}

Values split(NodeContext& c) {
    int64_t axis = normalize_axis(c.i("axis", 0), c.rank(0));
    const Dim size = c.dim(0, axis);
    int64_t count = c.output_count();
    std::vector<int64_t> fixed = c.ints("split");
    if (fixed.empty() && !c.has(1)) {
        int64_t parts = c.i("num_outputs", count);
        c.ensure(parts == count && parts > 0, "the number of parts is ", parts, " for ", count,
                 " outputs");
        return split_into(c, axis, equal_parts(c, size, parts));
    }
    Dims sizes = c.has(1) ? sizes_input(c, 1, count) : Dims(fixed.begin(), fixed.end());
    c.ensure(static_cast<int64_t>(sizes.size()) == count, "there are ", sizes.size(), " sizes for ",
             count, " outputs");
    Dim total = 0;
    for (const Dim& s : sizes) {
        c.ensure(!s.is_const() || s.value() >= 0, "a part has size ", s);
        total = total + s;
    }
    c.ensure(!(total - size).is_const() || total == size, "the parts have ", total,
             " elements together, the axis has ", size);
    return split_into(c, axis, sizes);
}

// --- Pad ---------------------------------------------------------------------------------------

// The elements removed (negative pads) and added at one end of each axis.
struct End {
    Dims cut;
    Dims add;
};

End resting(size_t rank) {
    return {Dims(rank, Dim(0)), Dims(rank, Dim(0))};
}

Value padded(ingot::Graph& g, Value x, const End& low, const End& high, Value value,
             const std::string& mode) {
    const Dims in = ops::dims(g, x);
    for (size_t i = 0; i < in.size(); ++i) {
        Dim kept = in[i] - low.cut[i] - high.cut[i];
        require(!kept.is_const() || kept.value() >= 0, ErrorCode::InvalidModel, "pads cut ",
                low.cut[i] + high.cut[i], " elements off axis ", i, ", which has ", in[i]);
        x = ops::slice(g, x, static_cast<int64_t>(i), low.cut[i], kept);
    }
    return ops::pad(g, x, low.add, high.add, value, mode);
}

void set_pad(End& end, size_t axis, const Dim& pad) {
    Interval i = pad.bounds();
    end.add[axis] = i.low >= 0 ? pad : i.high <= 0 ? Dim(0) : max(pad, 0);
    end.cut[axis] = i.low >= 0 ? Dim(0) : i.high <= 0 ? Dim(0) - pad : max(Dim(0) - pad, 0);
}

// Pads known only at run time, as i64 [2 * axes], for all axes of x.
void bind_pads(ingot::Graph& g, Value pads, End& low, End& high) {
    size_t rank = low.add.size();
    Value opposite = ops::unary(g, ExprOp::Neg, pads);
    Dims add = ops::dims_from(g, ops::maximum(g, pads, 0.0));
    Dims cut = ops::dims_from(g, ops::maximum(g, opposite, 0.0));
    for (size_t i = 0; i < rank; ++i) {
        low.add[i] = add[i];
        low.cut[i] = cut[i];
        high.add[i] = add[rank + i];
        high.cut[i] = cut[rank + i];
    }
}

void known_pads(NodeContext& c, const Dims& pads, const std::vector<int64_t>& axes, End& low,
                End& high) {
    c.ensure(pads.size() == 2 * axes.size(), "there are ", pads.size(), " pads, expected ",
             2 * axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        set_pad(low, static_cast<size_t>(axes[i]), pads[i]);
        set_pad(high, static_cast<size_t>(axes[i]), pads[axes.size() + i]);
    }
}

// One pad for every axis of x, from pads for some of them.
Value spread_pads(ingot::Graph& g, Value pads, Value axes, int64_t count, int64_t rank) {
    Value at = ops::wrap_indices(g, axes, rank);
    Value zeros = ops::full(g, DType::I64, {Dim(rank)}, 0);
    Values ends;
    for (int64_t start : {int64_t{0}, count}) {
        Value part = ops::slice(g, pads, 0, start, count);
        ends.push_back(ops::scatter(g, zeros, at, part, "none"));
    }
    return ops::concat(g, ends, 0);
}

std::vector<int64_t> all_axes(int64_t rank) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < rank; ++i) {
        out.push_back(i);
    }
    return out;
}

std::string pad_mode(NodeContext& c) {
    std::string mode = c.s("mode", "constant");
    c.ensure(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
             "attribute 'mode' is '", mode, "', expected constant, reflect, edge or wrap");
    return mode;
}

Values pad_attributes(NodeContext& c) {
    auto rank = static_cast<size_t>(c.rank(0));
    End low = resting(rank);
    End high = resting(rank);
    std::vector<int64_t> pads = c.ints("pads");
    known_pads(c, Dims(pads.begin(), pads.end()), all_axes(c.rank(0)), low, high);
    Value value = ops::scalar(c.g, c.dtype(0), c.f("value", 0));
    return {padded(c.g, c.in(0), low, high, value, pad_mode(c))};
}

// [count]; com.microsoft's may be [1,count].
Value pads_input(NodeContext& c, int64_t count) {
    bool row = c.rank(1) == 2 && c.dim(1, 0).is_const(1);
    return row ? ops::reshape(c.g, to_i64(c.g, c.in(1)), {Dim(count)}) : list_input(c, 1, count);
}

Values pad_inputs(NodeContext& c) {
    int64_t rank = c.rank(0);
    End low = resting(static_cast<size_t>(rank));
    End high = low;
    Axes axes = read_axes(c, "", 3);
    bool fixed = !axes.value.valid();
    std::vector<int64_t> named = !axes.given ? all_axes(rank)
                                 : fixed     ? normalize_axes(*axes.known, rank)
                                             : std::vector<int64_t>{};
    int64_t count = axes.given ? axes.count : rank;
    if (count == 0) {
        return {c.in(0)};
    }
    Value pads = pads_input(c, 2 * count);
    auto known = ops::known_dims(c.g, pads);
    if (known && fixed) {
        known_pads(c, *known, named, low, high);
    } else {
        if (axes.given) {
            Value list = fixed ? ops::i64_list(c.g, named) : axes.value;
            pads = spread_pads(c.g, pads, list, count, rank);
        }
        bind_pads(c.g, pads, low, high);
    }
    Value value = c.has(2) ? to_scalar(c.g, c.in(2)) : ops::scalar(c.g, c.dtype(0), 0);
    return {padded(c.g, c.in(0), low, high, value, pad_mode(c))};
}

Values center_crop_pad(NodeContext& c) {
    int64_t rank = c.rank(0);
    const Dims in = c.type(0).dims;
    std::vector<int64_t> axes =
        c.has_attribute("axes") ? normalize_axes(c.ints("axes"), rank) : all_axes(rank);
    if (axes.empty()) {
        return {c.in(0)};
    }
    Dims wanted = sizes_input(c, 1, static_cast<int64_t>(axes.size()));
    End low = resting(in.size());
    End high = low;
    Dims out = in;
    for (size_t i = 0; i < axes.size(); ++i) {
        auto axis = static_cast<size_t>(axes[i]);
        Dim more = max(wanted[i] - in[axis], 0);
        Dim less = max(in[axis] - wanted[i], 0);
        low.add[axis] = floor_div(more, 2);
        high.add[axis] = more - low.add[axis];
        low.cut[axis] = floor_div(less, 2);
        high.cut[axis] = less - low.cut[axis];
        out[axis] = wanted[i];
    }
    Value zero = ops::scalar(c.g, c.dtype(0), 0);
    return {ops::reshape(c.g, padded(c.g, c.in(0), low, high, zero, "constant"), out)};
}

const ImporterRow rows[] = {
    {"", "Concat", 4, concat, no_shapes},
    {"", "Split", 2, split, shape_inputs({1}).and_results()},
    {"", "Pad", 2, pad_attributes, shape_results},
    {"", "Pad", 11, pad_inputs, shape_inputs({1, 3}).and_results()},
    {"com.microsoft", "Pad", 1, pad_inputs, shape_inputs({1}).and_results()},
    {"", "CenterCropPad", 18, center_crop_pad, no_shapes},
};

} // namespace

extern const ImporterTable concat_importers;
const ImporterTable concat_importers = rows;

} // namespace ingot::onnx
