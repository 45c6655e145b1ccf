// SPDX-License-Identifier: Apache-2.0
// Placement of values: every plan of random graphs and of the small models, on both backends, is
// executed symbolically; and operations that must be free of copies are.
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/error.h"
#include "ir/text.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "passes/random_graph.h"
#include "plan/models.h"
#include "plan/plan_check.h"
#include "plan/plan_text.h"
#include "plan/planned.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

/// Plans all segments, each fresh size being `n`.
void plan_all(Planned& p, const Symbols& symbols, int64_t n) {
    p.plan(symbols);
    for (int segment = 1; segment < p.program().segments; ++segment) {
        Symbols found;
        for (const plan::NodeInfo& info : p.program().nodes) {
            for (const std::string& s : info.symbols) {
                found[info.segment == segment - 1 ? s : "none"] = n;
            }
        }
        p.plan(found);
    }
}

void expect_sound(Planned& p, const Graph& g) {
    EXPECT_EQ(plan_fault(p.program(), p.segments()), "")
        << print(g) << plan::plan_text(p.program(), p.segments());
}

TEST(Placement, OfRandomGraphsIsSound) {
    fake::reset(int64_t{64} << 30);
    int64_t shared_bytes = 0;
    for (uint64_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        RandomGraphOptions options;
        options.steps = 24;
        Graph g = random_graph(seed + 500, options);
        if (seed % 2 == 0) {
            g = run_aot_passes(g);
        }
        for (bool gpu : {false, true}) {
            for (int64_t n : {3, 1}) {
                SCOPED_TRACE(str(gpu ? "gpu" : "cpu", ", N = ", n));
                std::unique_ptr<Planned> p = gpu ? planned_for_gpu(g) : planned_for_cpu(g);
                p->plan({{"N", n}});
                expect_sound(*p, g);
                const plan::SegmentPlan& s = *p->segments()[0];
                int64_t sum = 0;
                for (const plan::Storage& b : s.storages) {
                    sum += b.kind == plan::Storage::Kind::Arena ? (b.bytes + 63) / 64 * 64 : 0;
                }
                EXPECT_LE(s.arena_bytes, sum);
                shared_bytes += sum - s.arena_bytes;
            }
        }
        if (HasFailure()) {
            return;
        }
    }
    EXPECT_GT(shared_bytes, 0) << "no plan used memory twice";
}

TEST(Placement, OfModelsIsSoundBehindSizesFromDataToo) {
    fake::reset(int64_t{64} << 30);
    for (const PlanModel& m : plan_models()) {
        for (bool gpu : {false, true}) {
            for (int64_t budget : {int64_t{-1}, int64_t{0}, int64_t{40000}}) {
                SCOPED_TRACE(str(m.name, gpu ? " gpu " : " cpu ", budget));
                CompileOptions options;
                options.of<CudaOptions>().weight_budget = budget;
                std::unique_ptr<Planned> p =
                    gpu ? planned_for_gpu(m.graph, options) : planned_for_cpu(m.graph, options);
                Symbols symbols;
                for (size_t i = 0; i < m.inputs.size(); ++i) {
                    bind_symbols(m.graph.type(m.graph.inputs()[i]).dims, m.inputs[i].shape(),
                                 symbols, "input");
                }
                plan_all(*p, symbols, 5);
                bool finds = m.name == "found_elements" || m.name == "repetition";
                EXPECT_EQ(p->segments().size(), finds ? 2U : 1U);
                expect_sound(*p, m.graph);
            }
        }
    }
}

/// Copies, those that share a launch with others included.
int64_t copies(const plan::SegmentPlan& p) {
    int64_t n = 0;
    for (const plan::StepEntry& e : p.steps) {
        for (size_t at = 0; (at = e.kernel.find("copy", at)) != std::string::npos; ++at) {
            ++n;
        }
    }
    return n;
}

Value weight(Graph& g, const Shape& shape) {
    return ops::constant(g, small_numbers(DType::F32, shape, 1));
}

