// SPDX-License-Identifier: Apache-2.0
// The harness itself: it must detect wrong results.
#include "kernels/family.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph row_sums() {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[5,N]"));
    g.add_output("y", ops::reduce(g, "sum", a, {1}));
    return g;
}

TEST(Harness, SweepsAllTactics) {
    FamilyOptions options;
    options.symbols = {{"N", 77}};
    std::vector<std::string> ran = sweep(row_sums(), options);
    EXPECT_FALSE(ran.empty());
    for (int cc : {80, 90, 120}) {
        options.cc = cc;
        for (const std::string& name : tactic_names(row_sums(), options)) {
            EXPECT_NE(std::find(ran.begin(), ran.end(), name), ran.end()) << name;
        }
    }
    options.strided = true;
    options.orders = {{1, 0}};
    expect_family(row_sums(), options);
}

/// The test failures that `f` reported.
template <class F>
std::string failures_of(F f) {
    ::testing::TestPartResultArray results;
    {
        ::testing::ScopedFakeTestPartResultReporter reporter(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
        f();
    }
    std::string out;
    for (int i = 0; i < results.size(); ++i) {
        out += results.GetTestPartResult(i).message();
    }
    return out;
}

TEST(Harness, SeesWrongResults) {
    FamilyOptions options;
    options.symbols = {{"N", 3000}};
    auto run = [&options] { expect_family(row_sums(), options); };
    options.tolerance = 1e-5;
    EXPECT_EQ(failures_of(run), "");
    options.tolerance = 0; // sums of many f32 are not exact
    EXPECT_NE(failures_of(run).find("result 0"), std::string::npos);
    options.tolerance = 1e-5;
    options.error_word = 1;
    EXPECT_NE(failures_of(run).find("error word"), std::string::npos);
}

/// A tactic of the family of reductions with a parameter that its launches depend on where `reads`
/// says so.
struct Shared {
    static constexpr std::string_view pattern = "shared_{kib}";
    int kib = 0;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("kib", self.kib);
    }
};

template <bool reads>
kernels::Family reductions() {
    kernels::Family f = kernels::family_of("reduce");
    f.tactics = [](const kernels::Problem&) {
        return std::vector<kernels::Tactic>{kernels::make_tactic(Shared{0}, 1),
                                            kernels::make_tactic(Shared{2}, 1)};
    };
    f.emit = [](const kernels::Problem& p, const kernels::Tactic& t) {
        const kernels::Family& real = kernels::family_of("reduce");
        kernels::Emitted out = real.emit(p, real.tactics(p).front());
        out.launches.front().shared += reads ? int64_t{t.as<Shared>()->kib} * 1024 : 0;
        return out;
    };
    return f;
}

TEST(Harness, SeesParametersThatNothingReads) {
    kernels::Family read = reductions<true>();
    kernels::Family unread = reductions<false>();
    FamilyOptions options;
    options.symbols = {{"N", 77}};
    options.made = &read;
    auto run = [&options] { sweep(row_sums(), options); };
    EXPECT_EQ(failures_of(run), "");
    options.made = &unread;
    EXPECT_NE(failures_of(run).find("tactics 'shared_0' and 'shared_2' launch the same: is a "
                                    "parameter not read?"),
              std::string::npos);
}

TEST(Harness, SaysWhatItCannotRun) {
    EXPECT_NE(refusal(row_sums(), "no family of this name"), std::nullopt);
    EXPECT_EQ(refusal(row_sums()), std::nullopt);
    FamilyOptions options;
    options.symbols = {{"N", 8}};
    options.tactic = "none such";
    EXPECT_NE(failures_of([&options] {
                  expect_family(row_sums(), options);
              }).find("no tactic 'none such'"),
              std::string::npos);
}

TEST(Harness, RunsTheWholeBackend) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[N,64]"));
    Value b = g.add_input("b", parse_type("f16[64]"));
    // Nothing that would magnify the rounding of a value between kernels.
    g.add_output("y", ops::softmax(g, ops::unary(g, ExprOp::Tanh, ops::add(g, a, b)), 1));
    for (int cc : {80, 90}) {
        BackendOptions options;
        options.cc = cc;
        options.symbols = {{"N", 70}};
        options.tolerance = 2e-3;
        expect_backend(g, options);
    }
}

} // namespace
} // namespace ingot::test
