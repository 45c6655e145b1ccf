// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_cases.h"

#include "base/error.h"
#include "base/log.h"
#include "golden.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "ops/op_table.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace ingot::test {

namespace {

/// Rules that undo each other end with a warning: a failure of any test that runs passes.
const bool rules_must_end = [] {
    auto sink = [](void*, LogLevel, std::string_view message) {
        if (message.find("stopped after") != std::string_view::npos) {
            ADD_FAILURE() << message;
        }
    };
    set_log_sink(sink, nullptr, LogLevel::Warning);
    return true;
}();

std::filesystem::path path_of(const std::string& folder) {
    return std::filesystem::path(source_dir()) / "tests" / folder;
}

std::string place_of(const std::string& folder, const std::string& pass, const PassCase& c) {
    return str("tests/", folder, "/", pass, ".case, '", c.title, "'");
}

/// `head` receives the text before the first case (comments).
std::vector<PassCase> read(const std::filesystem::path& path, std::string& head) {
    std::ifstream file(path);
    std::vector<PassCase> out;
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

void write(const std::filesystem::path& path, const std::string& head,
           const std::vector<PassCase>& cases) {
    std::ofstream file(path);
    file << head;
    for (const PassCase& c : cases) {
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

constexpr std::string_view unchanged = "unchanged\n";

std::string expected_text(const PassCase& c, const Graph& before) {
    return c.after == unchanged ? printed(before)
                                : with_place([] { return std::string("the graph after"); },
                                             [&] { return printed(parsed(c.after)); });
}

/// The problem of the graph that the pass gave; "" when there is none. Writes it where goldens are
/// written and the title allows it.
std::string compare(PassCase& c, const Graph& before, const std::string& got) {
    std::string was = printed(before);
    if (is_near_miss(c) && got != was) {
        return str("the pass changes a near-miss, which must stay 'unchanged':\n",
                   line_difference(was, got));
    }
    if (writes_goldens()) {
        c.after = got == was ? std::string(unchanged) : got;
    }
    if (c.after.empty()) {
        return "nothing stands behind '---': INGOT_WRITE_GOLDENS=1 writes it";
    }
    if (!is_near_miss(c) && c.after == unchanged) {
        return "it stays 'unchanged', so its title begins with 'not: '";
    }
    std::string expected = expected_text(c, before);
    return got == expected ? ""
                           : str("the graph after is another one; where it is right, "
                                 "INGOT_WRITE_GOLDENS=1 writes it\n",
                                 line_difference(expected, got));
}

struct Setting {
    PassOptions options;
    double tolerance = 0;
};

Setting setting_of(const Pass& pass, const PassCase& c) {
    Setting out{{}, pass.structural ? 0 : 1e-4};
    if (c.title.ends_with("[bf16]")) {
        out.options.precision = DType::BF16;
        out.tolerance = 0.1;
    } else if (c.title.ends_with("[f16]")) {
        out.options.precision = DType::F16;
        out.tolerance = 0.02;
    }
    out.options.byte_convolutions = c.title.ends_with("[byte_convolutions]");
    out.options.rounds_products = c.title.ends_with("[rounded_products]");
    out.options.depth_parts = c.title.ends_with("[parts]") ? 64 : 0;
    bool volumes = c.title.ends_with("[volumes]");
    if (volumes || c.title.ends_with("[flat_convolutions]")) {
        out.options.flat_convolutions = out.options.flat_f32_convolutions = 1;
        out.options.volume_slab = volumes ? 32 : 0;
    }
    return out;
}

Graph graph_before(const PassCase& c) {
    return with_place([] { return std::string("the graph before"); },
                      [&] {
                          Graph g = parsed(c.before);
                          verify(g);
                          return g;
                      });
}

void check(const std::string& where, const Pass& pass, PassCase& c, bool idempotent) {
    Setting s = setting_of(pass, c);
    Graph before = graph_before(c);
    Graph after = run_pass(pass, before, s.options);
    verify(after);
    std::string text = printed(after);
    std::string problem = compare(c, before, text);
    if (!problem.empty()) {
        ADD_FAILURE() << where << ": " << problem;
    }
    if (idempotent) {
        std::string again = printed(run_pass(pass, after, s.options));
        EXPECT_EQ(line_difference(text, again), "") << where << ": not idempotent";
    }
    expect_same_results(before, after, s.tolerance);
}

/// An `if` on a new input, both branches of which are the graph.
Graph in_branches(const Graph& g) {
    Graph out = g.sibling("outer");
    Values in = {out.add_input("condition", {DType::Bool, {}})};
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        in.push_back(out.add_input(str("input", i), g.type(g.inputs()[i])));
    }
    auto body = std::make_shared<const Graph>(g);
    If branches{body, body, {}};
    SymbolSet known = input_symbols(g);
    for (Value v : g.outputs()) {
        for (const Dim& d : g.type(v).dims) {
            SymbolSet named;
            d.collect_symbols(named);
            bool outside = std::includes(known.begin(), known.end(), named.begin(), named.end());
            branches.symbols.push_back(outside ? d : out.fresh_symbol());
        }
    }
    Values results = out.add(if_def, branches, in);
    for (size_t i = 0; i < results.size(); ++i) {
        out.add_output(g.output_names()[i], results[i]);
    }
    return out;
}

/// The text of the then branch of the graph's only `if`.
std::string branch_text(const Graph& g) {
    for (const Node& n : g.nodes()) {
        if (n.is(if_def)) {
            return printed(*n.as<If>().then_body);
        }
    }
    return "no if\n";
}

} // namespace

bool is_near_miss(const PassCase& c) {
    return c.title.starts_with("not: ");
}

std::vector<std::string> case_files(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_of(folder))) {
        if (entry.path().extension() == ".case") {
            out.push_back(entry.path().stem().string());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<PassCase> read_pass_cases(const std::string& folder, const std::string& pass) {
    std::string head;
    return read(path_of(folder) / (pass + ".case"), head);
}

void check_pass_cases(const std::string& folder, const std::string& pass, bool idempotent,
                      const FindPass& find) {
    std::filesystem::path path = path_of(folder) / (pass + ".case");
    std::string head;
    std::vector<PassCase> cases = read(path, head);
    ASSERT_FALSE(cases.empty());
    for (PassCase& c : cases) {
        std::string where = place_of(folder, pass, c);
        SCOPED_TRACE(where);
        try {
            check(where, find(c), c, idempotent);
        } catch (const Error& e) {
            ADD_FAILURE() << where << ": " << e.what();
        }
    }
    if (writes_goldens()) {
        write(path, head, cases);
    }
}

void check_cases_in_branches(const std::string& folder, const std::string& pass,
                             const FindPass& find, const std::set<std::string>& others) {
    for (const PassCase& c : read_pass_cases(folder, pass)) {
        std::string where = place_of(folder, pass, c);
        try {
            const Pass& p = find(c);
            Graph before = graph_before(c);
            std::string expected = expected_text(c, before);
            std::string got =
                branch_text(run_pass(p, in_branches(before), setting_of(p, c).options));
            bool differs = others.contains(c.title);
            EXPECT_TRUE(!differs || got != expected) << where << ": the same in a branch after all";
            if (got != expected && !differs) {
                ADD_FAILURE() << where << ": the pass does not do the same in a branch of an 'if'; "
                              << "does it say 'handles_bodies' without handling them?\n"
                              << line_difference(expected, got);
            }
        } catch (const Error& e) {
            ADD_FAILURE() << where << ": in a branch of an 'if': " << e.what();
        }
    }
}

} // namespace ingot::test
