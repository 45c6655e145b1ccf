// SPDX-License-Identifier: Apache-2.0
// Every pass, checked by execution: random graphs give the same results with and without it.
#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "passes/difference.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/random_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace ingot {
namespace {

// INGOT_RANDOM_GRAPHS overrides the number of graphs per pass.
uint64_t graph_count() {
    const char* text = std::getenv("INGOT_RANDOM_GRAPHS");
    return text == nullptr ? 500 : std::strtoull(text, nullptr, 10);
}

std::string printed(const Graph& g) {
    PrintOptions o;
    o.full = true;
    return print(g, o);
}

/// `count` maps in a row, which no pass changes.
Graph chain(int count) {
    Graph g("chain");
    Value v = g.add_input("x", parse_type("f32[16]"));
    for (int i = 0; i < count; ++i) {
        v = ops::unary(g, i % 2 == 0 ? ExprOp::Tanh : ExprOp::Neg, v);
    }
    g.add_output("y", v);
    return g;
}

// Each copy of a graph of a million nodes costs seconds.
TEST(Passes, WhatFindsNothingCopiesNothing) {
    Graph g = run_aot_passes(chain(40), {});
    for (const Pass* pass : aot_passes()) {
        EXPECT_TRUE(run_pass(*pass, g).shares_all(g)) << pass->name;
    }
    EXPECT_TRUE(run_aot_passes(g, {}).shares_all(g));
    EXPECT_TRUE(g.is_live()) << "each pass would search it for dead code";
}

TEST(Passes, WhatFoundNothingRunsAgainAfterAChange) {
    int looked = 0;
    Pass idle{"idle", "", [&](const Graph& g, const PassOptions&) {
                  ++looked;
                  return g;
              }};
    Pass grows{"grows", "", [](const Graph& g, const PassOptions&) {
                   Graph out = g;
                   ops::constant(out, Tensor::scalar(DType::F32, 1));
                   return out;
               }};
    const Pass* list[] = {&idle, &idle, &grows, &idle, &idle};
    PipelineOptions options;
    int dumped = 0;
    options.dump_after = [&](const Pass&, const Graph&) { ++dumped; };
    Graph out = run_passes(list, chain(4), options);
    EXPECT_EQ(looked, 2);
    EXPECT_EQ(dumped, 5);
    EXPECT_EQ(out.nodes().size(), 5U);
}

using Results = std::optional<std::vector<Tensor>>;

// nullopt when the graph itself fails at run time.
Results run(const Graph& g, const std::vector<Tensor>& in) {
    try {
        return evaluate(g, in);
    } catch (const Error&) {
        return std::nullopt;
    }
}

void expect_same(const Graph& before, const Graph& after, uint64_t seed, double allowed) {
    for (int64_t n : {3, 1}) {
        std::vector<Tensor> in = test::random_inputs(before, seed, n);
        Results want = run(before, in);
        if (!want) {
            continue;
        }
        std::vector<Tensor> got = evaluate(after, in);
        ASSERT_EQ(got.size(), want->size());
        for (size_t i = 0; i < got.size(); ++i) {
            std::string d = test::difference((*want)[i], got[i], allowed);
            ASSERT_EQ(d, "") << "output " << before.output_names()[i] << ", N = " << n << "\n"
                             << printed(before) << "became\n"
                             << printed(after);
        }
    }
}

class EachPass : public testing::TestWithParam<const Pass*> {};

TEST_P(EachPass, RandomGraphsKeepTheirResults) {
    const Pass& pass = *GetParam();
    size_t changed = 0;
    test::RandomGraphOptions options;
    options.smooth = !pass.structural;
    for (uint64_t seed = 0; seed < graph_count(); ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        Graph g = test::random_graph(seed, options);
        if (seed % 2 == 0) { // passes late in the list see what the early ones leave
            g = run_pass(passes::simplify, run_pass(passes::share, g));
        }
        Graph after = run_pass(pass, g);
        verify(after);
        ASSERT_EQ(after.output_names(), g.output_names());
        ASSERT_EQ(after.inputs().size(), g.inputs().size());
        std::string text = printed(after);
        changed += text != printed(g) ? 1 : 0;
        ASSERT_EQ(printed(run_pass(pass, after)), text) << "not idempotent\n" << printed(g);
        expect_same(g, after, seed, pass.structural ? 0 : 1e-4);
        if (HasFatalFailure()) {
            return;
        }
    }
    // Patterns are rare in random graphs, and every one of them has cases.
    bool rare =
        pass.name.starts_with("raise_") || pass.name == "precision" || pass.name == "drop_fences";
    EXPECT_TRUE(rare || changed > 0) << "no graph was changed";
}

std::vector<const Pass*> distinct_passes() {
    std::vector<const Pass*> out;
    for (const std::string& name : aot_pass_names()) {
        out.push_back(&find_pass(name));
    }
    return out;
}

INSTANTIATE_TEST_SUITE_P(Passes, EachPass, testing::ValuesIn(distinct_passes()),
                         [](const auto& p) { return std::string(p.param->name); });

// Values stay near 1 and pass few operations: limits of 10 bits of precision.
TEST(Pipeline, NarrowTypesStayClose) {
    for (uint64_t seed = 0; seed < graph_count() / 4; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        test::RandomGraphOptions shape;
        shape.smooth = true;
        shape.steps = 8;
        Graph g = test::random_graph(seed + 20000, shape);
        PipelineOptions options;
        options.pass.precision = DType::F16;
        expect_same(g, run_aot_passes(g, options), seed, 0.05);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST(Pipeline, RandomGraphsKeepTheirResults) {
    for (uint64_t seed = 0; seed < graph_count() / 2; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        test::RandomGraphOptions options;
        options.smooth = true;
        Graph g = test::random_graph(seed + 10000, options);
        expect_same(g, run_aot_passes(g), seed, 1e-4);
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace ingot
