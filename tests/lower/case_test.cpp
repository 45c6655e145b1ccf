// SPDX-License-Identifier: Apache-2.0
// The lowering passes: tests/lower/<pass>.case (passes/pass_cases.h), random graphs with and
// without each, and options that disable, verify and show them. A case has the passes of GPUs;
// [cpu] in a title asks for those of the CPU; [byte_convolutions] or [flat_convolutions] at its end
// for a device where they are faster, [volumes] for the latter with slabs of 32 bytes in a volume,
// [rounded_products] for one whose f32 products are TF32.
#include "backends/cpu/lower.h"
#include "backends/cuda/lower.h"
#include "base/error.h"
#include "base/log.h"
#include "golden.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "passes/difference.h"
#include "passes/pass_cases.h"
#include "passes/random_graph.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

namespace ingot::test {
namespace {

const Pass* find_in(std::span<const Pass> list, std::string_view name) {
    for (const Pass& p : list) {
        if (p.name == name) {
            return &p;
        }
    }
    return nullptr;
}

const Pass& pass_for(const std::string& name, const PassCase& c) {
    bool cpu = c.title.find("[cpu]") != std::string::npos;
    const Pass* p = find_in(cpu ? cpu::lowering_passes() : cuda::lowering_passes(), name);
    require(p != nullptr, ErrorCode::InvalidArgument, "no ", cpu ? "CPU" : "GPU",
            " list has a pass '", name, "': the titles of a CPU pass's cases end with [cpu]");
    return *p;
}

class LoweringCases : public testing::TestWithParam<std::string> {};

TEST_P(LoweringCases, GiveTheGraphsThatTheySay) {
    check_pass_cases("lower", GetParam(), true,
                     [](const PassCase& c) -> const Pass& { return pass_for(GetParam(), c); });
}

TEST_P(LoweringCases, GiveTheSameInBranches) {
    check_cases_in_branches("lower", GetParam(), [](const PassCase& c) -> const Pass& {
        return pass_for(GetParam(), c);
    });
}

INSTANTIATE_TEST_SUITE_P(Lowering, LoweringCases, testing::ValuesIn(case_files("lower")),
                         [](const auto& p) { return p.param; });

TEST(Lowering, EveryPassHasCases) {
    if (writes_goldens()) {
        GTEST_SKIP() << "the cases are being written";
    }
    for (const auto& list : {cpu::lowering_passes(), cuda::lowering_passes()}) {
        for (const Pass& p : list) {
            bool ahead = p.name == "dead_code"; // tests/passes has its cases
            std::vector<PassCase> cases =
                read_pass_cases(ahead ? "passes" : "lower", std::string(p.name));
            EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                                    [](const PassCase& c) { return c.after != "unchanged\n"; }))
                << p.name << ".case has no graph that the pass changes";
            EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), is_near_miss))
                << p.name << ".case has no near-miss, whose title begins with 'not: '";
            EXPECT_FALSE(p.summary.empty()) << p.name;
        }
    }
}

struct List {
    const char* name;
    std::span<const Pass> (*passes)();
    Graph (*lower)(const Graph&, const CompileOptions&);
};

const List lists[] = {{"cpu", cpu::lowering_passes, cpu::lower},
                      {"cuda", cuda::lowering_passes, cuda::lower}};

class LoweringLists : public testing::TestWithParam<List> {};

INSTANTIATE_TEST_SUITE_P(Lowering, LoweringLists, testing::ValuesIn(lists),
                         [](const auto& p) { return p.param.name; });

std::optional<std::vector<Tensor>> run(const Graph& g, const std::vector<Tensor>& in) {
    try {
        return evaluate(g, in);
    } catch (const Error&) {
        return std::nullopt; // as the graph itself does
    }
}

