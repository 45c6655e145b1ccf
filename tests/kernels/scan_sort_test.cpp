// SPDX-License-Identifier: Apache-2.0
// Family scan_sort: scan, sort and topk.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <limits>

namespace ingot::test {
namespace {

Graph scan_graph(const std::string& type, const char* fn, int64_t axis, bool exclusive = false,
                 bool reverse = false) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", ops::scan(g, {fn, axis, exclusive, reverse}, a));
    return g;
}

Graph sort_graph(const std::string& type, int64_t axis, bool descending = false) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    Values r = ops::sort(g, a, axis, descending);
    g.add_output("v", r[0]);
    g.add_output("i", r[1]);
    return g;
}

Graph topk_graph(const std::string& type, int64_t axis, int64_t k, bool largest = true) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    Values r = ops::topk(g, {k, axis, largest}, a);
    g.add_output("v", r[0]);
    g.add_output("i", r[1]);
    return g;
}

FamilyOptions with_tactic(const char* name) {
    FamilyOptions o;
    o.tactic = name;
    return o;
}

TEST(Scan, Forms) {
    for (bool exclusive : {false, true}) {
        for (bool reverse : {false, true}) {
            sweep(scan_graph("f32[3,70]", "sum", 1, exclusive, reverse));
            expect_family(scan_graph("i32[2,5000]", "sum", 1, exclusive, reverse));
            expect_family(scan_graph("f32[4104]", "sum", 0, exclusive, reverse),
                          with_tactic("tiles"));
            expect_family(scan_graph("f32[9,80]", "max", 0, exclusive, reverse),
                          with_tactic("columns"));
        }
    }
}

TEST(Scan, ShortRows) {
    for (const char* t : {"f32[20,1]", "f16[9,64]", "f64[3,65]", "i64[2,7,200]", "u8[17,256]"}) {
        SCOPED_TRACE(t);
        int64_t axis = parse_type(t).rank() - 1;
        for (bool reverse : {false, true}) {
            expect_family(scan_graph(t, "sum", axis, reverse, reverse), with_tactic("short_rows"));
        }
    }
    EXPECT_EQ(tactic_names(scan_graph("f32[6144,64]", "sum", 1)).front(), "short_rows");
    EXPECT_EQ(tactic_names(scan_graph("f32[64,257]", "sum", 1)).front(), "rows");
}

TEST(Scan, ShortColumns) {
    for (const char* t : {"f32[1,40]", "f16[64,33]", "f64[65,70]", "i64[2,200,64]", "u8[256,97]"}) {
        SCOPED_TRACE(t);
        int64_t axis = parse_type(t).rank() - 2;
        for (bool reverse : {false, true}) {
            expect_family(scan_graph(t, "sum", axis, reverse, reverse),
                          with_tactic("short_columns"));
        }
    }
    // The decays of state-space models.
    EXPECT_EQ(tactic_names(scan_graph("f32[24,256,256]", "sum", 1)).front(), "short_columns");
}

TEST(Scan, FunctionsAndDTypes) {
    for (const char* fn : {"sum", "min", "max"}) {
        for (const char* t : {"f64[2,3000]", "f16[3,90]", "i64[3,90]", "u8[3,90]", "bf16[3,90]"}) {
            expect_family(scan_graph(t, fn, 1));
        }
    }
    FamilyOptions o;
    o.low = 0.9;
    o.high = 1.1;
    sweep(scan_graph("f32[2,3000]", "prod", 1), o);
    o = {};
    o.strided = true;
    sweep(scan_graph("f32[4,5,70]", "sum", 1), o);
}

TEST(Sort, ShortAndLongRows) {
    for (bool descending : {false, true}) {
        expect_family(sort_graph("f32[3,100]", 1, descending), with_tactic("shared"));
        expect_family(sort_graph("f32[70,9]", 0, descending), with_tactic("shared"));
        expect_family(sort_graph("f32[2,4200]", 1, descending), with_tactic("radix"));
    }
    expect_family(sort_graph("f16[70,9]", 0), with_tactic("radix"));
}

TEST(Sort, RowsInRegisters) {
    bool descending = false;
    for (const char* t : {"f32[5,129]", "f16[3,256]", "i8[2,1000]", "u32[3,300]", "bool[1,1024]",
                          "bf16[2,1500]", "i16[1,4096]", "f32[1,2049]"}) {
        expect_family(sort_graph(t, 1, descending), with_tactic("registers"));
        descending = !descending;
    }
    FamilyOptions o = with_tactic("registers");
    expect_family(topk_graph("f32[3,700]", 1, 9), o);
    expect_family(topk_graph("u8[200,3]", 0, 200, false), o);
    o.strided = true;
    expect_family(sort_graph("f32[3,300,4]", 1), o);
    EXPECT_EQ(tactic_names(sort_graph("f32[4096,1024]", 1)).front(), "registers");
    EXPECT_EQ(tactic_names(sort_graph("f32[4096,100]", 1)).front(), "shared");
}

