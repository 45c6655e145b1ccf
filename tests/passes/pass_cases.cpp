// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_cases.h"

#include "base/error.h"
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

std::filesystem::path path_of(const std::string& folder) {
    return std::filesystem::path(source_dir()) / "tests" / folder;
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

void check(const Pass& pass, PassCase& c, bool idempotent) {
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
    if (writes_goldens()) {
        c.after = unchanged ? "unchanged\n" : text;
    }
    EXPECT_EQ(text, c.after == "unchanged\n" ? printed(before) : printed(parsed(c.after)));
    if (idempotent) {
        EXPECT_EQ(printed(run_pass(pass, after, options)), text) << "not idempotent";
    }
    expect_same_results(before, after, tolerance);
}

} // namespace

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
                      const std::function<const Pass&(const PassCase&)>& find) {
    std::filesystem::path path = path_of(folder) / (pass + ".case");
    std::string head;
    std::vector<PassCase> cases = read(path, head);
    ASSERT_FALSE(cases.empty());
    for (PassCase& c : cases) {
        SCOPED_TRACE(c.title);
        check(find(c), c, idempotent);
    }
    if (writes_goldens()) {
        write(path, head, cases);
    }
}

} // namespace ingot::test