TEST(Placement, ResultsLieInTheConcatThatReadsThem) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,32]"));
    Value a = ops::matmul(g, x, weight(g, {32, 24}));
    Value b = ops::unary(g, ExprOp::Tanh, x);
    g.add_output(
        "y", ops::unary(g, ExprOp::Exp, ops::softmax(g, ops::concat(g, std::array{a, b}, 1), 1)));
    auto p = planned_for_cpu(g);
    const plan::SegmentPlan& s = p->plan({});
    EXPECT_EQ(copies(s), 0) << plan::plan_text(p->program(), p->segments());
    int whole = s.steps[0].out[0].buffer;
    EXPECT_EQ(s.steps[1].out[0].buffer, whole);
    EXPECT_EQ(s.steps[0].out[0].view.offset + s.steps[1].out[0].view.offset, 24);
}

/// Layers that each read all parts so far, or the last two; x is the first part, or a function of
/// it.
Graph growing_concats(bool from_input, bool last_two) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,16]"));
    Values parts = {from_input ? x : ops::unary(g, ExprOp::Tanh, x), ops::unary(g, ExprOp::Exp, x)};
    for (int i = 0; i < 3; ++i) {
        auto first = last_two ? parts.end() - 2 : parts.begin();
        Value all = ops::concat(g, Values(first, parts.end()), 1);
        Value weights = weight(g, {*g.type(all).dims[1].as_const(), 8});
        parts.push_back(ops::matmul(g, all, weights));
    }
    Value all = ops::concat(g, parts, 1);
    g.add_output("y", ops::softmax(g, all, 1));
    return g;
}

TEST(Placement, ConcatsThatGrowAreOneMemory) {
    fake::reset(int64_t{64} << 30);
    for (bool last_two : {false, true}) {
        for (bool from_input : {false, true}) {
            for (bool gpu : {false, true}) {
                SCOPED_TRACE(str(last_two, from_input, gpu));
                Graph g = growing_concats(from_input, last_two);
                auto p = gpu ? planned_for_gpu(g) : planned_for_cpu(g);
                EXPECT_EQ(copies(p->plan({})), from_input ? 1 : 0)
                    << plan::plan_text(p->program(), p->segments());
                expect_sound(*p, g);
            }
        }
    }
}

// Neither concat contains the other's operands in their order: one of them is copied.
TEST(Placement, ConcatsInAnotherOrderAreCopied) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,16]"));
    Value a = ops::unary(g, ExprOp::Tanh, x);
    Value b = ops::softmax(g, x, 1);
    Value one = ops::concat(g, std::array{a, b}, 1);
    Value other = ops::concat(g, std::array{b, a, x}, 1);
    g.add_output("y", ops::softmax(g, one, 1));
    g.add_output("z", ops::softmax(g, other, 1));
    auto p = planned_for_cpu(g);
    EXPECT_EQ(copies(p->plan({})), 5) << plan::plan_text(p->program(), p->segments());
    expect_sound(*p, g);
}

TEST(Placement, AnInputOfAConcatIsCopiedOnce) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,32]"));
    Value y = g.add_input("y", parse_type("f32[4,8]"));
    g.add_output("z", ops::concat(g, std::array{x, y}, 1));
    auto p = planned_for_cpu(g);
    const plan::SegmentPlan& s = p->plan({});
    EXPECT_EQ(copies(s), 2);
    EXPECT_EQ(s.steps.size(), 2U);
    EXPECT_EQ(s.arena_bytes, 0); // straight into the output
}

TEST(Placement, ViewsTakeNoStepAndNoMemory) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,6,8]"));
    Value y = ops::reshape(g, ops::slice(g, x, 2, 1, 5), {4, 3, 2, 5});
    g.add_output("y", ops::unary(g, ExprOp::Exp, y));
    auto p = planned_for_cpu(g);
    const plan::SegmentPlan& s = p->plan({});
    ASSERT_EQ(s.steps.size(), 1U) << plan::plan_text(p->program(), p->segments());
    EXPECT_EQ(s.steps[0].in[0].buffer, 0);
    EXPECT_EQ(s.steps[0].in[0].view, (plan::View{{4, 3, 2, 5}, {48, 16, 8, 1}, 1}));
    EXPECT_EQ(s.arena_bytes, 0);
}

