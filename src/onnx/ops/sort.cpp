// SPDX-License-Identifier: Apache-2.0
// Order and running results along an axis: TopK, CumSum, CumProd.
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Values topk_of(NodeContext& c, const Dim& k) {
    int64_t axis = normalize_axis(c.i("axis", -1), c.rank(0));
    const Dim size = c.dim(0, axis);
    c.ensure(!k.is_const() || !size.is_const() || (k.value() >= 0 && k.value() <= size.value()),
             "k is ", k, " and the axis has ", size, " elements");
    return ops::topk(c.g, ops::TopK{k, axis, c.i("largest", 1) != 0}, c.in(0));
}

Values topk_attribute(NodeContext& c) {
    return topk_of(c, c.i("k"));
}

Values topk(NodeContext& c) {
    return topk_of(c, size_input(c, 1));
}

// For an axis known only at run time: reshapes it to the middle one of three.
Values running(NodeContext& c, const std::string& fn) {
    Scan scan{fn, 0, c.i("exclusive", 0) != 0, c.i("reverse", 0) != 0};
    const Dims dims = c.type(0).dims;
    c.ensure(!dims.empty(), "input 0 is a scalar, expected rank 1 or more");
    Value at = to_scalar(c.g, list_input(c, 1, 1));
    if (auto axis = known_ints(c, 1)) {
        scan.axis = normalize_axis((*axis)[0], c.rank(0));
        return {ops::scan(c.g, scan, c.in(0))};
    }
    if (dims.size() == 1) {
        return {ops::scan(c.g, scan, c.in(0))};
    }
    AroundAxis a = around_axis(c.g, dims, at);
    scan.axis = 1;
    Value y = ops::scan(c.g, scan, ops::reshape(c.g, c.in(0), {a.before, a.size, a.after}));
    return {ops::reshape(c.g, y, dims)};
}

Values cum_sum(NodeContext& c) {
    return running(c, "sum");
}

Values cum_prod(NodeContext& c) {
    return running(c, "prod");
}

const ImporterRow rows[] = {
    {"", "TopK", 1, topk_attribute, no_shapes},
    {"", "TopK", 10, topk, shape_inputs({1})},
    {"", "CumSum", 11, cum_sum, no_shapes},
    {"", "CumProd", 26, cum_prod, no_shapes},
};

} // namespace

extern const ImporterTable sort_importers;
const ImporterTable sort_importers = rows;

} // namespace ingot::onnx
