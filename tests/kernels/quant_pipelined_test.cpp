// SPDX-License-Identifier: Apache-2.0
// Products of few rows with quantised weights through pipelined tiles: every element type, scales
// by column and by block, zero points, ragged extents, pairs of columns, norms of the rows.
#include "backends/cuda/lower.h"
#include "ir/text.h"
#include "kernels/harness.h"
#include "ops/ops.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

enum class Zero { None, One, Each }; // one for all; one for each column, or block of it

struct Weight {
    int64_t m = 1, n = 40, k = 1184;
    DType type = DType::I8;
    DType activation = DType::F16;
    int64_t block = 0; // 0: a scale for each column
    Zero zero = Zero::None;
    DType scale = DType::F32;
};

/// x [m,k] by the weight [n,k]; inputs are x, q, scale and perhaps zero.
Value product(Graph& g, const Weight& w, Value x) {
    Value q = g.add_input("q", {w.type, {w.n, w.k}});
    int64_t blocks = w.block > 0 ? (w.k + w.block - 1) / w.block : 1;
    Dims places = w.block > 0 ? Dims{w.n, blocks} : Dims{w.n};
    Value scale = g.add_input("scale", {w.scale, places});
    Value zero;
    if (w.zero != Zero::None) {
        DType t = is_signed(w.type) ? DType::I8 : DType::U8;
        zero = g.add_input("zero", {t, w.zero == Zero::One ? Dims{} : places});
    }
    ops::QuantizedDot a;
    a.a_contract = {1};
    a.b_contract = {1};
    a.dtype = w.activation;
    a.axis = w.block > 0 ? 1 : 0;
    a.block = w.block;
    return ops::quantized_dot(g, a, x, q, scale, zero);
}

Graph plain(const Weight& w) {
    Graph g;
    g.add_output("y", product(g, w, g.add_input("x", {w.activation, {w.m, w.k}})));
    return g;
}

/// All codes of the weight; the rest so small that f16 holds the results.
FamilyOptions options_of(const Graph& g, const Weight& w, std::string_view tactic) {
    FamilyOptions o;
    o.tactic = tactic;
    o.tolerance = w.activation == DType::BF16 ? 1e-2 : 2e-3;
    bool floats = is_float(w.type);
    for (Value v : g.inputs()) {
        const std::string& name = g.value_name(v);
        double low = name == "q" ? (floats ? -2 : -128) : name == "scale" ? 0.002 : -1;
        double high = name == "q" ? (floats ? 2 : 255) : name == "scale" ? 0.01 : 1;
        if (name == "zero") {
            low = is_signed(w.type) ? -8 : 0;
            high = bit_width(w.type) == 8 && !is_signed(w.type) ? 255 : is_signed(w.type) ? 7 : 15;
        }
        auto seed = static_cast<unsigned>(o.inputs.size()) + 1;
        o.inputs.push_back(
            random_elements(g.type(v).dtype, eval(g.type(v).dims, {}), seed, low, high));
    }
    return o;
}

void expect_pipelined(const Graph& g, const Weight& w, std::string_view tactic) {
    SCOPED_TRACE(str(w.type, ", ", w.m, " x ", w.n, " x ", w.k, ", blocks of ", w.block,
                     ", zero points ", static_cast<int>(w.zero), ", ", tactic));
    FamilyRun run = expect_family(g, options_of(g, w, tactic));
    EXPECT_EQ(run.tactic, tactic);
    EXPECT_EQ(run.entries, std::vector<std::string>{"quant_pipelined"});
}

TEST(QuantPipelined, EveryTypeAndCountOfRows) {
    for (DType t : {DType::I8, DType::U8, DType::I4, DType::U4, DType::F8E4M3, DType::F8E5M2}) {
        for (int64_t m : {1, 2, 3, 8}) {
            if ((m == 2 || m == 3) && t != DType::I4) {
                continue;
            }
            Weight w{.m = m, .type = t};
            expect_pipelined(plain(w), w,
                             m == 3 ? "quant_pipelined_s2_b1" : "quant_pipelined_s4_b1");
        }
    }
}