TEST(Sort, IsStableInEveryDType) {
    FamilyOptions o;
    o.low = -3;
    o.high = 3;
    o.tactic = "shared";
    bool descending = false;
    for (const char* t : {"bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3",
                          "f8e5m2", "bf16", "f64"}) {
        expect_family(sort_graph(std::string(t) + "[2,60]", 1, descending), o);
        descending = !descending;
    }
    o.tactic = "radix";
    expect_family(sort_graph("i64[300]", 0, true), o);
    expect_family(sort_graph("bf16[2,300]", 1), o);
}

TEST(Sort, NanIsLargestAndZerosAreEqual) {
    float nan = std::numeric_limits<float>::quiet_NaN();
    float inf = std::numeric_limits<float>::infinity();
    FamilyOptions o;
    o.inputs = {Tensor::of<float>(DType::F32, {8},
                                  std::vector<float>{0.0F, nan, -0.0F, inf, -nan, -inf, 0.0F, 1})};
    for (const char* tactic : {"shared", "radix", "warps"}) {
        o.tactic = tactic;
        expect_family(sort_graph("f32[8]", 0), o);
        expect_family(sort_graph("f32[8]", 0, true), o);
    }
}

TEST(TopK, Forms) {
    FamilyOptions o = with_tactic("shared");
    expect_family(topk_graph("f32[3,100]", 1, 5), o);
    expect_family(topk_graph("f32[50,7]", 0, 50, false), o);
    expect_family(topk_graph("i64[2100]", 0, 200, false), with_tactic("rounds"));
    expect_family(topk_graph("f16[300]", 0, 280), with_tactic("radix"));
    for (bool largest : {false, true}) {
        expect_family(topk_graph("f32[2,9000]", 1, 300, largest), with_tactic("select"));
        expect_family(topk_graph("i64[5000]", 0, 40, largest), with_tactic("select"));
    }
    // Few values: many equals of the last one.
    FamilyOptions few = with_tactic("select");
    few.low = 0;
    few.high = 3;
    expect_family(topk_graph("u8[9000]", 0, 3000), few);
    expect_family(topk_graph("f16[5000,3]", 0, 700, false), few);
    o.strided = true;
    expect_family(topk_graph("f32[3,4,100]", 1, 2), o);
    expect_family(topk_graph("f32[3,100,4]", 1, 7), o);
}

TEST(TopK, AWarpPerRow) {
    FamilyOptions o = with_tactic("warps");
    bool largest = true;
    for (const char* t : {"f32[32,8]", "f16[5,64]", "bf16[3,128]", "i32[2,100]", "u8[9,33]",
                          "i8[4,32]", "u32[1,512]", "f8e4m3[3,300]"}) {
        SCOPED_TRACE(t);
        expect_family(topk_graph(t, 1, 8, largest), o);
        largest = !largest;
    }
    for (int64_t k : {1, 2, 16, 31, 32}) {
        expect_family(topk_graph("f32[7,257]", 1, k), o);
        expect_family(topk_graph("f16[40,6]", 0, k), o);
    }
    expect_family(topk_graph("f32[1]", 0, 1), o);
    for (int cc : {80, 86, 89, 90, 100, 120}) {
        o.cc = cc;
        expect_family(topk_graph("f32[6,64]", 1, 6), o);
    }
    // Equal elements keep their order.
    FamilyOptions few = o;
    few.low = 0;
    few.high = 2;
    expect_family(topk_graph("u8[6,100]", 1, 20), few);
    expect_family(topk_graph("bool[3,70]", 1, 32, false), few);
    o.strided = true;
    expect_family(topk_graph("f32[3,4,100]", 1, 2), o);
    expect_family(topk_graph("f32[3,100,4]", 1, 7), o);
}

TEST(TopK, ChoosesByCost) {
    EXPECT_EQ(tactic_names(topk_graph("f32[32,8]", 1, 2)).front(), "warps");
    EXPECT_EQ(tactic_names(topk_graph("f32[512,256]", 1, 8)).front(), "warps");
    EXPECT_EQ(tactic_names(topk_graph("f32[65536,128]", 1, 32)).front(), "shared");
    EXPECT_EQ(tactic_names(topk_graph("f32[4194304]", 0, 100)).front(), "select");
    EXPECT_EQ(tactic_names(topk_graph("f32[4194304]", 0, 1000)).front(), "select");
    EXPECT_EQ(tactic_names(topk_graph("f32[8,1000]", 1, 5)).front(), "registers");
    EXPECT_EQ(tactic_names(topk_graph("f32[4,9000]", 1, 5)).front(), "rounds");
    EXPECT_EQ(tactic_names(sort_graph("f32[4194304]", 0)).front(), "radix");
}

} // namespace
} // namespace ingot::test
