// SPDX-License-Identifier: Apache-2.0
// Graphs of f16 and bf16: computed in f32 between their edges, rounded where it matters.
#include "backends/backends.h"
#include "backends/cpu/onednn_library.h"
#include "backends_cpu/compare.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "ops/squeeze_excite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace ingot {

namespace {

using test::CompareOptions;
using test::expect_same_as_evaluator;

constexpr DType halves[] = {DType::F16, DType::BF16};

CompareOptions tolerance_of(DType t) {
    CompareOptions o;
    o.tolerance = t == DType::F16 ? 4e-3 : 3e-2;
    return o;
}

Value constant(Graph& g, DType t, const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    return ops::constant(g, test::random_tensor(t, shape, random));
}

std::shared_ptr<const Executable> compiled(const Graph& g) {
    return cpu_backend().compile(std::make_shared<const Graph>(g), {});
}

/// conv, bias and relu; a residual; then a product, a norm and a softmax.
Graph network(DType t) {
    Graph g;
    Value x = g.add_input("x", {t, {2, 8, 9, 9}});
    const ops::Conv a{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, t};
    Value y = ops::conv(g, a, ops::mul(g, x, 0.25), constant(g, t, {8, 8, 3, 3}, 1));
    y = ops::maximum(g, ops::add(g, y, constant(g, t, {8, 1, 1}, 2)), 0.0);
    y = ops::add(g, ops::mul(g, y, 0.1), x);
    y = ops::reshape(g, y, {16, 81});
    y = ops::matmul(g, y, constant(g, t, {81, 120}, 3));
    y = ops::gelu(g, ops::add(g, ops::mul(g, y, 0.05), constant(g, t, {120}, 4)));
    g.add_output("y", ops::softmax(g, y, 1));
    g.add_output("z", y);
    return g;
}

TEST(CpuHalves, NetworksAreCloseToTheEvaluator) {
    for (DType t : halves) {
        SCOPED_TRACE(name(t));
        expect_same_as_evaluator(network(t), {}, 5, tolerance_of(t));
    }
}

TEST(CpuHalves, ProductsRunAsThoseOfF32Do) {
    auto implementations = [](const Graph& g) {
        std::vector<std::string> out;
        for (const StepInfo& s : test::planned_steps(g)) {
            if (s.kernel == "conv" || s.kernel == "dot") {
                out.push_back(s.implementation);
            }
        }
        return out;
    };
    std::vector<std::string> wide = implementations(network(DType::F32));
    ASSERT_EQ(wide.size(), 2U);
    for (DType t : halves) {
        EXPECT_EQ(implementations(network(t)), wide) << name(t);
    }
}

/// A convolution, a squeeze-and-excite block and a convolution.
Graph gated(DType t) {
    Graph g;
    Value x = g.add_input("x", {t, {2, 8, 9, 9}});
    const ops::Conv a{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, t};
    x = ops::conv(g, a, ops::mul(g, x, 0.25), constant(g, t, {8, 8, 3, 3}, 1));
    ops::SqueezeExcite block;
    block.act.op(ExprOp::Max, block.act.in(0, DType::F32), block.act.constant(DType::F32, 0));
    block.gate.op(ExprOp::Sigmoid, block.gate.in(0, DType::F32));
    Value in[] = {x, constant(g, t, {4, 8}, 2), constant(g, t, {4}, 3), constant(g, t, {8, 4}, 4),
                  constant(g, t, {8}, 5)};
    x = ops::squeeze_excite(g, std::move(block), in);
    g.add_output("y", ops::conv(g, a, x, constant(g, t, {8, 8, 3, 3}, 6)));
    return g;
}

TEST(CpuHalves, GatedChannelsAreCloseToTheEvaluator) {
    for (DType t : halves) {
        SCOPED_TRACE(name(t));
        expect_same_as_evaluator(gated(t), {}, 5, tolerance_of(t));
    }
}

class CpuHalvesBetween : public testing::TestWithParam<Graph (*)(DType)> {};

INSTANTIATE_TEST_SUITE_P(Networks, CpuHalvesBetween, testing::Values(network, gated));

TEST_P(CpuHalvesBetween, NothingIsNarrowButTheEdges) {
    for (DType t : halves) {
        auto executable = compiled(GetParam()(t));
        const Graph& g = executable->lowered();
        for (const Node& n : g.nodes()) {
            for (Value v : n.outputs) {
                bool edge = std::count(g.outputs().begin(), g.outputs().end(), v) > 0;
                EXPECT_TRUE(edge || bit_width(g.type(v).dtype) != 16)
                    << n.def->name << " makes " << name(g.type(v).dtype);
            }
        }
        EXPECT_EQ(g.type(g.outputs()[0]).dtype, t);
    }
}

/// Results that depend on a half's rounding must be the evaluator's, bit for bit.
void expect_exact(const Graph& g, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> expected = evaluate(g, inputs);
    std::vector<Tensor> got(expected.size());
    auto execution = compiled(g)->create_execution();
    ASSERT_TRUE(execution->run(inputs, got).ok()) << execution->error();
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i] == expected[i]) << "result " << i;
    }
}

