// SPDX-License-Identifier: Apache-2.0
// Graphs of one attention, for tests of the family.
#pragma once

#include "ops/ops.h"
#include "ops/primitives.h"

#include <string>

namespace ingot::test {

struct Sizes {
    int64_t batch = 1, heads = 2, groups = 2, queries = 33, keys = 70, depth = 64, values = 64;
};

inline Value add_attention(Graph& g, DType t, const Sizes& s, ops::Attention a,
                           const std::string& mask) {
    Value q = g.add_input("q", {t, {s.batch, s.heads, s.queries, s.depth}});
    Value k = g.add_input("k", {t, {s.batch, s.groups, s.keys, s.depth}});
    Value v = g.add_input("v", {t, {s.batch, s.groups, s.keys, s.values}});
    Value m = mask.empty() ? Value() : g.add_input("m", parse_type(mask));
    a.scale = 0.2;
    return ops::attention(g, a, q, k, v, m);
}
inline Graph graph_of(DType t, const Sizes& s, const ops::Attention& a = {},
                      const std::string& mask = {}) {
    Graph g;
    g.add_output("y", add_attention(g, t, s, a, mask));
    return g;
}

/// x / step in bytes, whole ones from the least value of the type on. The factor is an operand.
inline Value rounded_to_bytes(Graph& g, Value x, DType to, double step) {
    Expr body;
    int v = body.cast(body.in(0, g.type(x).dtype), DType::F32);
    v = body.op(ExprOp::Mul, v, body.in(1, DType::F32));
    if (is_integer(to)) {
        bool has_sign = to == DType::I8;
        v = body.op(ExprOp::Max, body.op(ExprOp::Round, v),
                    body.constant(DType::F32, has_sign ? -128 : 0));
        v = body.op(ExprOp::Min, v, body.constant(DType::F32, has_sign ? 127 : 255));
    }
    body.cast(v, to, true);
    Value factor = ops::constant(g, Tensor::scalar(DType::F32, 1 / step));
    return ops::map(g, body, to, Values{x, factor});
}

} // namespace ingot::test
