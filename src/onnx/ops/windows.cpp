// SPDX-License-Identifier: Apache-2.0
// Window functions and the matrix that maps a spectrum to the mel scale.
#include "onnx/ops/support/inputs.h"

#include <cmath>
#include <numbers>

namespace ingot::onnx {

namespace {

// A window as a sum of cosines: sum over k of weights[k] * cos(2 pi k i / n).
Values cosine_window(NodeContext& c, const std::vector<double>& weights) {
    ingot::Graph& g = c.g;
    DType t = dtype_attribute(c, "output_datatype", DType::F32);
    DType work = t == DType::F64 ? DType::F64 : DType::F32;
    Dim n = size_input(c, 0);
    Dim period = c.i("periodic", 1) != 0 ? n : n - Dim(1);
    Value turn = ops::div(g, ops::scalar(g, work, 2 * std::numbers::pi),
                          size_scalar(g, max(period, 1), work));
    Value angle = ops::mul(g, ops::iota(g, work, {n}, 0), turn);
    Value sum = ops::full(g, work, {n}, weights[0]);
    for (size_t k = 1; k < weights.size(); ++k) {
        Value part = ops::unary(g, ExprOp::Cos, ops::mul(g, angle, static_cast<double>(k)));
        sum = ops::add(g, sum, ops::mul(g, part, weights[k]));
    }
    return {ops::cast(g, sum, t)};
}

Values hann(NodeContext& c) {
    return cosine_window(c, {0.5, -0.5});
}

Values hamming(NodeContext& c) {
    return cosine_window(c, {25.0 / 46.0, -21.0 / 46.0});
}

Values blackman(NodeContext& c) {
    return cosine_window(c, {0.42, -0.5, 0.08});
}

// mel(f) = 2595 log10(1 + f / 700)
Value to_mel(ingot::Graph& g, Value hertz) {
    Value x = ops::unary(g, ExprOp::Log1p, ops::div(g, hertz, 700.0));
    return ops::mul(g, x, 2595.0 / std::numbers::ln10);
}

Value from_mel(ingot::Graph& g, Value mel) {
    Value x = ops::unary(g, ExprOp::Expm1, ops::mul(g, mel, std::numbers::ln10 / 2595.0));
    return ops::mul(g, x, 700.0);
}

// i64 [bands + 2]: the bins of the triangles' corners: begin, peak and end.
Value corners(NodeContext& c, const Dim& bands, const Dim& length) {
    ingot::Graph& g = c.g;
    auto number = [&](int i) { return ops::cast(g, to_scalar(g, c.in(i)), DType::F64); };
    Value low = to_mel(g, number(3));
    Value range = ops::sub(g, to_mel(g, number(4)), low);
    Value step = ops::div(g, range, size_scalar(g, bands + Dim(2), DType::F64));
    Value index = ops::iota(g, DType::F64, {bands + Dim(2)}, 0);
    Value mel = ops::add(g, ops::mul(g, index, step), low);
    Value bin = ops::mul(g, from_mel(g, mel), size_scalar(g, length + Dim(1), DType::F64));
    Value floor = ops::unary(g, ExprOp::Floor, ops::div(g, bin, number(2)));
    return ops::cast(g, floor, DType::I64);
}

Values mel_weight_matrix(NodeContext& c) {
    ingot::Graph& g = c.g;
    DType t = dtype_attribute(c, "output_datatype", DType::F32);
    Dim bands = size_input(c, 0);
    Dim length = size_input(c, 1);
    Value all = corners(c, bands, length);
    Value low = ops::slice(g, all, 0, 0, bands);
    Value peak = ops::slice(g, all, 0, 1, bands);
    Value high = ops::slice(g, all, 0, 2, bands);
    Value j = ops::iota(g, DType::I64, {floor_div(length, 2) + Dim(1), Dim(1)}, 0);

    auto fraction = [&](Value part, Value whole) {
        Value safe = ops::maximum(g, whole, 1.0);
        return ops::div(g, ops::cast(g, part, DType::F64), ops::cast(g, safe, DType::F64));
    };
    Value rise = fraction(ops::sub(g, j, low), ops::sub(g, peak, low));
    Value fall = fraction(ops::sub(g, high, j), ops::sub(g, high, peak));
    Value from_low = ops::binary(g, ExprOp::Le, low, j);
    Value below_peak = ops::less(g, j, peak);
    Value rising = ops::binary(g, ExprOp::And, from_low, below_peak);
    Value after_peak = ops::less(g, peak, j);
    Value falling = ops::binary(g, ExprOp::And, after_peak, ops::less(g, j, high));
    Value zero = ops::scalar(g, DType::F64, 0);
    Value one = ops::scalar(g, DType::F64, 1);
    Value slopes = ops::select(g, rising, rise, ops::select(g, falling, fall, zero));
    Value weights = ops::select(g, ops::equal(g, j, peak), one, slopes);
    return {ops::cast(g, weights, t)};
}

const ImporterRow rows[] = {
    {"", "HannWindow", 17, hann, no_shapes},
    {"", "HammingWindow", 17, hamming, no_shapes},
    {"", "BlackmanWindow", 17, blackman, no_shapes},
    {"", "MelWeightMatrix", 17, mel_weight_matrix, no_shapes},
};

} // namespace

extern const ImporterTable windows_importers;
const ImporterTable windows_importers = rows;

} // namespace ingot::onnx