TEST(CpuHalves, WhatJumpsReadsRoundedValues) {
    for (DType t : halves) {
        SCOPED_TRACE(name(t));
        Graph g;
        Value x = g.add_input("x", {t, {64}});
        Value y = g.add_input("y", {t, {64}});
        Value sum = ops::add(g, x, ops::mul(g, y, 0.125));
        // One rounding lies between the sum in f32 and each of these.
        g.add_output("floor", ops::unary(g, ExprOp::Floor, sum));
        g.add_output("integer", ops::cast(g, sum, DType::I32));
        g.add_output("equal", ops::binary(g, ExprOp::Eq, sum, x));
        Value wide = ops::cast(g, ops::reshape(g, sum, {8, 8}), DType::F32);
        g.add_output("wide", wide);
        g.add_output("through f32", ops::cast(g, wide, DType::I64));
        g.add_output("sorted", ops::sort(g, sum, 0, false)[0]);
        Tensor a = Tensor::empty(t, {64});
        Tensor b = Tensor::empty(t, {64});
        for (int64_t i = 0; i < 64; ++i) {
            // Sums just below integers, which the half rounds up to.
            a.set_f64(i, static_cast<double>(i) * 16);
            b.set_f64(i, 8 - std::ldexp(1, -4 - static_cast<int>(i % 3)));
        }
        expect_exact(g, {a, b});
    }
}

TEST(CpuHalves, RoundingOfARoundedCastStays) {
    // The model explicitly casts f32 -> half -> f32 where the result is read directly.
    for (DType t : halves) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {33}});
        g.add_output("y", ops::cast(g, ops::cast(g, x, t), DType::F32));
        DType other = t == DType::F16 ? DType::BF16 : DType::F16;
        g.add_output("z", ops::cast(g, ops::cast(g, ops::cast(g, x, t), other), DType::F32));
        std::mt19937 random(9);
        expect_exact(g, {test::random_tensor(DType::F32, {33}, random)});
    }
}

TEST(CpuHalves, DequantisedWeightsAreConvertedOnce) {
    Graph g;
    Value x = g.add_input("x", {DType::F16, {40, 64}});
    Value q = constant(g, DType::I8, {64, 96}, 8);
    Value scale = constant(g, DType::F16, {}, 3);
    ops::Dequantize a;
    a.dtype = DType::F16;
    Value w = g.add1(ops::dequantize_def, a, {q, scale});
    g.add_output("y", ops::matmul(g, x, w));
    expect_same_as_evaluator(g, {}, 3, tolerance_of(DType::F16));
    auto executable = compiled(g);
    for (const Node& n : executable->lowered().nodes()) {
        EXPECT_FALSE(n.is(ops::dequantize_def));
    }
}

} // namespace

} // namespace ingot
