// SPDX-License-Identifier: Apache-2.0
// Products with quantised weights, and products of quantised operands: every tactic against the
// evaluator, and through the whole backend.
#include "backends/cuda/backend.h"
#include "kernels/harness.h"
#include "kernels/test_device.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

struct Weight {
    int64_t m = 1, n = 24, k = 64;
    DType type = DType::U4;
    DType activation = DType::F16;
    int64_t block = 32; // 0: a scale for each column; -1: one for all
    bool zero = true;
    bool columns_inside = false; // stored as [depth, columns]
};

/// x [m,k] by the weight, whose parts are inputs of the graph.
Value add_product(Graph& g, const Weight& w) {
    Value x = g.add_input("x", {w.activation, {w.m, w.k}});
    Dims stored = w.columns_inside ? Dims{w.k, w.n} : Dims{w.n, w.k};
    Value q = g.add_input("q", {w.type, stored});
    int64_t blocks = w.block > 0 ? (w.k + w.block - 1) / w.block : 1;
    Dims places = w.block > 0    ? (w.columns_inside ? Dims{blocks, w.n} : Dims{w.n, blocks})
                  : w.block == 0 ? Dims{w.n}
                                 : Dims{};
    Value scale = g.add_input("scale", {w.activation, places});
    Value zero;
    if (w.zero) {
        bool is_signed = w.type == DType::I4 || w.type == DType::I8;
        zero = g.add_input("zero", {is_signed ? DType::I8 : DType::U8, places});
    }
    ops::QuantizedDot a;
    a.a_contract = {1};
    a.b_contract = {w.columns_inside ? 0 : 1};
    a.dtype = w.activation;
    a.axis = w.block > 0 ? a.b_contract[0] : 1 - a.b_contract[0];
    a.block = std::max<int64_t>(w.block, 0);
    return ops::quantized_dot(g, a, x, q, scale, zero);
}

Graph weight_only(const Weight& w) {
    Graph g;
    g.add_output("y", add_product(g, w));
    return g;
}

/// All codes of the weight; the rest so small that f16 holds the results.
FamilyOptions options_of(const Weight& w) {
    FamilyOptions o;
    o.tolerance = w.activation == DType::BF16 ? 2e-2 : w.activation == DType::F32 ? 2e-3 : 4e-3;
    Graph g = weight_only(w);
    bool floats = is_float(w.type);
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        const Type& t = g.type(g.inputs()[i]);
        double low = i == 0 ? -1 : i == 1 ? (floats ? -2 : -128) : i == 2 ? 0.002 : 0;
        double high = i == 0 ? 1 : i == 1 ? (floats ? 2 : 255) : i == 2 ? 0.01 : 9;
        o.inputs.push_back(
            random_elements(t.dtype, eval(t.dims, {}), static_cast<unsigned>(i) + 1, low, high));
    }
    return o;
}

TEST(QuantizedDot, EveryWeightTypeInEveryTactic) {
    for (DType t : {DType::U4, DType::I4, DType::U8, DType::I8, DType::F8E4M3, DType::F8E5M2}) {
        bool zero = t != DType::F8E4M3 && t != DType::F8E5M2;
        Weight w{.m = 3, .n = 40, .k = 96, .type = t, .zero = zero};
        SCOPED_TRACE(str(t));
        std::vector<std::string> names = sweep(weight_only(w), options_of(w));
        EXPECT_TRUE(ran(names, "quant_gemv_s1"));
        EXPECT_TRUE(ran(names, "quant_mma_64x64"));
        EXPECT_TRUE(ran(names, "quant_simt"));
    }
}

TEST(QuantizedDot, RowsAndBlocks) {
    for (int64_t m : {1, 2, 8, 70}) {
        for (int64_t block : {16, 128, 0, -1}) {
            Weight w{.m = m, .n = 21, .k = 1152, .block = block};
            SCOPED_TRACE(str(m, " rows, blocks of ", block));
            FamilyOptions o = options_of(w);
            expect_family(weight_only(w), o);
            o.tactic = "quant_mma";
            o.cc = 80;
            expect_family(weight_only(w), o);
        }
    }
}

