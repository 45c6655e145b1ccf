// SPDX-License-Identifier: Apache-2.0
// Gated linear units after dot: a map of both halves of the columns, in every tactic.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

enum class Gate { Silu, Gelu, Relu, Sigmoid, Tanh };

struct Unit {
    std::array<int64_t, 3> extents; // rows, results of a row, depth
    DType type = DType::F16;
    DType result = DType::F16;
    DType stored = DType::F16;
    Gate gate = Gate::Silu;
    bool second = false;                    // the second half is the gate
    bool bias = false;                      // of each half
    std::vector<std::string> operands = {}; // types of what is added at the end
    bool b_columns = false;                 // b is [depth, columns]
    int64_t batch = 0;
};

int gated(Expr& e, int x, Gate gate) {
    auto constant = [&e](double v) { return e.constant(DType::F32, v); };
    switch (gate) {
    case Gate::Silu:
        return e.op(ExprOp::Mul, x, e.op(ExprOp::Sigmoid, x));
    case Gate::Gelu: {
        int f = e.op(ExprOp::Erf, e.op(ExprOp::Mul, x, constant(0.7071067690849304)));
        int half = e.op(ExprOp::Mul, x, constant(0.5));
        return e.op(ExprOp::Mul, half, e.op(ExprOp::Add, f, constant(1)));
    }
    case Gate::Relu:
        return e.op(ExprOp::Max, x, constant(0));
    case Gate::Sigmoid:
        return e.op(ExprOp::Sigmoid, x);
    case Gate::Tanh:
        break;
    }
    return e.op(ExprOp::Tanh, x);
}

Graph unit(const Unit& u) {
    auto [m, n, k] = u.extents;
    Graph g;
    Dot d;
    d.dtype = u.result;
    int64_t axis = u.batch > 0 ? 1 : 0;
    d.a_contract = {axis + 1};
    d.b_contract = {u.b_columns ? axis : axis + 1};
    Dims a = {m, k};
    Dims b = u.b_columns ? Dims{k, 2 * n} : Dims{2 * n, k};
    if (u.batch > 0) {
        a.insert(a.begin(), u.batch);
        b.insert(b.begin(), u.batch);
        d.a_batch = d.b_batch = {0};
    }
    Value va = g.add_input("a", {u.type, a});
    Value vb = g.add_input("b", {u.type, b});
    Value y = ops::dot(g, d, va, vb);
    Value low = ops::slice(g, y, axis + 1, 0, n);
    Value high = ops::slice(g, y, axis + 1, n, n);
    Values in = {low, high};
    Expr e;
    std::array<int, 2> sides{};
    auto read = [&](const Type& t) {
        in.push_back(g.add_input(str("x", in.size()), t));
        return e.cast(e.in(static_cast<int>(in.size()) - 1, t.dtype), DType::F32);
    };
    for (size_t i : {0, 1}) {
        int x = e.in(static_cast<int>(i), u.result);
        x = compute_type(u.result) == DType::F32 ? x : e.cast(x, DType::F32);
        sides[i] = u.bias ? e.op(ExprOp::Add, x, read({DType::F16, {n}})) : x;
    }
    size_t gate = u.second ? 1 : 0;
    int result = e.op(ExprOp::Mul, gated(e, sides[gate], u.gate), sides[1 - gate]);
    for (const std::string& text : u.operands) {
        result = e.op(ExprOp::Add, result, read(parse_type(text)));
    }
    if (compute_type(u.stored) != DType::F32) {
        result = e.cast(result, u.stored, true);
    }
    g.add_output("z", ops::map(g, e, u.stored, in));
    return g;
}

void expect_tactics(const Graph& g, std::initializer_list<std::string_view> tactics, int cc = 90,
                    double tolerance = -1) {
    for (std::string_view tactic : tactics) {
        FamilyOptions options;
        options.cc = cc;
        options.tactic = tactic;
        options.tolerance = tolerance;
        EXPECT_TRUE(expect_family(g, options).tactic.starts_with(tactic)) << tactic;
    }
}

