// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Value sum_all(ingot::Graph& g, Value v) {
    return ops::reduce_sum(g, ops::flatten(g, v), {0});
}

// log_p [N, C, ...], target [N, ...], optional weights [C] as inputs 1 and 2 of the node.
Value nll(NodeContext& c, Value log_p) {
    ingot::Graph& g = c.g;
    std::string reduction = c.s("reduction", "mean");
    c.ensure(reduction == "none" || reduction == "sum" || reduction == "mean",
             "attribute 'reduction' is '", reduction, "', expected none, sum or mean");
    const Dims dims = ops::dims(g, log_p);
    c.ensure(dims.size() >= 2 && c.rank(1) + 1 == c.rank(0), "the inputs are ", c.type(0), " and ",
             c.type(1), ", expected [N, C, ...] and [N, ...]");
    std::vector<int64_t> classes_last = {0};
    for (int64_t i = 2; i < c.rank(0); ++i) {
        classes_last.push_back(i);
    }
    classes_last.push_back(1);
    Value rows = ops::flatten(g, ops::permute(g, log_p, classes_last));
    const Dims target_dims = c.type(1).dims;
    Value target = ops::flatten(g, to_i64(g, c.in(1)));
    Dim count = product(target_dims);

    DType t = g.type(log_p).dtype;
    bool ignores = c.has_attribute("ignore_index");
    Value weight;
    Value ignored;
    if (ignores) {
        Value index = ops::scalar_i64(g, DType::I64, c.i("ignore_index"));
        ignored = ops::equal(g, target, index);
        target = ops::select(g, ignored, ops::scalar_i64(g, DType::I64, 0), target);
    }
    if (c.has(2)) {
        weight = ops::gather(g, ops::widen(g, c.in(2)), target, 0);
    }
    if (ignores) {
        Value kept = weight.valid() ? weight : ops::scalar(g, t, 1);
        weight = ops::select(g, ignored, ops::scalar(g, t, 0), kept);
    }
    Value row = ops::iota(g, DType::I64, {count}, 0);
    Value index = ops::add(g, ops::mul(g, row, ops::dim_scalar(g, dims[1])), target);
    Value loss = ops::unary(g, ExprOp::Neg, ops::gather(g, rows, index, 0));
    if (ignores) { // 0 times an infinite loss would be NaN
        loss = ops::select(g, ignored, ops::scalar(g, t, 0), loss);
    }
    loss = weight.valid() ? ops::mul(g, loss, weight) : loss;
    if (reduction == "none") {
        loss = ops::reshape(g, loss, target_dims);
    } else {
        Value total = sum_all(g, loss);
        Value by = weight.valid() ? sum_all(g, weight) : size_scalar(g, count, t);
        loss = reduction == "mean" ? ops::div(g, total, by) : total;
    }
    return ops::cast(g, loss, c.dtype(0));
}

Values negative_log_likelihood(NodeContext& c) {
    return {nll(c, ops::widen(c.g, c.in(0)))};
}

Values softmax_cross_entropy(NodeContext& c) {
    Value log_p = ops::softmax(c.g, ops::widen(c.g, c.in(0)), 1, true);
    Value loss = nll(c, log_p);
    return {loss, c.wants(1) ? ops::cast(c.g, log_p, c.dtype(0)) : Value{}};
}

const ImporterRow rows[] = {
    {"", "NegativeLogLikelihoodLoss", 12, negative_log_likelihood, no_shapes},
    {"", "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy, no_shapes},
};

} // namespace

extern const ImporterTable loss_importers;
const ImporterTable loss_importers = rows;

} // namespace ingot::onnx
