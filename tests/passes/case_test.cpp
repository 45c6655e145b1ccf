// SPDX-License-Identifier: Apache-2.0
// The ahead-of-time passes: their cases (pass_cases.h), their list, and its driver.
#include "base/error.h"
#include "golden.h"
#include "ir/text.h"
#include "ops/op_table.h"
#include "passes/pass_cases.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ingot::test {
namespace {

class Cases : public testing::TestWithParam<std::string> {};

TEST_P(Cases, GiveTheGraphsThatTheySay) {
    check_pass_cases("passes", GetParam(), true,
                     [](const PassCase&) -> const Pass& { return find_pass(GetParam()); });
}

// Cases of simplify that become another graph in a branch.
const std::set<std::string> others_in_branches = {
    // An input of a body that nothing reads goes; one of a graph stays.
    "sizes that are known after all",
    // The node outside names the size of the result, which the body binds again (run_pass).
    "a branch that is always taken",
    "a loop that runs once, one that does not",
};

TEST_P(Cases, GiveTheSameInBranches) {
    check_cases_in_branches(
        "passes", GetParam(), [](const PassCase&) -> const Pass& { return find_pass(GetParam()); },
        GetParam() == "simplify" ? others_in_branches : std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Passes, Cases, testing::ValuesIn(case_files("passes")),
                         [](const auto& p) { return p.param; });

// A case is useful where the pass changes the graph, or nearly would.
TEST(Pipeline, EveryPassHasCases) {
    if (writes_goldens()) {
        GTEST_SKIP() << "the cases are being written";
    }
    std::vector<std::string> files = case_files("passes");
    for (const std::string& name : aot_pass_names()) {
        EXPECT_NE(std::find(files.begin(), files.end(), name), files.end()) << name << ".case";
        std::vector<PassCase> cases = read_pass_cases("passes", name);
        EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                                [](const PassCase& c) { return c.after != "unchanged\n"; }))
            << name << ".case has no graph that the pass changes";
        EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), is_near_miss))
            << name << ".case has no near-miss, whose title begins with 'not: '";
    }
}

// Exporters spell a pattern in different ways, and most similar graphs must stay.
TEST(Pipeline, RaisingPassesHaveSpellingsAndNearMisses) {
    for (const std::string& name : aot_pass_names()) {
        if (!name.starts_with("raise_")) {
            continue;
        }
        std::vector<PassCase> cases = read_pass_cases("passes", name);
        auto misses = std::count_if(cases.begin(), cases.end(), [](const PassCase& c) {
            EXPECT_TRUE(!c.title.starts_with("not: ") || c.after == "unchanged\n") << c.title;
            return c.title.starts_with("not: ");
        });
        EXPECT_GE(misses, 3) << name;
        EXPECT_GE(static_cast<int64_t>(cases.size()) - misses, 3) << name;
    }
}

TEST(Pipeline, UnknownPassesAreRefusedWithTheNearest) {
    try {
        find_pass("raise_gelo");
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()),
                  "there is no pass 'raise_gelo', did you mean 'raise_gelu'?");
    }
}

TEST(Pipeline, PassesCanBeLeftOutAndDumped) {
    Graph g = parse_graph(R"(graph g(%x: f32[2]) {
        %a = map(%x) {body="0=in(0):f32; 1=neg(0):f32"}
        %b = map(%a) {body="0=in(0):f32; 1=neg(0):f32"}
        return %b as y
    })",
                          {find_op, {}});
    PipelineOptions options;
    std::vector<std::string> seen;
    options.dump_after = [&](const Pass& p, const Graph&) { seen.emplace_back(p.name); };
    options.disabled = {"share", "precision"};
    run_aot_passes(g, options);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "share"), 0);
    EXPECT_EQ(seen.size(), aot_passes().size() - 3);
}

// A defect of a pass is found directly after it.
TEST(Pipeline, EachPassIsVerified) {
    const Pass broken = {"broken", "takes a size that nothing defines",
                         [](const Graph&, const PassOptions&) {
                             Graph g("g");
                             Value x = g.add_input("x", {DType::F32, {2}});
                             Value y = ops::full(g, DType::F32, {Dim::symbol("nowhere")}, 1);
                             g.add_output("y", ops::add(g, x, ops::slice(g, y, 0, 0, 1)));
                             return g;
                         }};
    const Pass* list[] = {&broken, &passes::dead_code};
    PipelineOptions options;
    try {
        run_passes(list, Graph("g"), options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_TRUE(std::string(e.what()).starts_with("after pass 'broken': ")) << e.what();
    }
}

} // namespace
} // namespace ingot::test