TEST(Glu, EveryTactic) {
    std::vector<std::string> names =
        sweep(unit({.extents = {70, 40, 136}, .gate = Gate::Gelu, .second = true, .bias = true}));
    for (std::string_view prefix :
         {"wgmma_64x64", "wgmma_64x48", "wgmma_128x144", "wgmma_128x128_r2", "wgmma_256x160",
          "wgmma_128x160_pp", "wgmma_128x128_turns", "mma_64x64", "mma_128x128", "mma_16x64",
          "simt"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
}

TEST(Glu, TilesStoredByTma) {
    constexpr const char* tactic = "wgmma_128x128_turns_s1";
    expect_tactics(unit({.extents = {300, 208, 328},
                         .gate = Gate::Gelu,
                         .second = true,
                         .bias = true,
                         .operands = {"f16[300,208]"}}),
                   {tactic});
    expect_tactics(unit({.extents = {65, 24, 72},
                         .type = DType::BF16,
                         .result = DType::BF16,
                         .stored = DType::BF16,
                         .operands = {"bf16[24]", "f32[]"}}),
                   {tactic});
    // More tiles than SMs have warpgroups.
    expect_tactics(unit({.extents = {130, 8712, 8}, .gate = Gate::Relu}), {tactic});
    // TMA has no axis left for a batch, and stores no pieces of 8 bytes.
    EXPECT_FALSE(ran(tactic_names(unit({.extents = {70, 40, 136}, .batch = 2}), {}), tactic));
    EXPECT_FALSE(ran(tactic_names(unit({.extents = {70, 44, 136}}), {}), tactic));
}

TEST(Glu, OddExtents) {
    for (std::array<int64_t, 3> x : {std::array<int64_t, 3>{1, 1, 1}, {7, 65, 31}, {67, 33, 72}}) {
        SCOPED_TRACE(testing::PrintToString(x));
        expect_tactics(unit({.extents = x, .bias = true}), {"simt", "mma_64x32_s1"});
    }
}

TEST(Glu, EmptyAndDepthless) {
    expect_tactics(unit({.extents = {5, 6, 0}, .bias = true}), {"simt"});
    expect_tactics(unit({.extents = {0, 6, 8}}), {"simt"});
    expect_tactics(unit({.extents = {5, 0, 8}}), {"simt"});
}

TEST(Glu, Variants) {
    // Programs with one axis of rows more; a pair has no addends of which more may be missing.
    for (int variant : {1, 3}) {
        for (std::string_view tactic : {"wgmma_64x64_s1", "mma_64x64_s1"}) {
            FamilyOptions options;
            options.tactic = tactic;
            options.variant = variant;
            EXPECT_EQ(expect_family(unit({.extents = {33, 24, 64}}), options).tactic, tactic);
        }
    }
}

TEST(Glu, FewRows) {
    for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F8E4M3, DType::I8}) {
        for (int64_t m : {1, 2, 3, bit_width(t) == 8 ? 4 : 8}) {
            if (t != DType::F16 && (m == 1 || m == 3)) {
                continue; // other types in half of the forms
            }
            SCOPED_TRACE(str(t, ", ", m, " rows"));
            expect_tactics(unit({.extents = {m, 21, 1056},
                                 .type = t,
                                 .result = is_float(t) ? DType::F32 : DType::I32,
                                 .stored = DType::F32,
                                 .second = m == 2,
                                 .bias = m == 3}),
                           {"gemv_s1", "gemv_s8"});
        }
    }
}

TEST(Glu, SplitDepth) {
    Unit u{.extents = {40, 28, 1104}, .type = DType::BF16, .result = DType::BF16, .bias = true};
    expect_tactics(unit(u), {"wgmma_64x64_s4", "mma_32x64_s8"});
    expect_tactics(unit(u), {"mma_64x64_s2"}, 80); // partial sums in scratch memory
    u.extents[1] = 27;
    expect_tactics(unit(u), {"mma_64x64_s2"}, 80);
}

TEST(Glu, EveryGateAndHalf) {
    for (Gate gate : {Gate::Silu, Gate::Gelu, Gate::Relu, Gate::Sigmoid, Gate::Tanh}) {
        for (bool second : {false, true}) {
            expect_tactics(unit({.extents = {33, 24, 64}, .gate = gate, .second = second}),
                           {"wgmma_64x64_s1"});
        }
    }
}

TEST(Glu, ElementTypes) {
    struct Row {
        DType type, result, stored;
        std::string_view tactic;
    };
    for (Row r : {Row{DType::BF16, DType::BF16, DType::BF16, "wgmma_128x128_pp"},
                  Row{DType::F16, DType::F32, DType::F32, "wgmma_64x32_s1"},
                  Row{DType::F16, DType::F16, DType::F8E4M3, "mma_64x32_s1"},
                  Row{DType::F32, DType::F32, DType::F32, "mma_64x32_s1"},
                  Row{DType::I8, DType::I32, DType::F16, "mma_64x32_s1"},
                  Row{DType::F8E5M2, DType::F32, DType::F16, "simt"},
                  Row{DType::F16, DType::F16, DType::I8, "wgmma_64x64_s1"}}) {
        SCOPED_TRACE(str(r.type, " to ", r.stored));
        expect_tactics(unit({.extents = {33, 24, 96},
                             .type = r.type,
                             .result = r.result,
                             .stored = r.stored,
                             .gate = Gate::Sigmoid}),
                       {r.tactic}, 90, r.type == DType::F32 ? 2e-3 : -1);
    }
}

