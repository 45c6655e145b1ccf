// SPDX-License-Identifier: Apache-2.0
// Family pool.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace ingot::test {
namespace {

ops::Pool window(const char* fn, size_t axes, int64_t size, int64_t stride, int64_t pad) {
    ops::Pool p;
    p.fn = fn;
    p.sizes.assign(axes, size);
    p.strides.assign(axes, stride);
    p.dilations.assign(axes, 1);
    p.low.assign(axes, Dim(pad));
    p.high.assign(axes, Dim(pad));
    p.extra.assign(axes, Dim(0));
    return p;
}

Graph graph_of(const std::string& type, const ops::Pool& p) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", ops::pool(g, p, a));
    return g;
}

TEST(Pool, RowMajorAndChannelsLast) {
    for (const char* fn : {"max", "average"}) {
        Graph g = graph_of("f16[2,16,9,11]", window(fn, 2, 3, 2, 1));
        sweep(g);
        FamilyOptions o;
        o.orders = {{0, 2, 3, 1}};
        sweep(g, o);
        o.strided = true;
        sweep(g, o);
        sweep(graph_of("f32[2,6,9,7]", window(fn, 2, 3, 2, 1)), o);
    }
}

TEST(Pool, SmallWindowsAreReadAtOnce) {
    auto taps = [](const char* type, const ops::Pool& p) {
        FamilyOptions o;
        o.orders = {{0, 2, 3, 1}};
        std::string text = expect_family(graph_of(type, p), o).texts.at(0);
        constexpr std::string_view define = "#define TAPS ";
        return std::stoi(text.substr(text.find(define) + define.size()));
    };
    EXPECT_EQ(taps("f16[2,16,9,11]", window("max", 2, 3, 2, 1)), 9);
    EXPECT_EQ(taps("f32[2,8,9,11]", window("average", 2, 5, 1, 2)), 25);
    EXPECT_EQ(taps("f64[1,4,9,11]", window("average", 2, 4, 3, 1)), 16);
    EXPECT_EQ(taps("f16[1,8,9,11]", window("max", 2, 6, 1, 0)), 0);
}

// All values are negative: one from outside x would be the maximum were it 0.
TEST(Pool, MaximaInVectorsBesidePads) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.low = -100;
    o.high = -3;
    for (const char* t : {"i8", "f16", "bf16", "f8e4m3", "f8e5m2"}) {
        SCOPED_TRACE(t);
        FamilyRun r = expect_family(graph_of(str(t, "[2,16,9,11]"), window("max", 2, 3, 2, 1)), o);
        EXPECT_NE(r.texts.at(0).find("#define V 8"), std::string::npos);
    }
    o.low = 0;
    o.high = 255;
    expect_family(graph_of("u8[2,16,9,11]", window("max", 2, 3, 2, 1)), o);
}

TEST(Pool, MaximaOfTwoElementsAtATime) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.low = -120;
    o.high = 120;
    struct Row {
        const char* x;
        int cc;
        int packed;
    };
    for (Row row :
         {Row{"f16[2,16,9,11]", 80, 1}, Row{"f16[2,6,9,11]", 90, 1}, Row{"f16[2,5,9,11]", 90, 0},
          Row{"bf16[2,8,9,11]", 86, 2}, Row{"i8[2,16,9,11]", 90, 3}, Row{"i8[2,4,9,11]", 100, 3},
          Row{"i8[2,2,9,11]", 90, 0}, Row{"i8[2,16,9,11]", 89, 0}, Row{"u8[2,12,9,11]", 90, 4},
          Row{"f32[2,16,9,11]", 90, 0}}) {
        SCOPED_TRACE(testing::Message() << row.x << " on " << row.cc);
        o.cc = row.cc;
        FamilyRun r = expect_family(graph_of(row.x, window("max", 2, 3, 2, 1)), o);
        EXPECT_NE(r.texts.at(0).find(str("#define PACKED ", row.packed, '\n')), std::string::npos);
    }
}

TEST(Pool, NanIsTheMaximumOfItsWindows) {
    for (DType t : {DType::F16, DType::BF16}) {
        SCOPED_TRACE(name(t));
        FamilyOptions o;
        o.orders = {{0, 2, 3, 1}};
        Tensor x = Tensor::empty(t, {1, 8, 9, 9});
        for (int64_t i = 0; i < x.count(); ++i) {
            x.set_f64(i, static_cast<double>(i % 13) - 20);
        }
        for (int64_t channel = 0; channel < 8; ++channel) { // in another place of each
            x.set_f64(channel * 81 + 11 * channel, std::nan(""));
        }
        o.inputs = {x};
        FamilyRun r =
            expect_family(graph_of(str(name(t), "[1,8,9,9]"), window("max", 2, 3, 2, 1)), o);
        int64_t nans = 0;
        for (int64_t i = 0; i < r.results.at(0).count(); ++i) {
            nans += std::isnan(r.results[0].get_f64(i)) ? 1 : 0;
        }
        EXPECT_GE(nans, 8);
    }
}

TEST(Pool, OtherRanksAndDTypes) {
    for (const char* t : {"f32[2,3,20]", "f64[1,3,20]", "bf16[2,4,20]"}) {
        sweep(graph_of(t, window("average", 1, 4, 3, 2)));
    }
    sweep(graph_of("f32[1,3,7,6,5]", window("max", 3, 3, 2, 1)));
    for (const char* t : {"i8[1,3,9,9]", "u8[1,3,9,9]", "i64[1,3,9,9]", "i32[1,3,9,9]"}) {
        sweep(graph_of(t, window("max", 2, 2, 2, 1)));
    }
}

TEST(Pool, CountsDilationsAndCeilMode) {
    ops::Pool p = window("average", 2, 3, 2, 1);
    p.count_padding = true;
    p.extra = {1, 0};
    sweep(graph_of("f32[1,2,8,9]", p));
    p.count_padding = false;
    sweep(graph_of("f32[1,2,8,9]", p));
    p.dilations = {2, 1};
    p.fn = "max";
    sweep(graph_of("f32[1,2,9,9]", p));
}

TEST(Pool, ThenMap) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[1,8,6,6]"));
    Value b = g.add_input("b", parse_type("f16[8,1,1]"));
    Value y = ops::pool(g, window("max", 2, 2, 2, 0), a);
    Expr e;
    e.op(ExprOp::Max, e.op(ExprOp::Add, e.in(0, DType::F16), e.in(1, DType::F16)),
         e.constant(DType::F32, 0));
    g.add_output("y", ops::map(g, e, DType::F16, std::array{y, b}));
    FamilyOptions o;
    sweep(g, o);
    o.orders = {{0, 2, 3, 1}};
    sweep(g, o);
}

} // namespace
} // namespace ingot::test