TEST(QuantPipelined, ShareWarpsAndStayOnFewBlocks) {
    // More units than a group of warps keeps the sums of; groups with an extra unit, and idle
    // blocks.
    for (int64_t m : {1, 5}) {
        Weight w{.m = m, .n = 2217, .k = 48};
        expect_pipelined(plain(w), w, m > 4 ? "quant_pipelined_s4_b1" : "quant_pipelined_s2_b1");
        expect_pipelined(plain(w), w, m > 4 ? "quant_pipelined_s4_b2" : "quant_pipelined_s2_b2");
        Weight deep{.m = m, .n = 1160, .k = 1168};
        expect_pipelined(plain(deep), deep, "quant_pipelined_s8_b1");
    }
    Weight wide{.n = 36000, .k = 32};
    expect_pipelined(plain(wide), wide, "quant_pipelined_s2_b1");
}

TEST(QuantPipelined, RowsThatThreadsTakeInManyParts) {
    // Four parts at once, and a fifth for some threads.
    for (DType t : {DType::I8, DType::I4}) {
        Weight w{.n = 24, .k = 9312, .type = t};
        expect_pipelined(plain(w), w, "quant_pipelined_s8_b1");
    }
}

TEST(QuantPipelined, ZeroPoints) {
    for (DType t : {DType::I8, DType::U8, DType::I4, DType::U4}) {
        for (DType activation : {DType::F16, DType::BF16}) {
            for (Zero z : {Zero::One, Zero::Each}) {
                Weight w{.type = t, .activation = activation, .zero = z};
                expect_pipelined(plain(w), w, "quant_pipelined_s2_b1");
            }
        }
    }
}

TEST(QuantPipelined, ScalesOfBlocks) {
    struct Case {
        DType type;
        int64_t block, k;
    };
    for (Case c : {Case{DType::I4, 32, 1184},
                   {DType::U4, 64, 640},
                   {DType::I4, 128, 1184},
                   {DType::I4, 256, 1184},
                   {DType::U4, 512, 1184},
                   {DType::I8, 16, 272},
                   {DType::U8, 32, 304},
                   {DType::I8, 128, 1168},
                   {DType::F8E4M3, 64, 272}}) {
        for (int64_t m : {1, 2, 3, 8}) {
            for (Zero z : {Zero::None, Zero::Each}) {
                bool zeros = z != Zero::None;
                bool few = c.block == 32; // every count of rows
                if ((zeros && is_float(c.type)) || (zeros && m == 2) ||
                    (!few && m != (c.block % 128 == 0 ? 1 : 8))) {
                    continue;
                }
                Weight w{.m = m,
                         .n = 48,
                         .k = c.k,
                         .type = c.type,
                         .block = c.block,
                         .zero = z,
                         .scale = zeros ? DType::F16 : DType::F32};
                expect_pipelined(plain(w), w,
                                 m > 4 ? "quant_pipelined_s4_b1" : "quant_pipelined_s2_b1");
            }
        }
    }
}

TEST(QuantPipelined, BlocksOfBfloat16WithOneZeroPoint) {
    for (DType t : {DType::U4, DType::U8}) {
        Weight w{.m = 2,
                 .n = 24,
                 .k = 640,
                 .type = t,
                 .activation = DType::BF16,
                 .block = 32,
                 .zero = Zero::One,
                 .scale = DType::BF16};
        expect_pipelined(plain(w), w, "quant_pipelined_s2_b1");
    }
}

