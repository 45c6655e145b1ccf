// SPDX-License-Identifier: Apache-2.0
// Normalisations: batch, instance, layer, group, RMS, Lp, mean-variance and local response.
#include "base/error.h"
#include "onnx/data_type.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

std::vector<int64_t> axes_from(const NodeContext& c, int64_t first) {
    std::vector<int64_t> axes;
    for (int64_t i = normalize_axis(first, c.rank(0)); i < c.rank(0); ++i) {
        axes.push_back(i);
    }
    return axes;
}

size_t spatial_count(const NodeContext& c) {
    c.ensure(c.rank(0) >= 2, "input is ", c.type(0), ", expected [N,C,...]");
    return static_cast<size_t>(c.rank(0) - 2);
}

// (x - mean) / sqrt(variance + epsilon) * scale + bias, as one factor and one term per channel.
Value batch_normalized(NodeContext& c, Value x, Value mean, Value variance) {
    ingot::Graph& g = c.g;
    size_t n = c.rank(0) >= 2 ? spatial_count(c) : 0;
    DType stored = g.type(x).dtype;
    x = ops::widen(g, x);
    DType t = g.type(x).dtype;
    Value deviation = ops::sqrt(g, ops::add(g, ops::cast(g, variance, t), c.f("epsilon", 1e-5F)));
    Value factor = ops::div(g, ops::cast(g, c.in(1), t), deviation);
    Value shift = ops::mul(g, ops::cast(g, mean, t), factor);
    Value term = ops::sub(g, ops::cast(g, c.in(2), t), shift);
    if (c.rank(0) < 2) {
        return ops::cast(g, ops::add(g, ops::mul(g, x, factor), term), stored);
    }
    Value y = ops::mul(g, x, per_channel(g, factor, n));
    return ops::cast(g, ops::add(g, y, per_channel(g, term, n)), stored);
}

Values batch_norm(NodeContext& c) {
    if (c.opset < 9 && c.i("spatial", 1) == 0) {
        c.refuse(RefusalKind::Attribute,
                 "attribute 'spatial' is 0; only statistics for each channel are supported");
    }
    for (int i = 1; i < c.output_count(); ++i) {
        if (c.wants(i) && c.i("is_test", 0) == 0) {
            c.refuse(RefusalKind::Operator, "output ", i,
                     " of the training form is used; only inference is supported");
        }
    }
    Values out(5);
    out[0] = batch_normalized(c, c.in(0), c.in(3), c.in(4));
    return out;
}

Values batch_norm14(NodeContext& c) {
    if (c.i("training_mode", 0) == 0) {
        return {batch_normalized(c, c.in(0), c.in(3), c.in(4)), {}, {}};
    }
    ingot::Graph& g = c.g;
    std::vector<int64_t> axes = {0};
    for (size_t i = 0; i < spatial_count(c); ++i) {
        axes.push_back(static_cast<int64_t>(i + 2));
    }
    Value x = ops::widen(g, c.in(0));
    Value mean = ops::reduce_mean(g, x, axes, true);
    Value centred = ops::sub(g, x, mean);
    Value variance = ops::reduce_mean(g, ops::mul(g, centred, centred), axes);
    mean = ops::flatten(g, mean);
    double momentum = c.f("momentum", 0.9F);
    auto running = [&](int i, Value now) {
        DType t = c.dtype(i);
        Value before = ops::mul(g, ops::widen(g, c.in(i)), momentum);
        now = ops::mul(g, ops::cast(g, now, g.type(before).dtype), 1 - momentum);
        return ops::cast(g, ops::add(g, before, now), t);
    };
    return {batch_normalized(c, c.in(0), mean, variance), running(3, mean), running(4, variance)};
}

Values group_norm_by(NodeContext& c, int64_t groups, Value scale, Value bias) {
    ops::GroupNorm a{groups, c.f("epsilon", 1e-5F)};
    return {ops::group_norm(c.g, a, c.in(0), scale, bias)};
}

Values instance_norm(NodeContext& c) {
    spatial_count(c);
    Dim channels = c.dim(0, 1).is_const() ? c.dim(0, 1) : product(c.type(1).dims);
    if (!channels.is_const()) {
        c.refuse(RefusalKind::Dynamic, "input is ", c.type(0),
                 "; the number of channels must be known");
    }
    return group_norm_by(c, channels.value(), c.in(1), c.in(2));
}

Values group_norm(NodeContext& c) {
    return group_norm_by(c, positive(c, "num_groups"), c.in(1), c.in(2));
}

// Opset 18: scale and bias are per group.
Values group_norm18(NodeContext& c) {
    int64_t groups = positive(c, "num_groups");
    spatial_count(c);
    Dim channels = c.dim(0, 1);
    auto spread = [&](int i) {
        Value v = ops::reshape(c.g, c.in(i), {groups, 1});
        v = ops::broadcast_to(c.g, v, {groups, floor_div(channels, groups)});
        return ops::reshape(c.g, v, {channels});
    };
    return group_norm_by(c, groups, spread(1), spread(2));
}

