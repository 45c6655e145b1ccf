// SPDX-License-Identifier: Apache-2.0
// Pass cases: tests/passes/<pass>.case holds, for each case, a title, the graph before, `---`, and
// the graph after (or `unchanged`). Both must also compute the same.
//
//   === title [f16]
//   graph ...
//   ---
//   graph ...
//
// [f16] and [bf16] ask for that precision. INGOT_UPDATE_GOLDENS=1 rewrites what comes after.
#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "ops/op_table.h"
#include "passes/pipeline.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot {
namespace {

struct Case {
    std::string title;
    std::string before;
    std::string after;
};

std::filesystem::path folder() {
    return std::filesystem::path(source_dir()) / "tests" / "passes";
}

std::vector<std::string> case_files() {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
        if (entry.path().extension() == ".case") {
            out.push_back(entry.path().stem().string());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

// What stands before the first case (comments) comes back in `head`.
std::vector<Case> read_cases(const std::string& pass, std::string& head) {
    std::ifstream file(folder() / (pass + ".case"));
    std::vector<Case> out;
    std::string* to = &head;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("=== ")) {
            out.push_back({line.substr(4), "", ""});
            to = &out.back().before;
        } else if (line == "---" && !out.empty()) {
            to = &out.back().after;
        } else {
            *to += line + "\n";
        }
    }
    return out;
}

void write_cases(const std::string& pass, const std::string& head, const std::vector<Case>& cases) {
    std::ofstream file(folder() / (pass + ".case"));
    file << head;
    for (const Case& c : cases) {
        file << "=== " << c.title << "\n" << c.before << "---\n" << c.after;
    }
}

std::string printed(const Graph& g) {
    PrintOptions o;
    o.full = true;
    o.origins = false;
    return print(g, o);
}

Graph parsed(const std::string& text) {
    return parse_graph(text, ParseOptions{find_op, {}});
}

// Every size that inputs name is 3; numbers are small, the same on every run.
std::vector<Tensor> inputs_of(const Graph& g) {
    Symbols sizes;
    for (const std::string& s : input_symbols(g)) {
        sizes[s] = 3;
    }
    std::vector<Tensor> out;
    uint64_t state = 88172645463325252ULL;
    for (Value v : g.inputs()) {
        const Type& t = g.type(v);
        Tensor x = Tensor::zeros(t.dtype, eval(t.dims, sizes));
        for (int64_t i = 0; i < x.count(); ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            double r = static_cast<double>(state >> 33) / static_cast<double>(1U << 31);
            is_float(t.dtype) ? x.set_f64(i, 2 * r - 1) : x.set_i64(i, static_cast<int64_t>(r * 3));
        }
        out.push_back(std::move(x));
    }
    return out;
}

double largest_difference(const Tensor& a, const Tensor& b) {
    double d = 0;
    for (int64_t i = 0; i < a.count(); ++i) {
        double x = a.get_f64(i);
        double y = b.get_f64(i);
        bool same = x == y || (std::isnan(x) && std::isnan(y));
        double off = std::isnan(x - y) ? HUGE_VAL : std::abs(x - y);
        d = same ? d : std::max(d, off);
    }
    return d;
}

void expect_same_results(const Graph& before, const Graph& after, double tolerance) {
    std::vector<Tensor> in = inputs_of(before);
    std::vector<Tensor> want = evaluate(before, in);
    std::vector<Tensor> got = evaluate(after, in);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(want[i].type(), got[i].type());
        double allowed = want[i].dtype() == DType::F16 ? std::max(tolerance, 2e-3) : tolerance;
        EXPECT_LE(largest_difference(want[i], got[i]), allowed) << before.output_names()[i];
    }
}

class Cases : public testing::TestWithParam<std::string> {};

TEST_P(Cases, GiveTheGraphsThatTheySay) {
    const Pass& pass = find_pass(GetParam());
    std::string head;
    std::vector<Case> cases = read_cases(GetParam(), head);
    ASSERT_FALSE(cases.empty());
    bool update = std::getenv("INGOT_UPDATE_GOLDENS") != nullptr;
    for (Case& c : cases) {
        SCOPED_TRACE(c.title);
        PassOptions options;
        double tolerance = pass.structural ? 0 : 1e-4;
        if (c.title.ends_with("[f16]") || c.title.ends_with("[bf16]")) {
            options.precision = c.title.ends_with("[bf16]") ? DType::BF16 : DType::F16;
            tolerance = options.precision == DType::BF16 ? 0.1 : 0.02;
        }
        Graph before = parsed(c.before);
        verify(before);
        Graph after = run_pass(pass, before, options);
        verify(after);
        std::string text = printed(after);
        bool unchanged = text == printed(before);
        if (update) {
            c.after = unchanged ? "unchanged\n" : text;
        }
        EXPECT_EQ(text, c.after == "unchanged\n" ? printed(before) : printed(parsed(c.after)));
        EXPECT_EQ(printed(run_pass(pass, after, options)), text) << "not idempotent";
        expect_same_results(before, after, tolerance);
    }
    if (update) {
        write_cases(GetParam(), head, cases);
    }
}

INSTANTIATE_TEST_SUITE_P(Passes, Cases, testing::ValuesIn(case_files()),
                         [](const auto& p) { return p.param; });

// A case shows something where the pass changes the graph.
TEST(Pipeline, EveryPassHasCases) {
    std::vector<std::string> files = case_files();
    for (const std::string& name : aot_pass_names()) {
        EXPECT_NE(std::find(files.begin(), files.end(), name), files.end()) << name << ".case";
        std::string head;
        std::vector<Case> cases = read_cases(name, head);
        EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                                [](const Case& c) { return c.after != "unchanged\n"; }))
            << name << ".case has no graph that the pass changes";
    }
}

// A pattern is spelt by each exporter in its way, and most of what looks like it must stay.
TEST(Pipeline, RaisingPassesHaveSpellingsAndNearMisses) {
    for (const std::string& name : aot_pass_names()) {
        if (!name.starts_with("raise_")) {
            continue;
        }
        std::string head;
        std::vector<Case> cases = read_cases(name, head);
        auto misses = std::count_if(cases.begin(), cases.end(), [](const Case& c) {
            EXPECT_TRUE(!c.title.starts_with("not: ") || c.after == "unchanged\n") << c.title;
            return c.title.starts_with("not: ");
        });
        EXPECT_GE(misses, 3) << name;
        EXPECT_GE(static_cast<int64_t>(cases.size()) - misses, 3) << name;
    }
}

TEST(Pipeline, UnknownPassesAreRefusedWithTheNearest) {
    Graph g("g");
    PipelineOptions options;
    options.disabled = {"raise_gelo"};
    try {
        run_aot_passes(g, options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()),
                  "there is no pass 'raise_gelo', did you mean 'raise_gelu'?");
    }
}

TEST(Pipeline, PassesCanBeLeftOutAndDumped) {
    Graph g = parsed(R"(graph g(%x: f32[2]) {
        %a = map(%x) {body="0=in(0):f32; 1=neg(0):f32"}
        %b = map(%a) {body="0=in(0):f32; 1=neg(0):f32"}
        return %b as y
    })");
    PipelineOptions options;
    std::vector<std::string> seen;
    options.dump_after = [&](const Pass& p, const Graph&) { seen.emplace_back(p.name); };
    options.disabled = {"share", "precision"};
    run_aot_passes(g, options);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "share"), 0);
    EXPECT_EQ(seen.size(), aot_passes().size() - 3);
}

} // namespace
} // namespace ingot