TEST(Glu, MapsInOtherTypes) {
    for (DType t : {DType::F64, DType::I64}) {
        Graph g;
        Dot d;
        d.a_contract = {1};
        d.b_contract = {1};
        d.dtype = t;
        Value y = ops::dot(g, d, g.add_input("a", {t, {9, 17}}), g.add_input("b", {t, {22, 17}}));
        Value low = ops::slice(g, y, 1, 0, 11);
        Value high = ops::slice(g, y, 1, 11, 11);
        Expr e;
        int x = e.op(ExprOp::Sub, e.in(0, t), e.in(1, t));
        e.op(ExprOp::Mul, x, e.in(1, t));
        g.add_output("z", ops::map(g, e, t, std::vector<Value>{low, high}));
        expect_tactics(g, {"simt"});
    }
}

TEST(Glu, Operands) {
    // A residual, a column, rows of other types: in vectors and not.
    expect_tactics(unit({.extents = {33, 24, 64}, .operands = {"f16[33,24]", "f32[33,1]"}}),
                   {"wgmma_128x128_s1", "mma_64x64_s1"});
    expect_tactics(
        unit({.extents = {19, 21, 64}, .bias = true, .operands = {"bf16[19,21]", "f32[]"}}),
        {"wgmma_64x64_s1", "simt"});
}

TEST(Glu, BatchesGapsAndOrders) {
    expect_tactics(unit({.extents = {20, 24, 72}, .batch = 3}), {"wgmma_64x64_s1", "mma_64x64_s1"});
    expect_tactics(unit({.extents = {20, 24, 40}, .b_columns = true}), {"wgmma_64x64_s1", "simt"});
    for (bool strided : {false, true}) {
        FamilyOptions options;
        options.strided = strided;
        if (!strided) {
            options.orders = {{1, 0}, {1, 0}};
        }
        for (std::string_view tactic : {"mma_64x64_s1", "simt"}) {
            options.tactic = tactic;
            EXPECT_EQ(expect_family(unit({.extents = {33, 20, 64}}), options).tactic, tactic);
        }
    }
}

TEST(Glu, PersistentBlocks) {
    FamilyOptions options;
    for (const char* tactic : {"wgmma_128x128_pp", "wgmma_128x160_pp"}) {
        options.tactic = tactic;
        Graph g = unit({.extents = {300, 328, 200}, .gate = Gate::Gelu, .bias = true, .batch = 5});
        EXPECT_TRUE(expect_family(g, options).tactic.starts_with(tactic));
    }
}

TEST(Glu, Refusals) {
    auto halves = [](const std::string& w, int64_t second) {
        Graph g;
        Dot d;
        d.a_contract = {1};
        d.b_contract = {static_cast<int64_t>(parse_type(w).rank()) - 1};
        Value a = g.add_input("a", parse_type("f32[12,8]"));
        Value y = ops::dot(g, d, a, g.add_input("b", parse_type(w)));
        int64_t axis = g.type(y).rank() - 1;
        Value low = ops::slice(g, y, axis, 0, 6);
        g.add_output("z", ops::mul(g, low, ops::slice(g, y, axis, second, 6)));
        return refusal(g);
    };
    EXPECT_EQ(halves("f32[12,8]", 6), std::nullopt);
    EXPECT_NE(halves("f32[12,8]", 3), std::nullopt); // other parts
    EXPECT_NE(halves("f32[8]", 6), std::nullopt);    // the last axis is one of rows
}

TEST(Glu, ThroughTheBackend) {
    // Gate and up as two products, and as one with a bias that is split: one kernel each.
    for (int cc : {80, 90}) {
        for (int64_t rows : {1, 40}) {
            SCOPED_TRACE(str(rows, " rows on ", cc));
            DType t = DType::F16;
            Graph g;
            Value x = g.add_input("x", {t, {2, rows, 64}});
            auto weight = [&](const Shape& shape, unsigned seed) {
                return ops::constant(g, random_elements(t, shape, seed, -0.2, 0.2));
            };
            Value gate = ops::matmul(g, x, weight({64, 96}, 3));
            Value up = ops::matmul(g, x, weight({64, 96}, 4));
            Value h = ops::mul(g, ops::mul(g, gate, ops::unary(g, ExprOp::Sigmoid, gate)), up);
            Value both = ops::add(g, ops::matmul(g, h, weight({96, 80}, 5)), weight({80}, 6));
            Value a = ops::slice(g, both, 2, 0, 40);
            Value b = ops::slice(g, both, 2, 40, 40);
            g.add_output("y", ops::mul(g, a, ops::gelu(g, b)));
            expect_backend(g, {.cc = cc, .tolerance = 4e-3});
        }
    }
}

} // namespace
} // namespace ingot::test
