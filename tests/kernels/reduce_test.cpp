// SPDX-License-Identifier: Apache-2.0
// Family reduce: reduce and arg_reduce over all forms, dtypes and strides.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace ingot::test {
namespace {

Graph reduce_graph(const char* type, const char* fn, std::vector<int64_t> axes) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", ops::reduce(g, fn, a, std::move(axes)));
    return g;
}

Graph arg_graph(const char* type, const char* fn, int64_t axis, bool last = false) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", ops::arg_reduce(g, fn, a, axis, last));
    return g;
}

TEST(Reduce, RowsOfEveryLength) {
    for (const char* type :
         {"f32[5,3]", "f32[7,33]", "f16[3,640]", "bf16[3,2500]", "f32[1,9001]"}) {
        sweep(reduce_graph(type, "sum", {1}));
    }
}

TEST(Reduce, ColumnsAndMixedAxes) {
    sweep(reduce_graph("f32[70,40]", "sum", {0}));
    sweep(reduce_graph("f16[3,5,64]", "max", {1}));
    sweep(reduce_graph("f32[2,30,5,17]", "min", {1, 3}));
    sweep(reduce_graph("f64[6,7,20]", "prod", {0, 2}));
}

TEST(Reduce, FewLongRowsAreSplit) {
    FamilyRun r = expect_family(reduce_graph("f32[2,20000]", "sum", {1}));
    EXPECT_EQ(r.entries.size(), 2U);
    r = expect_family(reduce_graph("f32[3000,16]", "sum", {0}));
    EXPECT_EQ(r.entries.size(), 2U);
}

TEST(Reduce, EveryDType) {
    for (const char* t : {"bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3",
                          "f8e5m2", "f16", "bf16", "f64"}) {
        std::string type = std::string(t) + "[4,50]";
        expect_family(reduce_graph(type.c_str(), "max", {1}));
        expect_family(reduce_graph(type.c_str(), "min", {0}));
        if (std::string_view(t) != "bool") {
            expect_family(reduce_graph(type.c_str(), "sum", {0, 1}));
        }
    }
}

TEST(Reduce, OverNothingAndOfNothing) {
    for (const char* fn : {"sum", "prod", "min", "max"}) {
        expect_family(reduce_graph("f32[3,0]", fn, {1}));
        expect_family(reduce_graph("i8[3,0]", fn, {1}));
        expect_family(reduce_graph("i64[3,0]", fn, {1}));
    }
    expect_family(reduce_graph("f32[0,3]", "sum", {1}));
}

TEST(Reduce, KeepsNan) {
    FamilyOptions o;
    float nan = std::numeric_limits<float>::quiet_NaN();
    o.inputs = {
        Tensor::of<float>(DType::F32, {2, 4}, std::vector<float>{1, nan, 2, 3, 4, 5, 6, 7})};
    expect_family(reduce_graph("f32[2,4]", "max", {1}), o);
    expect_family(arg_graph("f32[2,4]", "min", 1), o);
}

TEST(Reduce, Strided) {
    FamilyOptions o;
    o.strided = true;
    sweep(reduce_graph("f16[5,6,48]", "sum", {2}), o);
    sweep(reduce_graph("f32[5,6,48]", "max", {0}), o);
    o.strided = false;
    o.orders = {{0, 2, 3, 1}};
    sweep(reduce_graph("f32[2,40,3,5]", "sum", {2, 3}), o);
}

TEST(Reduce, MapOverTheResult) {
    Expr e;
    int x = e.in(0, DType::F16);
    int y = e.in(1, DType::F16);
    e.op(ExprOp::Add, e.op(ExprOp::Mul, x, e.constant(DType::F32, 1.0 / 300)), y);
    Graph h;
    Value a = h.add_input("a", parse_type("f16[6,300]"));
    Value b = h.add_input("b", parse_type("f16[6]"));
    Value sum = ops::reduce_sum(h, a, {1});
    h.add_output("y", ops::map(h, e, DType::F32, std::array{sum, b}));
    FamilyOptions o;
    o.tolerance = 2e-3;
    sweep(h, o);
}

TEST(ArgReduce, Forms) {
    sweep(arg_graph("f32[9,40]", "max", 1));
    sweep(arg_graph("f16[40,33]", "min", 0));
    sweep(arg_graph("f32[2,9000]", "max", 1));
}

TEST(ArgReduce, TiesAndDTypes) {
    FamilyOptions o;
    o.low = 0;
    o.high = 3;
    for (bool last : {false, true}) {
        for (const char* t : {"i8[7,60]", "i64[7,60]", "bool[7,60]", "i32[7,3000]"}) {
            expect_family(arg_graph(t, "max", 1, last), o);
            expect_family(arg_graph(t, "min", 0, last), o);
        }
    }
}

} // namespace
} // namespace ingot::test
