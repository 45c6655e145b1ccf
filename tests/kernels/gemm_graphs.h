// SPDX-License-Identifier: Apache-2.0
// Matrix products for tests, with an epilogue or without.
#pragma once

#include "kernels/harness.h"
#include "ops/ops.h"

#include <array>
#include <string>
#include <vector>

namespace ingot::test {

using Extents = std::array<int64_t, 3>; // rows, columns, depth

struct Product {
    DType type = DType::F16;
    DType result = DType::F16;
    bool b_columns = false; // b is [depth, columns]
    int64_t batch = 0;
};

/// Adds a [m,k] * b [n,k] with graph inputs.
inline Value add_product(Graph& g, Extents x, Product p) {
    Dot d;
    d.dtype = p.result;
    Dims a = {x[0], x[2]};
    Dims b = p.b_columns ? Dims{x[2], x[1]} : Dims{x[1], x[2]};
    int64_t axis = p.batch > 0 ? 1 : 0;
    d.a_contract = {axis + 1};
    d.b_contract = {p.b_columns ? axis : axis + 1};
    if (p.batch > 0) {
        a.insert(a.begin(), p.batch);
        b.insert(b.begin(), p.batch);
        d.a_batch = {0};
        d.b_batch = {0};
    }
    Value va = g.add_input("a", {p.type, a});
    Value vb = g.add_input("b", {p.type, b});
    return ops::dot(g, d, va, vb);
}

/// For f32 operands, which may be rounded to TF32.
inline FamilyOptions rounded() {
    FamilyOptions options;
    options.tolerance = 2e-3;
    return options;
}

inline Graph product(Extents x, Product p = {}) {
    Graph g;
    g.add_output("y", add_product(g, x, p));
    return g;
}

/// Tiles stored by TMA.
constexpr const char* staying[] = {"wgmma_128x128_turns", "wgmma_128x160_turns",
                                   "wgmma_128x192_turns", "wgmma_192x128_turns"};

struct Ending {
    Extents extents = {70, 72, 96};
    DType type = DType::F16;
    DType result = DType::F16;
    std::vector<std::string> operands; // types, broadcast to [rows, columns]
    DType stored = DType::F16;
};

/// Adds the operands, one after another, applies `last`, and stores as `stored`.
inline Graph with_ending(const Ending& e, ExprOp last) {
    Graph g;
    Value y = add_product(g, e.extents, {.type = e.type, .result = e.result});
    std::vector<Value> in = {y};
    Expr body;
    int sum = body.in(0, e.result);
    for (const std::string& text : e.operands) {
        Type t = parse_type(text);
        int index = static_cast<int>(in.size());
        in.push_back(g.add_input(str("x", index), t));
        sum = body.op(ExprOp::Add, sum, body.cast(body.in(index, t.dtype), DType::F32));
    }
    int result = arity(last) == 1 ? body.op(last, sum) : body.op(last, sum, sum);
    if (compute_type(e.stored) != DType::F32) {
        result = body.cast(result, e.stored);
    }
    g.add_output("z", ops::map(g, body, e.stored, in));
    return g;
}

} // namespace ingot::test