TEST(QuantPipelined, RefusesRowsThatTmaCannotAddress) {
    // Rows of bytes, blocks, scales side by side that are no multiples of 16 bytes; blocks narrower
    // than a lane's part; other kernels run these.
    for (Weight w : {Weight{.k = 40}, Weight{.k = 48, .type = DType::I4},
                     Weight{.n = 42, .k = 128, .type = DType::I4, .block = 32},
                     Weight{.k = 128, .type = DType::I4, .block = 16},
                     Weight{.k = 192, .type = DType::I8, .block = 48}, Weight{.m = 9, .k = 128},
                     Weight{.k = 128, .activation = DType::F32}}) {
        SCOPED_TRACE(str(w.type, ", ", w.m, " x ", w.n, " x ", w.k, ", blocks of ", w.block));
        Graph g = plain(w);
        for (const std::string& name : tactic_names(g)) {
            EXPECT_FALSE(name.starts_with("quant_pipelined")) << name;
        }
        expect_family(g, options_of(g, w, ""));
    }
    FamilyOptions old{.cc = 89};
    for (const std::string& name : tactic_names(plain({}), old)) {
        EXPECT_FALSE(name.starts_with("quant_pipelined")) << name;
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

TEST(QuantPipelined, GatedHalves) {
    for (Weight w : {Weight{.n = 36, .type = DType::I8}, Weight{.m = 3, .n = 44, .type = DType::I4},
                     Weight{.m = 2, .n = 64, .k = 640, .type = DType::I4, .block = 32},
                     Weight{.m = 4, .n = 50, .type = DType::U8, .zero = Zero::Each}}) {
        Graph g;
        Value x = g.add_input("x", {w.activation, {w.m, w.k}});
        g.add_output("z", gated(g, product(g, w, x)));
        expect_pipelined(g, w, "quant_pipelined_s2_b1");
    }
}

TEST(QuantPipelined, LeavesZeroPointsOfHalvesToOtherKernels) {
    // 8 of them, of a byte each, are less than TMA's step.
    Weight w{
        .n = 96, .k = 640, .type = DType::U4, .block = 64, .zero = Zero::Each, .scale = DType::F16};
    Graph g;
    Value x = g.add_input("x", {w.activation, {w.m, w.k}});
    g.add_output("z", gated(g, product(g, w, x)));
    for (const std::string& name : tactic_names(g)) {
        EXPECT_FALSE(name.starts_with("quant_pipelined")) << name;
    }
    expect_family(g, options_of(g, w, ""));
}

TEST(QuantPipelined, ResidualBehindTheSums) {
    for (int64_t m : {1, 6}) {
        Weight w{.m = m, .n = 56, .type = DType::I4, .block = 32};
        Graph g;
        Value y = product(g, w, g.add_input("x", {w.activation, {w.m, w.k}}));
        Value residual = g.add_input("residual", {DType::F16, {w.m, w.n}});
        g.add_output("z", ops::add(g, y, residual));
        expect_pipelined(g, w, "quant_pipelined_s4_b1");
    }
}

TEST(QuantPipelined, NormsOfTheRows) {
    for (bool rms : {true, false}) {
        for (int64_t m : {1, 4}) {
            for (Weight w : {Weight{.m = m, .n = 64, .type = DType::I4, .block = 32},
                             Weight{.m = m, .n = 36, .k = 304, .type = DType::F8E4M3}}) {
                Graph g;
                Value x = g.add_input("x", {w.activation, {w.m, w.k}});
                Values vectors = {g.add_input("gain", {DType::F16, {w.k}})};
                if (!rms) {
                    vectors.push_back(g.add_input("bias", {DType::F32, {w.k}}));
                }
                ops::LayerNorm a;
                a.axis = 1;
                a.epsilon = 1e-5;
                a.rms = rms;
                Value normed = ops::layer_norm(g, a, x, vectors[0], rms ? Value{} : vectors[1]);
                g.add_output("z", m == 1 ? gated(g, product(g, w, normed)) : product(g, w, normed));
                FamilyOptions o = options_of(g, w, "normed_quant_pipelined_s2_b1");
                o.family = "quantized_dot";
                o.tolerance = 4e-3;
                EXPECT_EQ(expect_family(g, o).tactic, o.tactic);
                o.tactic = "norm_quant_gemv_s1";
                EXPECT_EQ(expect_family(g, o).entries.size(), 2U);
            }
        }
    }
}

/// The same tiles for weights of 16 bits.
TEST(QuantPipelined, PlainWeightsOfSixteenBits) {
    for (DType t : {DType::F16, DType::BF16}) {
        for (int64_t m : {1, 3, 8}) {
            for (bool norm : {false, true}) {
                SCOPED_TRACE(str(t, ", ", m, " rows", norm ? ", normalised" : ""));
                constexpr int64_t k = 1096; // the last tile is short
                Graph g;
                Value x = g.add_input("x", {t, {m, k}});
                if (norm) {
                    x = ops::layer_norm(g, {1, 1e-5, true}, x, g.add_input("gain", {t, {k}}));
                }
                Value w = g.add_input("w", {t, {72, k}});
                Value y = ops::dot(g, Dot{{}, {}, {1}, {1}, t}, x, w);
                g.add_output("y", m == 3 ? gated(g, y) : y);
                FamilyOptions o{.family = "dot",
                                .tactic = !norm    ? "gemv_tiles_s8_b1"
                                          : m == 8 ? "normed_tiles_s4_b1"
                                                   : "normed_tiles_s2_b1",
                                .tolerance = t == DType::BF16 ? 2e-2 : 4e-3,
                                .low = -1,
                                .high = 1};
                EXPECT_EQ(expect_family(g, o).tactic, o.tactic);
            }
        }
    }
}

TEST(QuantPipelined, EveryCodeOfEightBitFloats) {
    for (DType t : {DType::F8E4M3, DType::F8E5M2}) {
        for (DType activation : {DType::F16, DType::BF16}) {
            // A code a column, NaN and infinity too, and zeros beside it.
            Weight w{.n = 256, .k = 32, .type = t, .activation = activation};
            Tensor x = Tensor::zeros(activation, {1, 32});
            x.set_f64(0, 1);
            Tensor codes = Tensor::zeros(t, {256, 32});
            for (size_t i = 0; i < 256; ++i) {
                codes.mutable_bytes()[i * 32] = static_cast<std::byte>(i);
            }
            Tensor scale = Tensor::zeros(DType::F32, {256});
            for (int64_t i = 0; i < 256; ++i) {
                scale.set_f64(i, 0.125);
            }
            FamilyOptions o{.tactic = "quant_pipelined_s2_b1", .tolerance = 0};
            o.inputs = {x, codes, scale};
            EXPECT_EQ(expect_family(plain(w), o).tactic, o.tactic);
        }
    }
}

/// Through the whole backend: constants that load before the preceding kernels end, blocks in
/// ONNX's layout, [depth, columns].
TEST(QuantPipelined, ConstantsThroughTheBackend) {
    constexpr int64_t n = 256;
    constexpr int64_t k = 512;
    for (DType t : {DType::I4, DType::U4, DType::I8, DType::F8E4M3}) {
        SCOPED_TRACE(str(t));
        Graph g;
        Value x = g.add_input("x", {DType::F16, {1, k}});
        x = ops::unary(g, ExprOp::Tanh, x);
        bool four = bit_width(t) == 4;
        double most = is_float(t) ? 2 : four ? 7 : 100;
        Value q = ops::constant(g, random_elements(t, {k, n}, 3, t == DType::U4 ? 0 : -most, most));
        Shape places = four ? Shape{k / 32, n} : Shape{n};
        Value scale = ops::constant(g, random_elements(DType::F16, places, 4, 0.002, 0.01));
        Value w = ops::dequantize(g, {four ? 0 : 1, four ? 32 : 0, DType::F16}, q, scale);
        Value y = ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F16}, x, w);
        g.add_output("y", ops::unary(g, ExprOp::Tanh, y));
        expect_backend(g, {.tactic = "quant_pipelined", .tolerance = 4e-3});
    }
}

