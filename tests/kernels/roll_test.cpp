// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "ir/text.h"
#include "ops/roll.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

Graph roll_graph(const std::string& x, std::vector<int64_t> axes, Dims shifts) {
    Graph g;
    Value v = g.add_input("x", parse_type(x));
    g.add_output("y", ops::roll(g, {std::move(axes), std::move(shifts)}, v));
    return g;
}

/// Windows of `side` by `side` out of an image of `count` by `count` windows, and back.
Value windows(Graph& g, Value image, int64_t count, int64_t side, int64_t channels) {
    Value split = ops::reshape(g, image, {1, count, side, count, side, channels});
    Value rows = ops::permute(g, split, {0, 1, 3, 2, 4, 5});
    return ops::reshape(g, rows, {count * count, side * side, channels});
}

Value image(Graph& g, Value rows, int64_t count, int64_t side, int64_t channels) {
    Value split = ops::reshape(g, rows, {1, count, count, side, side, channels});
    Value lines = ops::permute(g, split, {0, 1, 3, 2, 4, 5});
    return ops::reshape(g, lines, {1, count * side, count * side, channels});
}

TEST(Roll, EveryType) {
    for (const char* dtype :
         {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "u32", "i16", "u8", "bool"}) {
        SCOPED_TRACE(dtype);
        Graph g = roll_graph(std::string(dtype) + "[2,5,7,16]", {1, 2}, {2, 4});
        EXPECT_EQ(sweep(g), std::vector<std::string>{"generic"});
        expect_family(g, {.strided = true});
    }
}

TEST(Roll, OddShapesAndShiftsOfTheLastAxis) {
    expect_family(roll_graph("f16[3,24]", {1}, {8}));
    expect_family(roll_graph("f16[3,24]", {1}, {4}));
    expect_family(roll_graph("f16[3,24]", {-1, 0}, {3, -1}));
    expect_family(roll_graph("f32[7]", {0}, {6}));
    expect_family(roll_graph("u8[1,1,1]", {0, 1, 2}, {5, 0, 1}));
    expect_family(roll_graph("f32[2,0,3]", {1, 2}, {0, 1}));
    expect_family(roll_graph("bf16[3,1,5,1,2]", {0, 2, 4}, {1, 2, 1}));
}

TEST(Roll, SizesThatVary) {
    Dim n = Dim::symbol("N");
    for (int64_t size : {3, 4, 11}) {
        expect_family(roll_graph("f16[N,6,8]", {0, 2}, {n - Dim(3), 2}),
                      {.symbols = {{"N", size}}});
    }
    EXPECT_THROW(roll_graph("f32[4]", {1}, {2}), Error);
    EXPECT_THROW(roll_graph("f32[4,4]", {1, 1}, {2, 1}), Error);
}

TEST(Roll, AnyOrderOfAxes) {
    Graph g = roll_graph("f16[2,6,5,16]", {1, 3}, {2, 8});
    expect_family(g, {.orders = {{0, 2, 3, 1}}});
    expect_family(g, {.orders = {{3, 1, 2, 0}}});
}

TEST(Roll, PackedTypesStayApart) {
    std::string reason = refusal(roll_graph("u4[8]", {0}, {2})).value_or("");
    EXPECT_NE(reason.find("an operand of a packed type"), std::string::npos) << reason;
    expect_backend(roll_graph("u4[4,6]", {1}, {3}));
}

TEST(Roll, WindowsAroundIt) {
    for (int64_t channels : {24, 5, 4}) {
        SCOPED_TRACE(channels);
        Graph cut;
        Value x = cut.add_input("x", {DType::F16, {1, 9, 9, channels}});
        Value y = ops::roll(cut, {{1, 2}, {-2, -2}}, x);
        cut.add_output("y", windows(cut, y, 3, 3, channels));
        expect_family(cut, {.family = "roll", .strided = true});

        Graph paste;
        Value rows = paste.add_input("rows", {DType::F16, {9, 9, channels}});
        Value whole = ops::roll(paste, {{1, 2}, {2, 2}}, image(paste, rows, 3, 3, channels));
        Value residual = paste.add_input("r", {DType::F32, {1, 9, 9, channels}});
        Value bias = paste.add_input("b", {DType::F16, {9, 1}});
        Expr sum;
        int two = sum.op(ExprOp::Add, sum.in(0, DType::F16), sum.in(1, DType::F32));
        sum.op(ExprOp::Add, two, sum.in(2, DType::F16));
        Value operands[] = {whole, residual, bias};
        paste.add_output("y", ops::map(paste, sum, DType::F32, operands));
        expect_family(paste, {.family = "roll"});
    }
}

TEST(Roll, ReshapesThatMoveMoreThanOneAxis) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[4,6,10]"));
    Value y = ops::reshape(g, x, {8, 3, 10});
    y = ops::roll(g, {{0, 2}, {3, 4}}, y);
    y = ops::permute(g, y, {1, 0, 2});
    y = ops::reshape(g, y, {6, 40});
    g.add_output("y", y);
    expect_family(g, {.family = "roll"});
    Graph whole;
    Value v = whole.add_input("x", parse_type("f32[3,4,5]"));
    v = ops::roll(whole, {{0}, {7}}, ops::flatten(whole, v));
    whole.add_output("y", ops::reshape(whole, v, {3, 4, 5}));
    expect_family(whole, {.family = "roll"});
}

/// A shifted window as in Swin: one launch each way.
TEST(Roll, LoweringTakesTheMovesAroundIt) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[1,6,6,16]"));
    Value w = g.add_input("w", parse_type("f16[16,16]"));
    Value normed = ops::softmax(g, x, 3);
    Value rows = windows(g, ops::roll(g, {{1, 2}, {-1, -1}}, normed), 2, 3, 16);
    rows = ops::matmul(g, rows, w);
    Value back = ops::roll(g, {{1, 2}, {1, 1}}, image(g, rows, 2, 3, 16));
    Value sum = ops::add(g, x, back);
    rows = ops::matmul(g, windows(g, sum, 2, 3, 16), w);
    g.add_output("y", ops::add(g, sum, image(g, rows, 2, 3, 16)));
    BackendRun run = expect_backend(g, {.tolerance = 2e-3});
    auto count = [&](std::string_view kernel) {
        return std::count_if(run.kernels.begin(), run.kernels.end(), [&](const std::string& k) {
            return k.find(kernel) != std::string::npos;
        });
    };
    EXPECT_EQ(count("roll"), 3) << join(run.kernels, ", ");
    for (const char* apart : {"permute", "slice", "concat", "map"}) {
        EXPECT_EQ(count(apart), 0) << join(run.kernels, ", ");
    }
}

TEST(Roll, LoweringTakesTheMovesInFrontAlone) {
    Graph g;
    Value rows = g.add_input("x", parse_type("f16[4,9,16]"));
    Value rolled = ops::roll(g, {{1, 2}, {1, 1}}, image(g, rows, 2, 3, 16));
    g.add_output("y", rolled);
    BackendRun run = expect_backend(g, {.tolerance = 0});
    for (const std::string& kernel : run.kernels) {
        EXPECT_EQ(kernel.find("permute"), std::string::npos) << join(run.kernels, ", ");
    }
    EXPECT_EQ(run.kernels.size(), 1U) << join(run.kernels, ", ");
}

} // namespace
} // namespace ingot::test
