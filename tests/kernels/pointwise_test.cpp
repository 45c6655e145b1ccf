// SPDX-License-Identifier: Apache-2.0
// Family pointwise: every form of its loops, against the evaluator.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph sum_of(std::string_view a, std::string_view b) {
    Graph g;
    Value x = g.add_input("a", parse_type(a));
    Value y = g.add_input("b", parse_type(b));
    g.add_output("y", ops::add(g, x, y));
    return g;
}

TEST(Pointwise, ContiguousVectorsAndATail) {
    for (const char* type : {"f16[1000]", "f32[4,301]", "bf16[3,3,3]", "f64[77]", "i8[1001]",
                             "u16[130]", "i64[65]", "f8e4m3[100]", "f8e5m2[33]", "i32[]"}) {
        SCOPED_TRACE(type);
        Graph g = sum_of(type, type);
        sweep(g);
    }
}

TEST(Pointwise, ReadsSmallerOperandsAgain) {
    sweep(sum_of("f16[6,128]", "f16[128]"));
    sweep(sum_of("f16[6,5,128]", "f16[6,1,128]"));
    sweep(sum_of("f32[2,12,35]", "f32[12,1]"));
    sweep(sum_of("f16[3,5]", "f16[]"));
    sweep(sum_of("f32[2,1,7,1,3]", "f32[1,5,1,4,3]"));
}

TEST(Pointwise, WalksAnyStrides) {
    FamilyOptions strided;
    strided.strided = true;
    sweep(sum_of("f16[7,40]", "f16[7,40]"), strided);
    sweep(sum_of("f32[3,5,9]", "f32[9]"), strided);
}

TEST(Pointwise, UnrollsLargeScalarLoops) {
    FamilyRun run = expect_family(sum_of("f32[300,239]", "f32[300,1]"), {.strided = true});
    EXPECT_NE(run.texts.at(0).find("#pragma unroll\nfor (int e = 0; e < 4; ++e)"),
              std::string::npos);
    run = expect_family(sum_of("f32[30,239]", "f32[30,1]"), {.strided = true});
    EXPECT_EQ(run.texts.at(0).find("e < 4; ++e"), std::string::npos) << "few elements";
}

TEST(Pointwise, TransposesThroughTiles) {
    FamilyOptions o;
    o.orders = {{0, 1}, {1, 0}};
    FamilyRun run = expect_family(sum_of("f16[130,72]", "f16[130,72]"), o);
    EXPECT_EQ(run.entries, std::vector<std::string>{"pointwise_tile"});
    expect_family(sum_of("f32[100,75]", "f32[100,75]"), o);
    o.orders = {{0, 1, 2, 3}, {0, 2, 3, 1}};
    expect_family(sum_of("f32[2,24,9,11]", "f32[2,24,9,11]"), o);
    expect_family(sum_of("f64[2,24,9,11]", "f64[1,24,9,11]"), o);
}

TEST(Pointwise, ConvertsDtypes) {
    for (auto [from, to] : {std::pair{DType::F16, DType::F32},
                            {DType::F32, DType::F16},
                            {DType::F32, DType::I8},
                            {DType::I32, DType::BF16},
                            {DType::F32, DType::Bool},
                            {DType::Bool, DType::F32},
                            {DType::U8, DType::F64},
                            {DType::F64, DType::F16}}) {
        Graph g;
        Value x = g.add_input("x", {from, {Dim(203)}});
        g.add_output("y", ops::cast(g, x, to));
        sweep(g, {.low = 0, .high = 100});
    }
}

TEST(Pointwise, ReadsAndWritesPackedElements) {
    for (DType t : {DType::I4, DType::U4, DType::F4E2M1}) {
        SCOPED_TRACE(name(t));
        Graph g;
        Value x = g.add_input("x", {t, {Dim(5), Dim(32)}});
        Value s = g.add_input("s", {DType::F16, {Dim(5), Dim(1)}});
        g.add_output("y", ops::mul(g, ops::cast(g, x, DType::F16), s));
        expect_backend(g, {.tolerance = 1e-3});
        for (int64_t last : {32, 7}) {
            Graph back;
            Value f = back.add_input("f", {DType::F32, {Dim(3), Dim(last)}});
            back.add_output("y", ops::cast(back, f, t));
            sweep(back, {.low = 0, .high = 5});
        }
    }
}

TEST(Pointwise, TakesManyInputs) {
    Graph g;
    Expr e;
    std::vector<Value> in;
    int sum = -1;
    for (int i = 0; i < 16; ++i) {
        in.push_back(g.add_input(str("x", i), parse_type(i % 3 == 0 ? "f16[4,24]" : "f16[24]")));
        int x = e.in(i, DType::F16);
        sum = sum < 0 ? x : e.op(ExprOp::Add, sum, x);
    }
    g.add_output("y", ops::map(g, e, DType::F16, in));
    sweep(g);
}

} // namespace
} // namespace ingot::test
