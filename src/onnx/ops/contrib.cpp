// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that ONNX Runtime's optimiser and exporters produce: fused products,
// norms with skip connections, embeddings, block-quantised weights.
#include "base/error.h"
#include "onnx/ops/support/activations.h"
#include "onnx/ops/support/block_weights.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/quantized.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// --- convolutions

Values fused_conv(NodeContext& c) {
    Sliding s = sliding(c, spatial_dims(c.type(0)), kernel_sizes(c, 1));
    Value y = ops::conv(c.g, conv_attributes(c, s, c.dtype(0)), c.in(0), c.in(1));
    if (c.has(2)) {
        y = ops::add(c.g, y, per_channel(c.g, c.in(2), s.count()));
    }
    if (c.has(3)) {
        y = ops::add(c.g, y, c.in(3));
    }
    return {fused_activation(c, y)};
}

// Input and result are channels last; so are the weights of NhwcConv, [O,kernel...,C/groups], and
// the sum of NhwcFusedConv.
template <bool fused>
Values nhwc_conv(NodeContext& c) {
    ingot::Graph& g = c.g;
    int rank = c.type(0).rank();
    c.ensure(rank >= 3 && c.rank(1) == rank, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [N,spatial...,C] and a kernel of the same rank");
    Value x = channels_first(g, c.in(0));
    Value w = fused ? c.in(1) : channels_first(g, c.in(1));
    std::vector<int64_t> kernel;
    for (const Dim& d : spatial_dims(g.type(w))) {
        if (!d.is_const()) {
            c.refuse(RefusalKind::Dynamic, "the weights are ", c.type(1),
                     "; the kernel's size must be known");
        }
        kernel.push_back(d.value());
    }
    Sliding s = sliding(c, spatial_dims(g.type(x)), kernel);
    Value y = ops::conv(g, conv_attributes(c, s, c.dtype(0)), x, w);
    if (c.has(2)) {
        y = ops::add(g, y, per_channel(g, c.in(2), s.count()));
    }
    y = channels_last(g, y);
    y = fused && c.has(3) ? ops::add(g, y, c.in(3)) : y;
    return {fused_activation(c, y)};
}

// --- matrix products

// The product of two matrices, with attributes transA and transB.
Value gemm_product(NodeContext& c, Value a, Value b, DType t) {
    int64_t a_axis = c.i("transA", 0) != 0 ? 0 : 1;
    int64_t b_axis = c.i("transB", 0) != 0 ? 1 : 0;
    c.ensure(c.rank(0) == 2 && c.rank(1) == 2, "operands are ", c.type(0), " and ", c.type(1),
             ", expected matrices");
    return ops::dot(c.g, Dot{{}, {}, {a_axis}, {b_axis}, t}, a, b);
}

Values fused_gemm(NodeContext& c) {
    ingot::Graph& g = c.g;
    Value y = gemm_product(c, c.in(0), c.in(1), c.dtype(0));
    double alpha = c.f("alpha", 1);
    double beta = c.f("beta", 1);
    y = alpha == 1 ? y : ops::mul(g, y, alpha);
    if (c.has(2) && beta != 0) {
        y = ops::add(g, y, beta == 1 ? c.in(2) : ops::mul(g, c.in(2), beta));
    }
    return {fused_activation(c, y)};
}

// (A, B, [C], [scales of A, B and the result]): the result is rounded once.
Values gemm_float8(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string activation = c.s("activation", "NONE");
    c.ensure(activation == "NONE" || activation == "RELU" || activation == "GELU" ||
                 activation.empty(),
             "attribute 'activation' is '", activation, "', expected RELU, GELU or NONE");
    bool plain = c.dtype(0) == c.dtype(1) && bit_width(c.dtype(0)) > 8 && !c.has(3) && !c.has(4);
    auto operand = [&](int i) {
        Value v = c.in(i);
        v = c.has(i + 3) ? ops::dequantize(g, {0, 0, DType::F32}, v, to_scalar(g, c.in(i + 3))) : v;
        return plain ? v : ops::cast(g, v, DType::F32);
    };
    Value y = gemm_product(c, operand(0), operand(1), DType::F32);
    double alpha = c.f("alpha", 1);
    double beta = c.f("beta", 0);
    y = alpha == 1 ? y : ops::mul(g, y, alpha);
    if (c.has(2) && beta != 0) {
        y = ops::add(g, y, ops::mul(g, ops::cast(g, c.in(2), DType::F32), beta));
    }
    y = activation == "RELU"   ? ops::maximum(g, y, 0.0)
        : activation == "GELU" ? ops::gelu(g, y, true)
                               : y;
    y = c.has(5) ? ops::mul(g, y, to_scalar(g, c.in(5))) : y;
    DType t = dtype_attribute(c, "dtype", DType::F32);
    return {ops::cast(g, y, t, bit_width(t) == 8)};
}

// Moves the first axis behind all other batch axes: [d0,...,d(n-2),a,b] -> [...,d0,a,b].
Value batch_transposed(ingot::Graph& g, Value x) {
    int64_t rank = g.type(x).rank();
    std::vector<int64_t> perm;
    for (int64_t i = 1; i + 1 < rank; ++i) {
        perm.push_back(i);
    }
    perm.push_back(0);
    perm.push_back(rank - 1);
    return ops::permute(g, x, perm);
}

Value operand(NodeContext& c, int i, const char* transpose, const char* transpose_batch) {
    Value v = c.in(i);
    if (c.rank(i) >= 3 && c.i(transpose_batch, 0) != 0) {
        v = batch_transposed(c.g, v);
    }
    return c.rank(i) >= 2 && c.i(transpose, 0) != 0 ? ops::transpose_last(c.g, v) : v;
}

Values fused_matmul(NodeContext& c) {
    Value a = operand(c, 0, "transA", "transBatchA");
    Value b = operand(c, 1, "transB", "transBatchB");
    Value y = ops::matmul(c.g, a, b);
    double alpha = c.f("alpha", 1);
    return {alpha == 1 ? y : ops::mul(c.g, y, alpha)};
}

// The activation is a function of the activations of fused operators, or Softmax.
Values fused_matmul_activation(NodeContext& c) {
    std::string activation = c.s("activation", "");
    c.ensure(!activation.empty(), "attribute 'activation' is missing");
    c.ensure(activation == "Selu" || !c.has_attribute("activation_gamma"),
             "attribute 'activation_gamma' is given for '", activation, "', expected 'Selu'");
    Value y = fused_matmul(c)[0];
    if (activation == "Softmax") {
        return {ops::softmax(c.g, y, c.i("activation_axis", -1))};
    }
    return {fused_activation(c, y)};
}

Values matmul_nbits(NodeContext& c) {
    BlockWeights w = block_weights(c, "N");
    w.packed = c.in(1);
    w.scale = c.in(2);
    w.zero = c.optional(3);
    w.group = c.optional(4);
    w.bias = c.optional(5);
    return {block_product(c, c.in(0), w)};
}

// --- norms

// Mean and 1 / deviation over the last axis, f32.
Values last_axis_statistics(ingot::Graph& g, Value x, double epsilon, bool rms) {
    x = ops::cast(g, x, DType::F32);
    Value mean = ops::reduce_mean(g, x, {-1}, true);
    Value centred = rms ? x : ops::sub(g, x, mean);
    Value variance = ops::reduce_mean(g, ops::mul(g, centred, centred), {-1}, true);
    Value deviation = ops::sqrt(g, ops::add(g, variance, epsilon));
    return {mean, ops::div(g, ops::scalar(g, DType::F32, 1), deviation)};
}

// Outputs: norm of the sum, mean, 1 / deviation, the sum.
Values skip_norm(NodeContext& c, bool rms, Value scale, Value shift, Value bias) {
    ingot::Graph& g = c.g;
    Value sum = ops::add(g, c.in(0), c.in(1));
    sum = bias.valid() ? ops::add(g, sum, bias) : sum;
    double epsilon = c.f("epsilon", 1e-12F);
    Values out(4);
    out[0] = ops::layer_norm(g, {-1, epsilon, rms}, sum, scale, shift);
    if (c.wants(1) || c.wants(2)) {
        Values s = last_axis_statistics(g, sum, epsilon, rms);
        out[1] = s[0];
        out[2] = s[1];
    }
    out[3] = sum;
    return out;
}

Values skip_layer_norm(NodeContext& c) {
    return skip_norm(c, false, c.in(2), c.optional(3), c.optional(4));
}

Values skip_rms_norm(NodeContext& c) {
    return skip_norm(c, true, c.in(2), {}, c.optional(3));
}

template <bool quantized>
Values embed_layer_norm(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims ids = c.type(0).dims;
    c.ensure(ids.size() == 2, "input_ids is ", c.type(0), ", expected [batch,sequence]");
    // Rows of tables 2 to 4, norms 5 and 6: floats, or u8 with scales from 8 and zero points
    // from 13.
    auto plain = [&](int i, Value v) {
        return quantized ? dequantized(g, {v, c.in(i + 6), c.in(i + 11)}) : v;
    };
    Value sum = plain(2, ops::gather_wrapped(g, c.in(2), c.in(0), 0));
    Value positions = !quantized && c.has(8) ? ops::gather_wrapped(g, c.in(3), c.in(8), 0)
                                             : ops::slice(g, c.in(3), 0, 0, ids[1]);
    sum = ops::add(g, sum, plain(3, positions));
    c.ensure(!c.has(1) || c.has(4), "segment_ids is given, expected segment_embedding too");
    if (c.has(1)) {
        sum = ops::add(g, sum, plain(4, ops::gather_wrapped(g, c.in(4), c.in(1), 0)));
    }
    Value y = ops::layer_norm(g, {-1, c.f("epsilon", 1e-12F), false}, sum, plain(5, c.in(5)),
                              plain(6, c.in(6)));
    Value mask;
    if (c.wants(1)) {
        mask = ops::full(g, DType::I32, {ids[0]}, 0);
        if (c.has(7)) {
            Value ones = ops::equal(g, c.in(7), ops::scalar_i64(g, c.dtype(7), 1));
            mask = ops::reduce_sum(g, ops::cast(g, ones, DType::I32), {1});
        }
    }
    return {y, mask, sum};
}

Values bias_softmax(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t axis = normalize_axis(c.i("axis", 1), c.rank(0));
    Value x = ops::add(g, c.in(0), c.in(1));
    const Dims shape = ops::dims(g, x);
    Dims flat(shape.begin(), shape.begin() + axis);
    flat.push_back(product(Dims(shape.begin() + axis, shape.end())));
    return {ops::reshape(g, ops::softmax(g, ops::reshape(g, x, flat), axis), shape)};
}

Values bias_add(NodeContext& c) {
    return {ops::add(c.g, ops::add(c.g, c.in(0), c.in(1)), c.in(2))};
}

const ImporterRow rows[] = {
    {"com.microsoft", "FusedConv", 1, fused_conv, no_shapes},
    {"com.microsoft", "NhwcConv", 1, nhwc_conv<false>, no_shapes},
    {"com.microsoft", "NhwcFusedConv", 1, nhwc_conv<true>, no_shapes},
    {"com.microsoft", "FusedGemm", 1, fused_gemm, no_shapes},
    {"com.microsoft", "GemmFloat8", 1, gemm_float8, no_shapes},
    {"com.microsoft", "FusedMatMul", 1, fused_matmul, no_shapes},
    {"com.microsoft", "TransposeMatMul", 1, fused_matmul, no_shapes},
    {"com.microsoft", "FusedMatMulActivation", 1, fused_matmul_activation, no_shapes},
    {"com.microsoft", "MatMulNBits", 1, matmul_nbits, no_shapes},
    {"com.microsoft", "SkipLayerNormalization", 1, skip_layer_norm, no_shapes},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, skip_rms_norm, no_shapes},
    {"com.microsoft", "EmbedLayerNormalization", 1, embed_layer_norm<false>, no_shapes},
    {"com.microsoft", "QEmbedLayerNormalization", 1, embed_layer_norm<true>, no_shapes},
    {"com.microsoft", "BiasSoftmax", 1, bias_softmax, no_shapes},
    {"com.microsoft", "BiasAdd", 1, bias_add, no_shapes},
};

} // namespace

extern const ImporterTable contrib_importers;
const ImporterTable contrib_importers = rows;

} // namespace ingot::onnx
