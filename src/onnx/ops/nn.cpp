// SPDX-License-Identifier: Apache-2.0
// Matrix products, the softmax family, Dropout, and the rearrangements of channels and blocks.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

Values mat_mul(NodeContext& c) {
    return {ops::matmul(c.g, c.in(0), c.in(1))};
}

Value scaled(ingot::Graph& g, Value x, double factor) {
    return factor == 1 ? x : ops::mul(g, x, factor);
}

// alpha * A' * B' + beta * C; a transposition only changes the contracted axis.
Values gemm(NodeContext& c) {
    c.ensure(c.rank(0) == 2 && c.rank(1) == 2, "operands are ", c.type(0), " and ", c.type(1),
             ", expected matrices");
    double alpha = c.f("alpha", 1);
    double beta = c.f("beta", 1);
    bool whole = alpha == static_cast<double>(static_cast<int64_t>(alpha)) &&
                 beta == static_cast<double>(static_cast<int64_t>(beta));
    if (!is_float(c.dtype(0)) && !whole) {
        c.refuse(RefusalKind::Attribute, "integers times alpha = ", alpha, " and beta = ", beta);
    }
    int64_t a_axis = c.i("transA", 0) != 0 ? 0 : 1;
    int64_t b_axis = c.i("transB", 0) != 0 ? 1 : 0;
    Value y = ops::dot(c.g, Dot{{}, {}, {a_axis}, {b_axis}, c.dtype(0)}, c.in(0), c.in(1));
    y = scaled(c.g, y, alpha);
    if (c.has(2) && beta != 0) {
        y = ops::add(c.g, y, scaled(c.g, c.in(2), beta));
    }
    return {y};
}

Values softmax13(NodeContext& c) {
    bool log = c.node.op_type == "LogSoftmax";
    return {ops::softmax(c.g, c.in(0), c.i("axis", -1), log)};
}

// Before opset 13, all axes from `axis` on are flattened into one.
template <class F>
Values flattened(NodeContext& c, F&& along) {
    const Dims shape = c.type(0).dims;
    int64_t axis = c.i("axis", 1);
    axis = axis == c.rank(0) ? axis : normalize_axis(axis, c.rank(0));
    Dims flat(shape.begin(), shape.begin() + axis);
    flat.push_back(product(Dims(shape.begin() + axis, shape.end())));
    Value y = along(ops::reshape(c.g, c.in(0), flat), axis);
    return {ops::reshape(c.g, y, shape)};
}

Values softmax1(NodeContext& c) {
    bool log = c.node.op_type == "LogSoftmax";
    return flattened(c, [&](Value x, int64_t axis) { return ops::softmax(c.g, x, axis, log); });
}

Value one_hot_max(NodeContext& c, Value x, int64_t axis) {
    const Dims d = ops::dims(c.g, x);
    axis = normalize_axis(axis, static_cast<int64_t>(d.size()));
    Value best = ops::unsqueeze(c.g, ops::arg_reduce(c.g, "max", x, axis), {axis});
    Dims along(d.size(), Dim(1));
    along[static_cast<size_t>(axis)] = d[static_cast<size_t>(axis)];
    Value index = ops::iota(c.g, DType::I64, along, axis);
    return ops::cast(c.g, ops::equal(c.g, index, best), c.g.type(x).dtype);
}

Values hardmax13(NodeContext& c) {
    return {one_hot_max(c, c.in(0), c.i("axis", -1))};
}

Values hardmax1(NodeContext& c) {
    return flattened(c, [&](Value x, int64_t axis) { return one_hot_max(c, x, axis); });
}

Values dropped(NodeContext& c) {
    Value x = c.in(0);
    bool boolean = c.opset >= 10;
    Value mask = c.wants(1) ? ops::full(c.g, boolean ? DType::Bool : c.dtype(0), c.type(0).dims, 1)
                            : Value{};
    return {x, mask};
}

Values dropout12(NodeContext& c) {
    require_inference(c, 1, 2);
    return dropped(c);
}

Value as_tensor(NodeContext& c, const Dims& d, const std::vector<int64_t>& perm, const Dims& out) {
    return ops::reshape(c.g, ops::permute(c.g, ops::reshape(c.g, c.in(0), d), perm), out);
}

Values depth_to_space(NodeContext& c) {
    c.ensure(c.rank(0) == 4, "input is ", c.type(0), ", expected [N,C,H,W]");
    int64_t b = positive(c, "blocksize");
    std::string mode = c.s("mode", "DCR");
    c.ensure(mode == "DCR" || mode == "CRD", "attribute 'mode' is '", mode,
             "', expected 'DCR' or 'CRD'");
    const Dims d = c.type(0).dims;
    Dim depth = floor_div(d[1], b * b);
    Dims out = {d[0], depth, d[2] * Dim(b), d[3] * Dim(b)};
    if (mode == "DCR") {
        return {as_tensor(c, {d[0], b, b, depth, d[2], d[3]}, {0, 3, 4, 1, 5, 2}, out)};
    }
    return {as_tensor(c, {d[0], depth, b, b, d[2], d[3]}, {0, 1, 4, 2, 5, 3}, out)};
}

Values space_to_depth(NodeContext& c) {
    c.ensure(c.rank(0) == 4, "input is ", c.type(0), ", expected [N,C,H,W]");
    int64_t b = positive(c, "blocksize");
    const Dims d = c.type(0).dims;
    Dim h = floor_div(d[2], b);
    Dim w = floor_div(d[3], b);
    std::string mode = c.s("mode", "DCR");
    c.ensure(mode == "DCR" || mode == "CRD", "attribute 'mode' is '", mode,
             "', expected 'DCR' or 'CRD'");
    std::vector<int64_t> perm = {0, 3, 5, 1, 2, 4};
    if (mode == "CRD") {
        perm = {0, 1, 3, 5, 2, 4};
    }
    return {as_tensor(c, {d[0], d[1], h, b, w, b}, perm, {d[0], d[1] * Dim(b * b), h, w})};
}

const ImporterRow rows[] = {
    {"", "MatMul", 1, mat_mul, no_shapes},
    {"", "Gemm", 6, gemm, no_shapes},
    {"", "Softmax", 1, softmax1, no_shapes},
    {"", "Softmax", 13, softmax13, no_shapes},
    {"", "LogSoftmax", 1, softmax1, no_shapes},
    {"", "LogSoftmax", 13, softmax13, no_shapes},
    {"", "Hardmax", 1, hardmax1, no_shapes},
    {"", "Hardmax", 13, hardmax13, no_shapes},
    {"", "Dropout", 7, dropped, no_shapes},
    {"", "Dropout", 12, dropout12, no_shapes},
    {"", "DepthToSpace", 1, depth_to_space, no_shapes},
    {"", "SpaceToDepth", 1, space_to_depth, no_shapes},
};

} // namespace

extern const ImporterTable nn_importers;
const ImporterTable nn_importers = rows;

} // namespace ingot::onnx
