// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "ir/text.h"
#include "ops/grid_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace ingot::test {
namespace {

Graph sample_graph(const std::string& x, const std::string& grid, ops::GridSample a = {}) {
    Graph g;
    Value image = g.add_input("x", parse_type(x));
    Value places = g.add_input("grid", parse_type(grid));
    g.add_output("y", ops::grid_sample(g, std::move(a), image, places));
    return g;
}

/// Coordinates that reach a little outside the image.
FamilyOptions near(std::vector<plan::Order> orders = {}) {
    FamilyOptions o;
    o.low = -1.3;
    o.high = 1.3;
    o.orders = std::move(orders);
    return o;
}

const plan::Order channels_last = {0, 2, 3, 1};

TEST(GridSample, EveryArchitectureAndType) {
    for (const char* t : {"f32", "f16", "bf16"}) {
        SCOPED_TRACE(t);
        Graph g = sample_graph(str(t, "[2,32,6,7]"), "f32[2,5,4,2]");
        std::vector<std::string> names = sweep(g, near());
        EXPECT_TRUE(ran(names, "sample_c16")) << names.size();
        names = sweep(g, near({channels_last}));
        EXPECT_TRUE(ran(names, "sample_c2")) << names.size();
        Graph same = sample_graph(str(t, "[2,3,6,7]"), str(t, "[2,5,4,2]"));
        sweep(same, near());
        FamilyOptions strided = near({channels_last});
        strided.strided = true;
        expect_family(g, strided);
    }
}

TEST(GridSample, EveryModeAndPadding) {
    for (const char* mode : {"linear", "nearest", "cubic"}) {
        for (const char* padding : {"zeros", "border", "reflection"}) {
            for (bool align : {false, true}) {
                SCOPED_TRACE(str(mode, ' ', padding, ' ', align));
                ops::GridSample a{mode, padding, align};
                for (const char* x : {"f32[2,3,5,8]", "f16[2,8,4,9]"}) {
                    Graph g = sample_graph(x, "f32[2,7,3,2]", a);
                    expect_family(g, near());
                    expect_family(g, near({channels_last}));
                }
                std::string row = "f32[2,3,9]";
                expect_family(sample_graph(row, "f32[2,11,1]", a), near());
                Graph volume = sample_graph("bf16[1,4,3,5,2]", "f32[1,2,3,3,3]", a);
                if (a.mode == "cubic") {
                    std::string reason = refusal(volume).value_or("");
                    EXPECT_NE(reason.find("cubic over 3 axes"), std::string::npos) << reason;
                } else {
                    expect_family(volume, near());
                    expect_family(volume, near({{0, 2, 3, 4, 1}}));
                }
            }
        }
    }
}

/// NaN, infinities and coordinates far outside: results as the evaluator's in f32, and no read
/// outside the image, which the emulator would report.
TEST(GridSample, AnyCoordinate) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> odd = {nan,   inf,    -inf, 1e30F, -1e30F, 3e9F, -3e9F, 40000.0F,
                                    -7.5F, 100.0F, 1.0F, -1.0F, 1.001F, 0.0F, -0.0F, 1e-30F};
    Tensor grid = Tensor::empty(DType::F32, {1, 16, 16, 2});
    auto numbers = grid.as_mutable<float>();
    for (size_t i = 0; i < 256; ++i) {
        numbers[2 * i] = odd[i / 16];
        numbers[2 * i + 1] = odd[i % 16];
    }
    for (const char* mode : {"linear", "nearest", "cubic"}) {
        for (const char* padding : {"zeros", "border", "reflection"}) {
            for (bool align : {false, true}) {
                SCOPED_TRACE(str(mode, ' ', padding, ' ', align));
                FamilyOptions o = near();
                o.f64 = false;
                o.inputs = {{}, grid};
                o.tolerance = 1e-3;
                expect_family(
                    sample_graph("f32[1,4,4,8]", "f32[1,16,16,2]", {mode, padding, align}), o);
                o.orders = {channels_last};
                expect_family(
                    sample_graph("f16[1,8,1,1]", "f32[1,16,16,2]", {mode, padding, align}), o);
            }
        }
    }
}

TEST(GridSample, OddShapes) {
    expect_family(sample_graph("f16[3,1,4,5]", "f32[3,7,7,2]"), near());
    expect_family(sample_graph("f16[1,1,1,1]", "f32[1,1,1,2]"), near());
    expect_family(sample_graph("f32[2,5,3,1]", "f32[2,0,4,2]"), near());
    expect_family(sample_graph("f32[2,0,3,3]", "f32[2,3,4,2]"), near());
    for (int64_t channels : {2, 6, 12, 20, 33}) {
        Graph g = sample_graph(str("f16[2,", channels, ",4,5]"), "f16[2,3,3,2]");
        for (const char* tactic : {"sample_c1", "sample_c2"}) {
            FamilyOptions o = near({channels_last, {0, 3, 1, 2}});
            o.tactic = channels > 2 && channels != 12 ? tactic : "";
            expect_family(g, o);
        }
    }
    FamilyOptions o = near();
    o.symbols = {{"N", 2}, {"H", 5}, {"P", 11}};
    expect_family(sample_graph("f16[N,8,H,6]", "f32[N,P,1,2]"), o);
    EXPECT_THROW(sample_graph("f32[1,2,3,3]", "f32[1,2,3,3]"), Error);
    EXPECT_THROW(sample_graph("f32[1,2,3,3]", "f32[1,2,2]"), Error);
    EXPECT_THROW(sample_graph("f32[1,2,3,3]", "f32[1,2,2,2]", {"cubical", "zeros"}), Error);
}

