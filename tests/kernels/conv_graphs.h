// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests, with an epilogue or without.
#pragma once

#include "ops/ops.h"

#include <optional>
#include <string>
#include <vector>

namespace ingot::test {

struct ConvCase {
    std::string x, w;
    std::vector<int64_t> strides = {1, 1};
    std::vector<int64_t> dilations = {1, 1};
    std::vector<int64_t> low = {1, 1};
    std::vector<int64_t> high = {1, 1};
    int64_t groups = 1;
    std::optional<DType> result = {};
};

/// Over three axes, without steps, and with a padding of one.
inline ConvCase volume(const std::string& x, const std::string& w) {
    return {.x = x,
            .w = w,
            .strides = {1, 1, 1},
            .dilations = {1, 1, 1},
            .low = {1, 1, 1},
            .high = {1, 1, 1}};
}

inline Value add_conv(Graph& g, const ConvCase& c) {
    Type x = parse_type(c.x);
    ops::Conv a;
    a.strides = c.strides;
    a.dilations = c.dilations;
    a.low = to_dims(c.low);
    a.high = to_dims(c.high);
    a.groups = c.groups;
    a.dtype = c.result.value_or(x.dtype);
    Value vx = g.add_input("x", x);
    Value vw = g.add_input("w", parse_type(c.w));
    return ops::conv(g, a, vx, vw);
}

inline Graph conv_graph(const ConvCase& c) {
    Graph g;
    g.add_output("y", add_conv(g, c));
    return g;
}

/// relu(conv + bias per channel + residual).
inline Graph with_residual(const ConvCase& c) {
    Graph g;
    Value y = add_conv(g, c);
    const Type& t = g.type(y);
    Dims channels(t.dims.size() - 1, Dim(1));
    channels[0] = t.dims[1];
    Value bias = g.add_input("bias", {t.dtype, channels});
    Value residual = g.add_input("residual", t);
    Expr body;
    int sum = body.op(ExprOp::Add, body.in(0, t.dtype), body.in(1, t.dtype));
    sum = body.op(ExprOp::Add, sum, body.in(2, t.dtype));
    body.op(ExprOp::Max, sum, body.constant(compute_type(t.dtype), 0));
    g.add_output("z", ops::map(g, body, t.dtype, std::vector<Value>{y, bias, residual}));
    return g;
}

} // namespace ingot::test
