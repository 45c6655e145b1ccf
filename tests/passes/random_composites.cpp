// SPDX-License-Identifier: Apache-2.0
#include "passes/random_generator.h"

#include <algorithm>

namespace ingot::test {

using namespace ops;

void GraphGenerator::contracts() {
    Value v = any_f32(2);
    if (!v.valid() || !dims_of(v).back().is_const()) {
        return;
    }
    int64_t k = dims_of(v).back().value();
    Value w = tensor(DType::F32, {k, 5});
    Value y = matmul(g_, v, d_.chance(50) ? w : permute(g_, tensor(DType::F32, {5, k}), {1, 0}));
    if (d_.chance(50)) {
        y = mul(g_, y, tensor(DType::F32, {5}));
    }
    if (d_.chance(50)) {
        y = add(g_, y, tensor(DType::F32, {5}));
    }
    if (d_.chance(40)) {
        y = div(g_, y, 4);
    }
    if (d_.chance(30)) {
        y = matmul(g_, v, transpose_last(g_, v));
    }
    keep(unary(g_, ExprOp::Tanh, y));
}

void GraphGenerator::images() {
    Value v = any_that([](const Type& t) {
        return t.dtype == DType::F32 && t.rank() == 4 && t.dims[1].is_const() &&
               t.dims[2].is_const() && t.dims[3].is_const() && t.dims[2].value() >= 3 &&
               t.dims[3].value() >= 3 && t.dims[2].value() < 10 && t.dims[3].value() < 10;
    });
    if (!v.valid()) {
        v = g_.inputs()[3];
    }
    int64_t c = dims_of(v)[1].value();
    int64_t groups = c % 2 == 0 && d_.chance(30) ? 2 : 1;
    Dims none = {0, 0};
    if (d_.chance(40)) {
        v = pad(g_, v, {0, 0, 1, 0}, {0, 0, 1, 1}, 0.0);
    }
    Value y;
    if (d_.chance(20)) {
        y = pool(g_, Pool{"average", {2, 2}, {1, 1}, {1, 1}, none, none, none, false}, v);
    } else if (d_.chance(30)) {
        ConvTranspose t{{2, 1}, {1, 1}, none, none, groups};
        y = conv_transpose(g_, t, v, tensor(DType::F32, {c, 4 / groups, 2, 2}));
    } else {
        Conv a{{1, 1}, {1, 1}, {1, 0}, {0, 1}, groups, DType::F32};
        y = conv(g_, a, v, tensor(DType::F32, {4, c / groups, 2, 2}));
    }
    int64_t channels = dims_of(y)[1].value();
    for (int i = static_cast<int>(d_.below(4)); i > 0; --i) {
        Value p =
            d_.chance(70) ? tensor(DType::F32, {channels, 1, 1}) : scalar(g_, DType::F32, 1.5);
        y = d_.chance(50) ? mul(g_, y, p) : d_.chance(50) ? add(g_, y, p) : sub(g_, p, y);
    }
    keep(unary(g_, ExprOp::Tanh, mul(g_, y, 0.2)));
}

void GraphGenerator::composites() {
    Value v = any_f32(2);
    if (!v.valid() || !dims_of(v).back().is_const()) {
        return;
    }
    int64_t size = dims_of(v).back().value();
    switch (d_.below(smooth_ ? 4 : 6)) {
    case 0:
        return keep(softmax(g_, v, axis_of(v)));
    case 1:
        return keep(gelu(g_, v, d_.chance(50)));
    case 2:
        return keep(
            layer_norm(g_, LayerNorm{-1, 1e-2, d_.chance(50)}, v, tensor(DType::F32, {size})));
    case 3:
        return keep(scan(g_, Scan{"sum", axis_of(v), true, false}, mul(g_, v, 0.1)));
    case 4: {
        Value scale = scalar(g_, DType::F32, 0.05);
        Value q = quantize(g_, Quantize{1, 0, DType::I8, true}, v, scale);
        return keep(dequantize(g_, Dequantize{1, 0, DType::F32}, q, scale));
    }
    default:
        return keep(topk(g_, TopK{Dim(std::min<int64_t>(size, 2)), -1, true}, v)[0]);
    }
}

// Composites as spelled by exporters that do not know them.
void GraphGenerator::spelled() {
    Value v = any_f32(2);
    if (!v.valid() || !dims_of(v).back().is_const()) {
        return;
    }
    int64_t size = dims_of(v).back().value();
    switch (d_.below(5)) {
    case 4: {
        if (size % 2 != 0) {
            return;
        }
        Value table = tensor(DType::F32, {size / 2});
        table = concat(g_, std::array{table, table}, 0);
        Value half = slice(g_, v, -1, 0, size / 2);
        Value rest = unary(g_, ExprOp::Neg, slice(g_, v, -1, size / 2, size / 2));
        Value turned = concat(g_, std::array{rest, half}, -1);
        Value a = mul(g_, v, unary(g_, ExprOp::Cos, table));
        return keep(add(g_, a, mul(g_, turned, unary(g_, ExprOp::Sin, table))));
    }
    case 0: {
        Value e = unary(g_, ExprOp::Erf, div(g_, v, 1.41421354));
        return keep(mul(g_, mul(g_, v, add(g_, e, 1)), d_.chance(80) ? 0.5 : 0.4));
    }
    case 1: {
        Value c = sub(g_, v, reduce_mean(g_, v, {-1}, true));
        Value variance = reduce_mean(g_, mul(g_, c, c), {-1}, true);
        Value y = div(g_, c, sqrt(g_, add(g_, variance, 1e-2)));
        return keep(add(g_, mul(g_, y, tensor(DType::F32, {size})), tensor(DType::F32, {size})));
    }
    case 2: {
        Value e = exp(g_, sub(g_, v, reduce_max(g_, v, {-1}, true)));
        return keep(div(g_, e, reduce_sum(g_, e, {-1}, true)));
    }
    default: {
        Value scores = mul(g_, matmul(g_, v, transpose_last(g_, v)), 0.3);
        return keep(matmul(g_, softmax(g_, scores, -1), v));
    }
    }
}

} // namespace ingot::test