TEST(GridSample, OtherTypesStayApart) {
    EXPECT_TRUE(refusal(sample_graph("i32[1,2,3,3]", "f32[1,2,2,2]")).has_value());
    EXPECT_TRUE(refusal(sample_graph("f32[1,2,3,3]", "f64[1,2,2,2]")).has_value());
    EXPECT_TRUE(refusal(sample_graph("f32[1,2,1,1,1,1]", "f32[1,1,1,1,1,4]")).has_value());
    expect_backend(sample_graph("f64[1,2,3,3]", "f32[1,2,2,2]"));
}

TEST(GridSample, MapsBehindIt) {
    for (bool last : {false, true}) {
        Graph g;
        Value x = g.add_input("x", parse_type("f16[2,16,4,6]"));
        Value grid = g.add_input("grid", parse_type("f32[2,9,3,2]"));
        Value weight = g.add_input("w", parse_type("f32[2,1,9,3]"));
        Value bias = g.add_input("b", parse_type("f16[16,1,1]"));
        Value residual = g.add_input("r", parse_type("f16[2,16,9,3]"));
        Value y = ops::grid_sample(g, {}, x, grid);
        Expr sum;
        int product = sum.op(ExprOp::Mul, sum.in(0, DType::F16), sum.in(1, DType::F32));
        int shifted = sum.op(ExprOp::Add, product, sum.in(2, DType::F16));
        sum.op(ExprOp::Add, shifted, sum.in(3, DType::F16));
        Value operands[] = {y, weight, bias, residual};
        g.add_output("y", ops::map(g, sum, DType::F32, operands));
        FamilyOptions o = near();
        o.family = "grid_sample";
        o.orders = last ? std::vector<plan::Order>{channels_last,
                                                   {0, 1, 2, 3},
                                                   {0, 1, 2, 3},
                                                   {0, 1, 2},
                                                   channels_last}
                        : std::vector<plan::Order>{};
        sweep(g, o);
    }
}

/// Samples of images of several sizes, times weights, summed over the points: `stacked` as
/// deformable attention is often written, with an axis for the images.
Graph attention(DType t, DType weights, const std::vector<Shape>& sizes, int64_t channels,
                int64_t points, const ops::GridSample& a = {}, bool rounded = true) {
    Graph g;
    std::vector<Value> samples;
    for (size_t i = 0; i < sizes.size(); ++i) {
        Dims x = {2, channels};
        x.insert(x.end(), sizes[i].begin(), sizes[i].end());
        Value image = g.add_input(str("x", i), {t, x});
        int64_t own = points + static_cast<int64_t>(i % 2);
        Value grid = g.add_input(str("grid", i),
                                 {DType::F32, {2, 7, own, static_cast<int64_t>(sizes[i].size())}});
        samples.push_back(ops::grid_sample(g, a, image, grid));
    }
    Value all = samples.size() > 1 ? ops::concat(g, samples, 3) : samples[0];
    Value w = g.add_input("w", {weights, {2, 1, 7, ops::dims(g, all).back()}});
    Expr e;
    e.op(ExprOp::Mul, e.in(0, t), e.in(1, weights));
    Value operands[] = {all, w};
    Value y = ops::reduce_sum(g, ops::map(g, e, DType::F32, operands), {3});
    g.add_output("y", rounded ? ops::cast(g, y, t) : y);
    return g;
}

TEST(GridSample, WeightedSums) {
    FamilyOptions o = near();
    o.family = "grid_sample";
    std::vector<Shape> sizes = {{5, 6}, {3, 3}, {1, 2}};
    for (DType t : {DType::F32, DType::F16, DType::BF16}) {
        SCOPED_TRACE(str(t));
        for (bool last : {false, true}) {
            FamilyOptions way = o;
            if (last) {
                way.orders = {channels_last, {0, 1, 2, 3}, channels_last, {0, 1, 2, 3},
                              channels_last, {0, 1, 2, 3}, {0, 1, 2, 3}};
            }
            sweep(attention(t, DType::F32, sizes, 16, 4), way);
            way.strided = true;
            expect_family(attention(t, t, sizes, 12, 3, {}, false), way);
        }
    }
    for (const char* mode : {"nearest", "cubic"}) {
        expect_family(attention(DType::F16, DType::F16, {{4, 5}}, 8, 9, {mode, "border"}), o);
    }
    expect_family(attention(DType::F32, DType::F32, {{4, 5}, {2, 2}}, 3, 21), o);
    expect_family(attention(DType::F32, DType::F32, {{0, 5}, {2, 2}}, 3, 0), o);
}

/// One launch, with the weighted sum behind it.
TEST(GridSample, LoweringTakesIt) {
    Graph g = sample_graph("f16[4,32,6,6]", "f32[4,10,4,2]");
    BackendRun run = expect_backend(g, {.tolerance = 2e-3});
    EXPECT_EQ(run.kernels, std::vector<std::string>{"grid_sample"});
    run = expect_backend(attention(DType::F16, DType::F16, {{5, 6}, {3, 3}}, 32, 4),
                         {.tolerance = 2e-3});
    EXPECT_EQ(run.kernels, std::vector<std::string>{"grid_sample"});
}

} // namespace
} // namespace ingot::test