// Each pass sees the output of earlier ones. Random graphs have the patterns of some passes only:
// the others are printed, and have their cases alone.
TEST_P(LoweringLists, RandomGraphsKeepTheirResults) {
    std::map<std::string_view, int> changed;
    for (uint64_t seed = 0; seed < 120; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        RandomGraphOptions options;
        options.smooth = seed % 2 == 0;
        Graph now = random_graph(seed + 900, options);
        std::vector<Tensor> in = random_inputs(now, seed, 3);
        std::optional<std::vector<Tensor>> want = run(now, in);
        for (const Pass& pass : GetParam().passes()) {
            Graph next = run_pass(pass, now);
            verify(next);
            changed[pass.name] += print(next) == print(now) ? 0 : 1;
            if (!pass.structural && !options.smooth) {
                want = run(next, in); // roundings that it moves may decide
            }
            std::vector<Tensor> got = want ? evaluate(next, in) : std::vector<Tensor>();
            for (size_t i = 0; i < got.size(); ++i) {
                ASSERT_EQ(difference((*want)[i], got[i], pass.structural ? 0 : 1e-4), "")
                    << pass.name << "\n"
                    << print(now) << "became\n"
                    << print(next);
            }
            if (!pass.structural && want) {
                want = got;
            }
            now = std::move(next);
        }
    }
    for (std::string_view pass : {"expand", "fuse_maps", "fuse_epilogues"}) {
        EXPECT_GT(changed[pass], 0) << pass;
    }
    std::string idle;
    for (const auto& [pass, count] : changed) {
        idle += count == 0 ? str(' ', pass) : "";
    }
    std::cout << "[   IDLE   ] passes that changed no graph:" << (idle.empty() ? " none" : idle)
              << "\n";
}

Graph chain() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    g.add_output("y", ops::unary(g, ExprOp::Exp, ops::softmax(g, ops::mul(g, x, 2.0), 1)));
    return g;
}

TEST_P(LoweringLists, ArePassedInOrderAndLeftOutByName) {
    std::vector<std::string> all;
    for (const Pass& p : GetParam().passes()) {
        all.emplace_back(p.name);
    }
    std::vector<std::string> seen;
    CompileOptions options;
    options.after_pass = [&seen](std::string_view pass, const Graph&) { seen.emplace_back(pass); };
    GetParam().lower(chain(), options);
    EXPECT_EQ(seen, all);
    for (const std::string& name : std::set<std::string>(all.begin(), all.end())) {
        seen.clear();
        options.disabled_passes = {name, "precision"}; // of another list: passed over
        GetParam().lower(chain(), options);
        std::vector<std::string> want = all;
        std::erase(want, name);
        EXPECT_EQ(seen, want);
    }
}

TEST_P(LoweringLists, AreTimedInTheLog) {
    std::vector<std::string> lines;
    auto sink = [](void* to, LogLevel, std::string_view text) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(text);
    };
    set_log_sink(sink, &lines, LogLevel::Verbose);
    GetParam().lower(chain(), {});
    set_log_sink(nullptr, nullptr, LogLevel::Warning);
    for (const Pass& p : GetParam().passes()) {
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&p](const std::string& line) {
            return line.starts_with(str("pass ", p.name, ": ")) && line.ends_with(" ms");
        })) << p.name;
    }
}

// With verify_passes, a defect of a pass is found directly after it.
TEST(Lowering, EachPassIsVerifiedWhereThatIsAskedFor) {
    const Pass broken[] = {
        {"broken", "takes a size that nothing defines", [](const Graph& g, const PassOptions&) {
             Graph out(g.name());
             Value v = ops::full(out, DType::F32, {Dim::symbol("nowhere")}, 1);
             out.add_output("y", v);
             return out;
         }}};
    CompileOptions options;
    options.verify_passes = true;
    try {
        plan::run_lowering(broken, chain(), options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_TRUE(std::string(e.what()).starts_with("after pass 'broken': ")) << e.what();
    }
}

} // namespace
} // namespace ingot::test