/// A step of a decoder: a norm, then gate and up of blocks of 4 bits, as ONNX stores them.
TEST(QuantPipelined, NormGateAndUpAreOneKernel) {
    constexpr int64_t n = 64;
    constexpr int64_t k = 256;
    Graph g;
    Value x = g.add_input("x", {DType::F16, {1, k}});
    Value gain = ops::constant(g, random_elements(DType::F16, {k}, 1));
    x = ops::layer_norm(g, {-1, 1e-5, true}, x, gain);
    Values sides;
    for (unsigned seed : {2, 4}) {
        Value q = ops::constant(g, random_elements(DType::I4, {k, n}, seed, -7, 7));
        Value scale =
            ops::constant(g, random_elements(DType::F32, {k / 32, n}, seed + 1, 0.01, 0.05));
        Value w = ops::dequantize(g, {0, 32, DType::F16}, q, scale);
        sides.push_back(ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F16}, x, w));
    }
    Value act = ops::mul(g, sides[0], ops::unary(g, ExprOp::Sigmoid, sides[0]));
    g.add_output("y", ops::mul(g, act, sides[1]));
    Graph lowered = cuda::lower(g, {});
    // One group, and a view of the scales: no run computes anything from constants.
    for (const Node& node : lowered.nodes()) {
        EXPECT_TRUE(node.is(constant_def) || node.is(permute_def) || node.is(fused_def))
            << print(lowered);
    }
    EXPECT_EQ(std::count_if(lowered.nodes().begin(), lowered.nodes().end(),
                            [](const Node& node) { return node.is(fused_def); }),
              1)
        << print(lowered);
    expect_backend(g, {.tactic = "normed_quant_pipelined", .tolerance = 5e-3});
}

} // namespace
} // namespace ingot::test