TEST(QuantizedDot, ActivationTypes) {
    for (DType t : {DType::F32, DType::BF16}) {
        for (int64_t m : {1, 33}) {
            Weight w{.m = m, .n = 40, .k = 160, .type = DType::I8, .activation = t};
            SCOPED_TRACE(str(t, ", ", m, " rows"));
            FamilyOptions o = options_of(w);
            sweep(weight_only(w), o);
        }
    }
}

TEST(QuantizedDot, OddExtents) {
    for (DType t : {DType::U4, DType::I8}) {
        for (int64_t k : {33, 50, 1}) {
            Weight w{.m = 5, .n = 7, .k = k, .type = t};
            SCOPED_TRACE(str(t, ", depth ", k));
            EXPECT_EQ(expect_family(weight_only(w), options_of(w)).tactic, "quant_simt");
        }
    }
}

TEST(QuantizedDot, ColumnsInside) {
    for (DType t : {DType::I4, DType::U8}) {
        for (int64_t block : {32, 0}) {
            Weight w{.m = 4, .n = 24, .k = 64, .type = t, .block = block, .columns_inside = true};
            SCOPED_TRACE(str(t, ", blocks of ", block));
            expect_family(weight_only(w), options_of(w));
        }
    }
}

TEST(QuantizedDot, WithBiasAndActivation) {
    for (int64_t m : {2, 20}) {
        Weight w{.m = m, .n = 24, .k = 128};
        Graph g;
        Value y = add_product(g, w);
        Value bias = g.add_input("bias", {DType::F16, {24}});
        Expr e;
        int sum = e.op(ExprOp::Add, e.in(0, DType::F16), e.in(1, DType::F16));
        e.op(ExprOp::Max, sum, e.constant(compute_type(DType::F16), 0));
        g.add_output("z", ops::map(g, e, DType::F16, std::array{y, bias}));
        FamilyOptions o = options_of(w);
        o.inputs.push_back(random_elements(DType::F16, {24}, 9));
        sweep(g, o);
    }
}

/// silu of the first half of the columns times the second.
Value gated(Graph& g, Value y) {
    int axis = g.type(y).rank() - 1;
    int64_t half = g.type(y).dims.back().value() / 2;
    Value gate = ops::slice(g, y, axis, 0, half);
    Value up = ops::slice(g, y, axis, half, half);
    Expr e;
    int x = e.in(0, g.type(y).dtype);
    int act = e.op(ExprOp::Mul, x, e.op(ExprOp::Sigmoid, x));
    e.op(ExprOp::Mul, act, e.in(1, g.type(y).dtype));
    return ops::map(g, e, g.type(y).dtype, std::array{gate, up});
}

TEST(QuantizedDot, GatedHalves) {
    for (Weight w :
         {Weight{.m = 1, .n = 26, .k = 160}, Weight{.m = 3, .n = 40, .k = 96, .type = DType::I8},
          Weight{.m = 8, .n = 36, .k = 128, .type = DType::I4, .block = 0, .zero = false},
          Weight{.m = 20, .n = 48, .k = 64, .type = DType::F8E4M3, .zero = false},
          Weight{.m = 5, .n = 24, .k = 64, .type = DType::I8, .columns_inside = true}}) {
        SCOPED_TRACE(str(w.type, ", ", w.m, " rows"));
        Graph g;
        g.add_output("z", gated(g, add_product(g, w)));
        FamilyOptions o = options_of(w);
        for (std::string_view tactic : {"quant_gemv_s2", "quant_mma_64x32_s1", "quant_simt"}) {
            o.tactic = tactic;
            bool runs = w.m <= 8 || tactic != "quant_gemv_s2";
            EXPECT_TRUE(!runs || expect_family(g, o).tactic == tactic) << tactic;
        }
    }
}

// --- through the backend

Value constant_of(Graph& g, DType t, const Shape& shape, double low, double high, unsigned seed) {
    return ops::constant(g, random_elements(t, shape, seed, low, high));
}

/// The backend's kernels for a graph: their entries, and the bytes of its constants.
struct Kernels {
    std::vector<std::string> entries;
    size_t bytes = 0;
    size_t held = 0; // packed on the host, and on the device
};

