// SPDX-License-Identifier: Apache-2.0
// The minimum and the maximum of one tensor are one step, whatever its layout; those of everything
// are found by all threads, and are the same with any number of them.
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

/// Both extremes of x over the axes.
void add_extremes(Graph& g, Value x, const std::vector<int64_t>& axes) {
    g.add_output("low", ops::reduce(g, "min", x, axes));
    g.add_output("high", ops::reduce(g, "max", x, axes));
}

TEST(CpuExtremes, OfRowsOfColumnsAndOfEverything) {
    for (DType t : {DType::F32, DType::F16, DType::F64, DType::I32, DType::U8}) {
        for (const std::vector<int64_t>& axes :
             {std::vector<int64_t>{0, 1, 2}, {2}, {0}, {1}, {0, 2}}) {
            for (int64_t columns : {1, 5, 33, 5000}) {
                SCOPED_TRACE(testing::Message() << name(t) << ' ' << axes.size() << " axes from "
                                                << axes[0] << ", columns " << columns);
                Graph g;
                add_extremes(g, g.add_input("x", {t, {3, 7, columns}}), axes);
                std::vector<StepInfo> steps = test::planned_steps(g); // f16 is widened before
                auto are = [&steps](std::string_view kernel) {
                    return std::ranges::count(steps, kernel, &StepInfo::kernel);
                };
                EXPECT_EQ(are("extremes"), 1);
                EXPECT_EQ(are("reduce"), 0);
                expect_same_as_evaluator(g);
            }
        }
    }
}

TEST(CpuExtremes, OfPermutedTensorsAndOfParts) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {40, 30, 50}});
    x = ops::slice(g, ops::permute(g, x, {2, 0, 1}), 1, 3, 37);
    add_extremes(g, x, {0, 1, 2});
    expect_same_as_evaluator(g);
}

/// NaN wins, and an infinity counts, wherever they lie among blocks and threads.
TEST(CpuExtremes, SpecialValuesAnywhere) {
    constexpr int64_t n = 200003;
    const float inf = std::numeric_limits<float>::infinity();
    Graph g;
    add_extremes(g, g.add_input("x", {DType::F32, {n}}), {0});
    for (float special : {NAN, inf, -inf}) {
        for (int64_t at : {int64_t{0}, int64_t{4095}, int64_t{4096}, int64_t{16384}, n - 1}) {
            SCOPED_TRACE(testing::Message() << special << " at " << at);
            Tensor x = Tensor::zeros(DType::F32, {n});
            for (int64_t i = 0; i < n; ++i) {
                x.set_f64(i, static_cast<double>(i * 7919 % n) - 1000);
            }
            x.set_f64(at, special);
            expect_same_as_evaluator(g, std::vector{x});
        }
    }
}

} // namespace

} // namespace ingot