// Mean and 1 / deviation over the trailing axes, in the type given by stash_type.
Values statistics(NodeContext& c, Value x, int64_t axis, double epsilon, bool rms) {
    ingot::Graph& g = c.g;
    DType stash = dtype_attribute(c, "stash_type", DType::F32);
    x = ops::cast(g, x, c.dtype(0) == DType::F64 ? DType::F64 : DType::F32);
    std::vector<int64_t> axes = axes_from(c, axis);
    Value mean = ops::reduce_mean(g, x, axes, true);
    Value centred = rms ? x : ops::sub(g, x, mean);
    Value variance = ops::reduce_mean(g, ops::mul(g, centred, centred), axes, true);
    Value deviation = ops::sqrt(g, ops::add(g, variance, epsilon));
    Value inverse = ops::div(g, ops::scalar(g, g.type(x).dtype, 1), deviation);
    return {ops::cast(g, mean, stash), ops::cast(g, inverse, stash)};
}

Values layer_norm(NodeContext& c) {
    int64_t axis = c.i("axis", -1);
    double epsilon = c.f("epsilon", 1e-5F);
    Values out(3);
    out[0] = ops::layer_norm(c.g, {axis, epsilon, false}, c.in(0), c.in(1), c.optional(2));
    if (c.wants(1) || c.wants(2)) {
        Values s = statistics(c, c.in(0), axis, epsilon, false);
        out[1] = s[0];
        out[2] = s[1];
    }
    return out;
}

// Also ONNX Runtime's SimplifiedLayerNormalization; the result has the scale's type.
Values rms_norm(NodeContext& c) {
    int64_t axis = c.i("axis", -1);
    double epsilon = c.f("epsilon", 1e-5F);
    Value y = ops::layer_norm(c.g, {axis, epsilon, true}, c.in(0), c.in(1));
    Value inverse = c.wants(1) ? statistics(c, c.in(0), axis, epsilon, true)[1] : Value{};
    return {ops::cast(c.g, y, c.dtype(1)), inverse};
}

Values lp_norm(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t p = c.i("p", 2);
    c.ensure(p == 1 || p == 2, "attribute 'p' is ", p, ", expected 1 or 2");
    Value x = ops::widen(g, c.in(0));
    Value powers = p == 2 ? ops::mul(g, x, x) : ops::unary(g, ExprOp::Abs, x);
    Value norm = ops::reduce_sum(g, powers, {c.i("axis", -1)}, true);
    norm = p == 2 ? ops::sqrt(g, norm) : norm;
    Value zero = ops::scalar(g, g.type(x).dtype, 0);
    Value y = ops::select(g, ops::equal(g, norm, zero), zero, ops::div(g, x, norm));
    return {ops::cast(g, y, c.dtype(0))};
}

Values mean_variance_norm(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::vector<int64_t> axes = c.ints("axes");
    if (!c.has_attribute("axes")) {
        axes = {0, 2, 3};
    }
    Value x = ops::widen(g, c.in(0));
    x = ops::sub(g, x, ops::reduce_mean(g, x, axes, true));
    Value deviation = ops::sqrt(g, ops::reduce_mean(g, ops::mul(g, x, x), axes, true));
    return {ops::cast(g, ops::div(g, x, ops::add(g, deviation, 1e-9)), c.dtype(0))};
}

Values lrn(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t size = positive(c, "size");
    c.ensure(c.rank(0) >= 2, "input is ", c.type(0), ", expected [N,C,...]");
    Value x = ops::widen(g, c.in(0));
    Value square = ops::mul(g, x, x);
    Dims low(static_cast<size_t>(c.rank(0)), Dim(0));
    Dims high = low;
    low[1] = (size - 1) / 2;
    high[1] = size - 1 - (size - 1) / 2;
    Value around = ops::window(g, ops::pad(g, square, low, high), Window{{1}, {size}, {1}, {1}});
    Value sum = ops::reduce_sum(g, around, {-1});
    double alpha = c.f("alpha", 1e-4F) / static_cast<double>(size);
    Value base = ops::add(g, ops::mul(g, sum, alpha), c.f("bias", 1));
    Value power = ops::binary(g, ExprOp::Pow, base, c.f("beta", 0.75));
    return {ops::cast(g, ops::div(g, x, power), c.dtype(0))};
}

const ImporterRow rows[] = {
    {"", "BatchNormalization", 6, batch_norm, no_shapes},
    {"", "BatchNormalization", 14, batch_norm14, no_shapes},
    {"", "InstanceNormalization", 6, instance_norm, no_shapes},
    {"", "GroupNormalization", 18, group_norm18, no_shapes},
    {"", "GroupNormalization", 21, group_norm, no_shapes},
    {"", "LayerNormalization", 1, layer_norm, no_shapes},
    {"com.microsoft", "LayerNormalization", 1, layer_norm, no_shapes},
    {"", "RMSNormalization", 23, rms_norm, no_shapes},
    {"", "SimplifiedLayerNormalization", 1, rms_norm, no_shapes},
    {"com.microsoft", "SimplifiedLayerNormalization", 1, rms_norm, no_shapes},
    {"", "LpNormalization", 1, lp_norm, no_shapes},
    {"", "MeanVarianceNormalization", 9, mean_variance_norm, no_shapes},
    {"", "LRN", 1, lrn, no_shapes},
};

} // namespace

extern const ImporterTable norm_importers;
const ImporterTable norm_importers = rows;

} // namespace ingot::onnx