Kernels kernels_of(const Graph& g, const Shape& x) {
    TestDevice device(kernels::arch_of(90));
    auto backend = cuda::make_backend(device.gpu());
    auto executable = backend->compile(std::make_shared<const Graph>(g));
    auto execution = executable->create_execution();
    execution->prepare(std::array{x});
    Kernels out;
    for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
        out.entries.push_back(entry);
    }
    for (const Node& n : executable->lowered().nodes()) {
        out.bytes += n.is(constant_def) ? n.as<Constant>().value.bytes().size() : 0;
    }
    out.held = executable->packed_bytes();
    return out;
}

TEST(QuantizedDot, ThePackedConstantIsAllThatTheKernelReads) {
    constexpr int64_t n = 256;
    constexpr int64_t k = 2048;
    for (DType t : {DType::U4, DType::I8, DType::F8E4M3}) {
        for (bool columns_inside : {false, true}) {
            SCOPED_TRACE(str(t, columns_inside ? " [k,n]" : " [n,k]"));
            Graph g;
            Value x = g.add_input("x", {DType::F16, {1, k}});
            Shape stored = columns_inside ? Shape{k, n} : Shape{n, k};
            Value q = constant_of(g, t, stored, is_float(t) ? -2 : 0, is_float(t) ? 2 : 15, 1);
            Value scale = constant_of(g, DType::F16, {n}, 0.001, 0.003, 2);
            int64_t depth = columns_inside ? 0 : 1;
            Value zero = is_float(t) ? Value{} : ops::full(g, t, {n}, 7);
            Value w = ops::dequantize(g, {1 - depth, 0, DType::F16}, q, scale, zero);
            g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {depth}, DType::F16}, x, w));
            Kernels ran = kernels_of(g, {1, k});
            EXPECT_EQ(ran.entries, std::vector<std::string>{"quant_pipelined"});
            size_t packed = byte_size(t, n * k);
            EXPECT_GE(ran.bytes, packed);
            EXPECT_LT(ran.bytes, packed + 1024);
            // Once on the host, once on the device with scales and zero points.
            EXPECT_LT(ran.held, 2 * packed + 1024);
            expect_backend(g, {.tolerance = 4e-3});
        }
    }
}

TEST(QuantizedDot, GateAndUpAreOneKernel) {
    constexpr int64_t n = 128;
    constexpr int64_t k = 512;
    for (DType t : {DType::U4, DType::I8, DType::F8E4M3}) {
        for (int64_t block : {0, 64}) {
            SCOPED_TRACE(str(t, ", blocks of ", block));
            Graph g;
            Value x = g.add_input("x", {DType::F16, {1, k}});
            std::vector<Value> sides;
            for (unsigned seed : {1, 5}) {
                Value q =
                    constant_of(g, t, {k, n}, is_float(t) ? -2 : 0, is_float(t) ? 2 : 15, seed);
                Shape places = block > 0 ? Shape{k / block, n} : Shape{n};
                Value scale = constant_of(g, DType::F16, places, 0.005, 0.01, seed + 1);
                Dims dims(places.begin(), places.end());
                Value zero = is_float(t) ? Value{} : ops::full(g, t, dims, 7);
                Value w =
                    ops::dequantize(g, {block > 0 ? 0 : 1, block, DType::F16}, q, scale, zero);
                sides.push_back(ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F16}, x, w));
            }
            Value gate = ops::mul(g, sides[0], ops::unary(g, ExprOp::Sigmoid, sides[0]));
            g.add_output("y", ops::mul(g, gate, sides[1]));
            Kernels ran = kernels_of(g, {1, k});
            EXPECT_EQ(std::count(ran.entries.begin(), ran.entries.end(), "quant_pipelined"), 1);
            EXPECT_EQ(std::count(ran.entries.begin(), ran.entries.end(), "pointwise"), 0);
            expect_backend(g, {.tolerance = 4e-3});
        }
    }
}

