// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on quantised tensors: pointwise ones and pooling compute in f32,
// products exactly in i32.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/pooling.h"
#include "onnx/ops/support/quantized.h"

#include <array>

namespace ingot::onnx {

namespace {

// (a, scale, zero, b, scale, zero, result scale, zero)
template <ExprOp op>
Values binary(NodeContext& c) {
    Value a = dequantized(c.g, quantized_input(c, 0, 1, 2));
    Value b = dequantized(c.g, quantized_input(c, 3, 4, 5));
    return {requantized(c.g, ops::binary(c.g, op, a, b), c.in(6), c.optional(7), c.dtype(0))};
}

// (x, scale, zero, result scale, zero)
template <class F>
Values unary(NodeContext& c, F&& f) {
    Value y = f(dequantized(c.g, quantized_input(c, 0, 1, 2)));
    return {requantized(c.g, y, c.in(3), c.optional(4), c.dtype(0))};
}

Values sigmoid(NodeContext& c) {
    return unary(c, [&](Value x) { return ops::unary(c.g, ExprOp::Sigmoid, x); });
}

Values leaky_relu(NodeContext& c) {
    return unary(c, [&](Value x) {
        Value negative = ops::less(c.g, x, ops::scalar(c.g, DType::F32, 0));
        return ops::select(c.g, negative, ops::mul(c.g, x, c.f("alpha", 0.01F)), x);
    });
}

Values softmax(NodeContext& c) {
    return unary(c, [&](Value x) {
        if (c.i("opset") >= 13) {
            return ops::softmax(c.g, x, c.i("axis", -1));
        }
        const Dims shape = ops::dims(c.g, x);
        int64_t axis = normalize_axis(c.i("axis", -1), c.rank(0));
        Dims flat(shape.begin(), shape.begin() + axis);
        flat.push_back(product(Dims(shape.begin() + axis, shape.end())));
        Value y = ops::softmax(c.g, ops::reshape(c.g, x, flat), axis);
        return ops::reshape(c.g, y, shape);
    });
}

Values reduce_mean(NodeContext& c) {
    std::vector<int64_t> axes = c.ints("axes");
    for (int64_t i = 0; !c.has_attribute("axes") && i < c.rank(0); ++i) {
        axes.push_back(i);
    }
    bool keep = c.i("keepdims", 1) != 0;
    return unary(c, [&](Value x) { return ops::reduce_mean(c.g, x, axes, keep); });
}

// Pools over spatial axes of a channels-first tensor; `channels_last` adds the transposes.
template <class F>
Value pooled(NodeContext& c, Value x, F&& pool) {
    if (c.i("channels_last", 0) == 0) {
        return pool(x);
    }
    return channels_last(c.g, pool(channels_first(c.g, x)));
}

Values average_pool(NodeContext& c) {
    return unary(c, [&](Value x) {
        return pooled(c, x, [&](Value v) {
            Dims spatial = spatial_dims(c.g.type(v));
            return ops::pool(c.g, pool_attributes(c, spatial, "average"), v);
        });
    });
}

Values global_average_pool(NodeContext& c) {
    return unary(c, [&](Value x) {
        return pooled(c, x, [&](Value v) {
            std::vector<int64_t> axes;
            for (int64_t i = 2; i < c.rank(0); ++i) {
                axes.push_back(i);
            }
            return ops::reduce_mean(c.g, v, axes, true);
        });
    });
}

// (result scale, zero, then x, scale, zero of each part)
Values concat(NodeContext& c) {
    std::vector<Value> parts;
    for (int i = 2; i + 2 < c.input_count(); i += 3) {
        parts.push_back(dequantized(c.g, quantized_input(c, i, i + 1, i + 2)));
    }
    c.ensure(!parts.empty() && c.input_count() % 3 == 2, "got ", c.input_count(),
             " inputs, expected 2 and then 3 for each part");
    Value y = ops::concat(c.g, parts, c.i("axis"));
    return {requantized(c.g, y, c.in(0), c.in(1))};
}

// (condition, x, scale, zero, y, scale, zero, result scale, zero)
Values where(NodeContext& c) {
    Value x = dequantized(c.g, quantized_input(c, 1, 2, 3));
    Value y = dequantized(c.g, quantized_input(c, 4, 5, 6));
    return {requantized(c.g, ops::select(c.g, c.in(0), x, y), c.in(7), c.in(8))};
}

// i32 times the product of two scales in f32: numbers, one per column, or of any shape that
// broadcasts to the product's.
Value scaled(ingot::Graph& g, Value product, Value a_scale, Value b_scale) {
    auto wide = [&](Value v) {
        v = ops::widen(g, v);
        return ops::dims(g, v) == Dims{1} ? to_scalar(g, v) : v;
    };
    Value scale = ops::mul(g, wide(a_scale), wide(b_scale));
    if (g.type(scale).rank() > 1) {
        return ops::mul(g, ops::cast(g, product, DType::F32), scale);
    }
    return ops::dequantize(g, {g.type(product).rank() - 1, 0, DType::F32}, product, scale);
}

// (A, scale, zero, B, scale, zero, [C: i32], [result scale, zero]); f32 without a result scale.
Values gemm(NodeContext& c) {
    ingot::Graph& g = c.g;
    Quantized a = quantized_input(c, 0, 1, 2);
    Quantized b = quantized_input(c, 3, 4, 5);
    c.ensure(c.has(7) == c.has(8), "inputs 7 and 8, scale and zero point of the result, are ",
             c.has(7) ? "given and missing" : "missing and given", ", expected both or none");
    a.v = c.i("transA", 0) != 0 ? ops::transpose_last(g, a.v) : a.v;
    b.v = c.i("transB", 0) != 0 ? ops::transpose_last(g, b.v) : b.v;
    Value y = exact_matmul(g, a, b);
    y = c.has(6) ? ops::add(g, y, c.in(6)) : y;
    y = scaled(g, y, a.scale, b.scale);
    double alpha = c.f("alpha", 1);
    y = alpha == 1 ? y : ops::mul(g, y, alpha);
    return {c.has(7) ? requantized(g, y, c.in(7), c.in(8)) : y};
}

// (A, B, a scale, b scale, [a zero], [b zero], [bias])
Values matmul_to_float(NodeContext& c) {
    ingot::Graph& g = c.g;
    Value y = exact_matmul(g, {c.in(0), {}, c.optional(4)}, {c.in(1), {}, c.optional(5)});
    y = scaled(g, y, c.in(2), c.in(3));
    y = c.has(6) ? ops::add(g, y, ops::widen(g, c.in(6))) : y;
    return {ops::cast(g, y, c.dtype(2))};
}

// (A: f32, B, b scale, [b zero], [bias])
Values dynamic_matmul(NodeContext& c) {
    ingot::Graph& g = c.g;
    Quantized a = quantized_now(g, c.in(0));
    Value y = exact_matmul(g, {a.v, {}, a.zero}, {c.in(1), {}, c.optional(3)});
    y = scaled(g, y, a.scale, c.in(2));
    return {c.has(4) ? ops::add(g, y, c.in(4)) : y};
}

// (input, weight, bias, input scale, weight scale, [mask], [input zero], [weight zero], [past])
Values attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.has(8) || c.wants(1)) {
        c.refuse(RefusalKind::Input,
                 "a past state is used; only attention without one is supported");
    }
    if (c.i("do_rotary", 0) != 0) {
        c.refuse(RefusalKind::Attribute,
                 "attribute 'do_rotary' is set; only attention without rotation is supported");
    }
    int64_t heads = positive(c, "num_heads");
    c.ensure(c.rank(0) == 3 && c.rank(1) == 2, "input and weight are ", c.type(0), " and ",
             c.type(1), ", expected [batch,sequence,hidden] and a matrix");
    Value y = exact_matmul(g, {c.in(0), {}, c.optional(6)}, {c.in(1), {}, c.optional(7)});
    y = ops::add(g, scaled(g, y, c.in(3), c.in(4)), ops::widen(g, c.in(2)));
    y = ops::cast(g, y, c.dtype(2));
    Dim hidden = floor_div(ops::dims(g, y)[2], 3);
    auto part = [&](int64_t i) {
        return split_heads(g, ops::slice(g, y, 2, Dim(i) * hidden, hidden), heads);
    };
    Value q = part(0);
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), q);
    a.causal = c.i("unidirectional", 0) != 0;
    Masks masks;
    if (c.has(5)) {
        add_key_mask(c, masks, c.in(5), ops::dims(g, y)[0], ops::dims(g, y)[1]);
    }
    return {merge_heads(g, ops::attention(g, a, q, part(1), part(2), combined(g, masks)))};
}