TEST(Placement, WhatAReshapeMakesAResultLiesThereAtOnce) {
    Graph g;
    Value cache = g.add_input("cache", parse_type("f32[2,4,8]"));
    Value rows = g.add_input("rows", parse_type("i64[2]"));
    Value now = g.add_input("now", parse_type("f32[2,8]"));
    Value y = ops::scatter(g, ops::reshape(g, cache, {8, 8}), rows, now, "none");
    Value whole = ops::reshape(g, y, {2, 4, 8});
    g.add_output("next", whole);
    g.add_output("again", whole);
    g.add_output("sums", ops::reduce_sum(g, whole, {2}));
    auto p = planned_for_cpu(g);
    const plan::SegmentPlan& s = p->plan({});
    ASSERT_EQ(s.steps.size(), 3U) << plan::plan_text(p->program(), p->segments());
    EXPECT_EQ(s.steps[0].out[0].buffer, 3); // the first result, behind three inputs
    EXPECT_EQ(s.arena_bytes, 0);
    expect_sound(*p, g);
}

TEST(Placement, APadOfNothingTakesNoStep) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("n"), 4}});
    Dim more = max(Dim::symbol("n"), Dim(8)) - Dim::symbol("n");
    Value y = ops::pad(g, x, {0, 0}, {more, 0});
    g.add_output("y", ops::unary(g, ExprOp::Exp, y));
    for (int64_t n : {3, 8, 9}) {
        auto p = planned_for_cpu(g);
        const plan::SegmentPlan& s = p->plan({{"n", n}});
        EXPECT_EQ(s.steps.size(), n < 8 ? 2U : 1U) << plan::plan_text(p->program(), p->segments());
        expect_sound(*p, g);
    }
}

TEST(Placement, AMapOverwritesAnOperandThatNobodyElseReads) {
    auto last_map = [](bool read_again) {
        Graph g;
        Value x = g.add_input("x", parse_type("f32[32,32]"));
        Value a = ops::softmax(g, x, 1);
        Value b = ops::softmax(g, ops::unary(g, ExprOp::Exp, a), 0);
        g.add_output("y", read_again ? ops::add(g, b, a) : b);
        auto p = planned_for_cpu(g);
        const plan::SegmentPlan& s = p->plan({});
        auto map = std::find_if(s.steps.begin(), s.steps.end(), [](const plan::StepEntry& e) {
            return e.kernel == "map" && e.in.size() == 1;
        });
        EXPECT_NE(map, s.steps.end()) << plan::plan_text(p->program(), p->segments());
        return map != s.steps.end() && map->in[0].buffer == map->out[0].buffer;
    };
    EXPECT_TRUE(last_map(false));
    EXPECT_FALSE(last_map(true));
}

// A row of parts that are each copied to the same distance, as in a cache, is one copy.
TEST(Placement, CopiesAtEqualDistancesAreOne) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,16]"));
    Values parts;
    for (int64_t i = 0; i < 4; ++i) {
        parts.push_back(ops::slice(g, x, 1, 4 * i, 2));
    }
    g.add_output("y", ops::concat(g, parts, 1));
    auto p = planned_for_cpu(g);
    const plan::SegmentPlan& s = p->plan({});
    ASSERT_EQ(s.steps.size(), 1U) << plan::plan_text(p->program(), p->segments());
    EXPECT_EQ(s.steps[0].in[0].view.shape, (Shape{4, 4, 2}));
    EXPECT_EQ(plan_fault(p->program(), p->segments()), "");
}

// The check itself detects faults.
TEST(PlanCheck, FindsOverlapsAndUnwrittenBytes) {
    PlanModel m = std::move(plan_models()[1]);
    auto p = planned_for_cpu(m.graph);
    p->plan({});
    auto& s = const_cast<plan::SegmentPlan&>(*p->segments()[0]);
    ASSERT_EQ(plan_fault(p->program(), p->segments()), "");
    std::vector<plan::StepEntry> steps = std::move(s.steps);
    s.steps.clear();
    EXPECT_EQ(plan_fault(p->program(), p->segments()),
              "output 0: reads b1, whose byte 0 nobody has written");
    s.steps = std::move(steps);
    for (plan::Storage& b : s.storages) {
        b.offset = 0; // all in one place
    }
    EXPECT_NE(plan_fault(p->program(), p->segments()), "");
}

} // namespace
} // namespace ingot::test