/// A quantised network: convolution, depthwise convolution, residual sum, pointwise convolution.
Graph quantised_network(DType t) {
    Graph g;
    double zero = t == DType::U8 ? 118 : -3;
    auto number = [&](double v) { return ops::scalar(g, DType::F32, v); };
    auto pair = [&](Value x, double scale, double z) {
        Value q = ops::quantize(g, {1, 0, t, true}, x, number(scale), ops::scalar(g, t, z));
        return ops::dequantize(g, {}, q, number(scale), ops::scalar(g, t, z));
    };
    auto conv = [&](Value x, int64_t out, int64_t in, int64_t kernel, int64_t groups, bool relu) {
        auto seed = static_cast<unsigned>(out + in * 7 + kernel);
        Value w = constant_of(g, DType::I8, {out, in / groups, kernel, kernel}, -127, 127, seed);
        Value scales = constant_of(g, DType::F32, {out}, 0.0005, 0.002, seed + 1);
        w = ops::dequantize(g, {0, 0, DType::F32}, w, scales, ops::full(g, DType::I8, {out}, 0));
        Dim pad = kernel / 2;
        Value y = ops::conv(g, {{1, 1}, {1, 1}, {pad, pad}, {pad, pad}, groups, DType::F32}, x, w);
        Value bias =
            ops::dequantize(g, {0, 0, DType::F32},
                            constant_of(g, DType::I32, {out}, -900, 900, seed + 2), number(0.0003));
        y = ops::add(g, y, ops::reshape(g, bias, {out, 1, 1}));
        return relu ? ops::maximum(g, y, 0.0) : y;
    };
    double low = t == DType::U8 ? 0 : -128; // of what is never negative
    Value x = g.add_input("x", {DType::F32, {2, 16, 6, 7}});
    Value first = pair(x, 0.02, zero);
    Value y = pair(conv(first, 32, 16, 3, 1, true), 0.015, low);
    y = pair(conv(y, 32, 32, 3, 32, true), 0.01, low);
    y = pair(conv(y, 16, 32, 1, 1, false), 0.02, zero);
    y = pair(ops::add(g, y, first), 0.03, zero);
    y = pair(ops::reduce_mean(g, y, {2, 3}), 0.02, zero);
    Value w = ops::dequantize(g, {1, 0, DType::F32},
                              constant_of(g, DType::I8, {16, 10}, -127, 127, 5), number(0.01));
    g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, y, w));
    return g;
}

TEST(IntegerProducts, AQuantisedNetwork) {
    for (DType t : {DType::U8, DType::I8}) {
        for (int cc : {80, 90}) {
            SCOPED_TRACE(str(t));
            expect_backend(quantised_network(t), {.cc = cc, .tolerance = 2e-2});
        }
    }
}

TEST(IntegerProducts, RunOnIntegerTensorCores) {
    for (DType t : {DType::U8, DType::I8}) {
        Graph g;
        Value x = g.add_input("x", {t, {2, 32, 9, 8}});
        Value w = g.add_input("w", {DType::I8, {40, 32, 3, 3}});
        ops::Conv a{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, DType::I32};
        Value sums = ops::conv(g, a, x, w);
        Expr e;
        int y = e.op(ExprOp::Mul, e.cast(e.in(0, DType::I32), DType::F32), e.in(1, DType::F32));
        y = e.op(ExprOp::Round, y);
        y = e.op(ExprOp::Max, y, e.constant(DType::F32, t == DType::U8 ? 0 : -128));
        y = e.op(ExprOp::Min, y, e.constant(DType::F32, t == DType::U8 ? 255 : 127));
        e.cast(y, t);
        Value scale = g.add_input("scale", {DType::F32, {40, 1, 1}});
        g.add_output("y", ops::map(g, e, t, std::array{sums, scale}));
        FamilyOptions o;
        o.tolerance = 0;
        o.f64 = false;
        o.inputs = {random_elements(t, {2, 32, 9, 8}, 1, -128, 255),
                    random_elements(DType::I8, {40, 32, 3, 3}, 2, -128, 127),
                    random_elements(DType::F32, {40, 1, 1}, 3, 0.0001, 0.0005)};
        EXPECT_TRUE(ran(sweep(g, o), "conv_mma")) << str(t);
    }
}

TEST(IntegerProducts, MixedSignsOnTensorCores) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {33, 160}});
    Value w = g.add_input("w", {DType::I8, {40, 160}});
    g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {1}, DType::I32}, x, w));
    FamilyOptions o;
    o.tolerance = 0;
    o.low = -128;
    o.high = 255;
    EXPECT_TRUE(ran(sweep(g, o), "mma"));
}

} // namespace
} // namespace ingot::test
