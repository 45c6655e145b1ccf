// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that join matrix products with their neighbours: the projections of a
// decoder's layer behind their norm, and products with an activation.
#include "base/error.h"
#include "onnx/ops/support/block_weights.h"
#include "onnx/ops/support/gates.h"
#include "onnx/ops/support/spatial.h"

namespace ingot::onnx {

namespace {

// --- products with weights in blocks

struct Normed {
    Value y;   // A itself where there is no norm
    Value sum; // of A and skip, or invalid
};

// Inputs A, [skip], [scale]: the RMS norm of A + skip.
Normed normed_input(NodeContext& c, double epsilon, int sum_output) {
    c.ensure(c.has(2) || !c.has(1), "input 1 (skip) is given without input 2 (norm_scale)");
    c.ensure(c.has(1) || !c.wants(sum_output), "output ", sum_output,
             " (input_skip_bias_sum) is used without input 1 (skip)");
    Normed n{c.in(0), {}};
    if (c.has(1)) {
        n.sum = ops::add(c.g, c.in(0), c.in(1));
        n.y = n.sum;
    }
    if (c.has(2)) {
        n.y = ops::layer_norm(c.g, {-1, epsilon, true}, n.y, c.in(2));
    }
    return n;
}

// Inputs weights, scales, [bias] from `first`.
Value projection(NodeContext& c, Value x, BlockWeights w, int first) {
    w.packed = c.in(first);
    w.scale = c.in(first + 1);
    w.bias = c.optional(first + 2);
    return block_product(c, x, w);
}

// (A, [skip], [scale], gate's and up's weights, scales, [bias])
Values matmul_nbits_mlp(NodeContext& c) {
    std::string activation = c.s("activation", "");
    if (activation != "silu") {
        c.refuse(RefusalKind::Attribute, "attribute 'activation' is '", activation,
                 "'; only 'silu' is supported");
    }
    Normed n = normed_input(c, c.f("epsilon", 1e-5F), 1);
    BlockWeights w = block_weights(c, "N");
    Value gate = projection(c, n.y, w, 3);
    Value up = projection(c, n.y, w, 6);
    return {ops::mul(c.g, silu(c.g, gate), up), n.sum};
}

// (A, [skip], scale, then weights, scales, [bias] of q, k and v)
Values matmul_nbits_qkv(NodeContext& c) {
    c.in(2);
    Normed n = normed_input(c, c.f("epsilon", 1e-6F), 3);
    BlockWeights q = block_weights(c, "Nq");
    BlockWeights kv = block_weights(c, "Nkv");
    return {projection(c, n.y, q, 3), projection(c, n.y, kv, 6), projection(c, n.y, kv, 9), n.sum};
}

// --- products of floats

Values gemm_fast_gelu(NodeContext& c) {
    Value y = ops::matmul(c.g, c.in(0), c.in(1));
    y = c.has(2) ? ops::add(c.g, y, c.in(2)) : y;
    return {ops::gelu(c.g, y, true)};
}

// One product of the logits of a router, and of gate and up of the expert that all tokens share.
Values router_gate_up(NodeContext& c) {
    std::string activation = c.s("activation", "swiglu");
    if (activation != "swiglu") {
        c.refuse(RefusalKind::Attribute, "attribute 'activation' is '", activation,
                 "'; only 'swiglu' is supported");
    }
    int64_t router = positive(c, "router_size");
    c.ensure(c.rank(1) == 2, "W is ", c.type(1), ", expected a matrix");
    const Dim width = c.dim(1, 1);
    c.ensure(!width.is_const() || width.value() >= router, "W is ", c.type(1), ", expected ",
             router, " columns of router_size and those of two halves");
    Value y = ops::matmul(c.g, c.in(0), c.in(1));
    Halves h = halves_of(c.g, ops::slice(c.g, y, -1, router, width - Dim(router)));
    return {ops::slice(c.g, y, -1, 0, router), swi_glu(c, h.first, h.second, false)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "MatMulNBitsMlp", 1, matmul_nbits_mlp, no_shapes},
    {"com.microsoft", "MatMulNBitsQkv", 1, matmul_nbits_qkv, no_shapes},
    {"com.microsoft", "GemmFastGelu", 1, gemm_fast_gelu, no_shapes},
    {"com.microsoft", "RouterGateUpProj", 1, router_gate_up, no_shapes},
};

} // namespace

extern const ImporterTable contrib_projections_importers;
const ImporterTable contrib_projections_importers = rows;

} // namespace ingot::onnx