const ImporterRow rows[] = {
    {"com.microsoft", "QLinearAdd", 1, binary<ExprOp::Add>, no_shapes},
    {"com.microsoft", "QLinearMul", 1, binary<ExprOp::Mul>, no_shapes},
    {"com.microsoft", "QLinearSigmoid", 1, sigmoid, no_shapes},
    {"com.microsoft", "QLinearLeakyRelu", 1, leaky_relu, no_shapes},
    {"com.microsoft", "QLinearSoftmax", 1, softmax, no_shapes},
    {"com.microsoft", "QLinearReduceMean", 1, reduce_mean, no_shapes},
    {"com.microsoft", "QLinearAveragePool", 1, average_pool, no_shapes},
    {"com.microsoft", "QLinearGlobalAveragePool", 1, global_average_pool, no_shapes},
    {"com.microsoft", "QLinearConcat", 1, concat, no_shapes},
    {"com.microsoft", "QLinearWhere", 1, where, no_shapes},
    {"com.microsoft", "QGemm", 1, gemm, no_shapes},
    {"com.microsoft", "MatMulIntegerToFloat", 1, matmul_to_float, no_shapes},
    {"com.microsoft", "DynamicQuantizeMatMul", 1, dynamic_matmul, no_shapes},
    {"com.microsoft", "QAttention", 1, attention, no_shapes},
};

} // namespace

extern const ImporterTable contrib_quantized_importers;
const ImporterTable contrib_quantized_importers = rows;

} // namespace ingot::onnx
