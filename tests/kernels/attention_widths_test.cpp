// SPDX-License-Identifier: Apache-2.0
// Family attention: values of another width than keys, and wide heads, by every tactic.
#include "kernels/attention_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

bool has(const std::vector<std::string>& names, std::string_view prefix) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& n) { return n.starts_with(prefix); });
}

constexpr std::pair<int64_t, int64_t> widths[] = {
    {32, 64}, {64, 32}, {96, 64}, {192, 64}, {192, 128}};

TEST(AttentionWidths, ValuesOfAnotherWidthThanKeys) {
    for (auto [depth, values] : widths) {
        SCOPED_TRACE(str(depth, " and ", values));
        std::vector<std::string> names =
            sweep(graph_of(DType::F16, {1, 2, 1, 70, 77, depth, values}));
        EXPECT_TRUE(has(names, "att_mma_64x"));
        EXPECT_TRUE(has(names, "att_wgmma_128s1"));
    }
    sweep(graph_of(DType::BF16, {2, 1, 1, 150, 300, 16, 72}));
    sweep(graph_of(DType::BF16, {2, 2, 2, 65, 197, 72, 24}));
}

TEST(AttentionWidths, MasksAndCausal) {
    ops::Attention causal;
    causal.causal = true;
    causal.offset = 20;
    for (auto [depth, values] : widths) {
        SCOPED_TRACE(str(depth, " and ", values));
        sweep(graph_of(DType::F16, {2, 2, 2, 40, 90, depth, values}, {}, "bool[2,1,1,90]"));
        sweep(graph_of(DType::F16, {1, 4, 2, 40, 60, depth, values}, causal));
    }
    sweep(graph_of(DType::BF16, {2, 2, 1, 33, 70, 32, 64}, {}, "f32[2,2,33,70]"));
    causal.offset = -30; // the first rows see nothing
    sweep(graph_of(DType::F16, {1, 1, 1, 60, 64, 64, 32}, causal, "bool[1,1,60,64]"));
    ops::Attention cap;
    cap.softcap = 1.5;
    sweep(graph_of(DType::F16, {1, 2, 2, 40, 70, 96, 64}, cap));
}

/// Heads of more than 160 elements, whose sums leave registers for few keys.
TEST(AttentionWidths, WideHeads) {
    for (int64_t width : {168, 200, 256}) {
        SCOPED_TRACE(width);
        std::vector<std::string> names =
            sweep(graph_of(DType::F16, {1, 2, 1, 70, 150, width, width}));
        EXPECT_TRUE(has(names, "att_wgmma_128s1w"));
        EXPECT_TRUE(has(names, "att_wgmma_64s1w"));
        EXPECT_TRUE(has(names, "att_mma_64x"));
    }
    sweep(graph_of(DType::BF16, {2, 2, 2, 40, 77, 256, 256}, {}, "bool[2,1,1,77]"));
    sweep(graph_of(DType::BF16, {1, 2, 2, 40, 77, 208, 208}, {}, "f32[1,2,40,77]"));
    sweep(graph_of(DType::BF16, {1, 2, 2, 40, 200, 256, 256}, {}, "f32[1,2,40,200]"));
    sweep(graph_of(DType::F16, {1, 1, 1, 20, 70, 64, 256}));
    ops::Attention a;
    a.causal = true;
    a.offset = 20;
    sweep(graph_of(DType::F16, {1, 4, 2, 90, 110, 256, 256}, a));
    a.softcap = 1.5;
    sweep(graph_of(DType::F16, {1, 2, 1, 40, 70, 256, 256}, a));
    sweep(graph_of(DType::F16, {1, 2, 1, 40, 70, 256, 256}, a, "f32[1,2,40,70]"));
    sweep(graph_of(DType::BF16, {1, 2, 1, 40, 100, 208, 208}, a, "f32[1,2,40,100]"));
    FamilyRun r = expect_family(graph_of(DType::F16, {1, 1, 1, 60, 1500, 256, 256}),
                                {.tactic = "att_wgmma_128s1w"});
    EXPECT_EQ(r.entries.size(), 2U);
    EXPECT_EQ(tactic_names(graph_of(DType::F16, {1, 8, 8, 1024, 1024, 256, 256}))[0].substr(0, 9),
              "att_wgmma");
}

TEST(AttentionWidths, ResultsOfBytes) {
    auto bytes_of = [](const Sizes& s) {
        Graph g;
        Value y = add_attention(g, DType::F16, s, {}, "");
        g.add_output("y", rounded_to_bytes(g, y, DType::I8, 0.01));
        return g;
    };
    sweep(bytes_of({1, 2, 1, 40, 70, 64, 32}), {.tolerance = 1.1});
    sweep(bytes_of({2, 4, 2, 3, 70, 192, 128}), {.tolerance = 1.1});
    EXPECT_EQ(refusal(bytes_of({1, 2, 2, 40, 70, 256, 256}), "attention").value_or(""),
              "no family 'attention' takes the group: values of 256 elements that are rounded to "
              "bytes;");
}

/// Rows of 8 and 4 aligned bytes, padded in shared memory to different widths.
TEST(AttentionWidths, WidthsThatAreNoWholeChunks) {
    for (auto [depth, values] :
         {std::pair<int64_t, int64_t>{36, 20}, {6, 50}, {50, 14}, {20, 28}}) {
        SCOPED_TRACE(str(depth, " and ", values));
        EXPECT_TRUE(has(sweep(graph_of(DType::F16, {2, 2, 1, 33, 70, depth, values})), "att_mma"));
    }
    EXPECT_FALSE(has(tactic_names(graph_of(DType::F16, {1, 1, 1, 9, 9, 16, 7})), "att_mma"));
}

TEST(AttentionWidths, Singles) {
    FamilyOptions o;
    o.tolerance = 4e-3;
    for (auto [depth, values] :
         {std::pair<int64_t, int64_t>{32, 64}, {64, 32}, {16, 8}, {36, 20}}) {
        SCOPED_TRACE(str(depth, " and ", values));
        EXPECT_TRUE(
            has(sweep(graph_of(DType::F32, {1, 2, 1, 70, 77, depth, values}), o), "att_tf32"));
    }
    std::vector<std::string> names = sweep(graph_of(DType::F32, {1, 2, 1, 40, 150, 48, 24}), o);
    EXPECT_TRUE(has(names, "att_wgmma_128s1"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F32, {1, 1, 1, 40, 50, 160, 96}), o), "att_tf32"));
    o.tf32 = false;
    o.tolerance = -1;
    sweep(graph_of(DType::F32, {1, 2, 2, 20, 50, 24, 40}), o);
}

TEST(AttentionWidths, FewRowsSplitTheKeys) {
    for (auto [depth, values] : widths) {
        SCOPED_TRACE(str(depth, " and ", values));
        std::vector<std::string> names =
            sweep(graph_of(DType::BF16, {1, 4, 2, 3, 300, depth, values}));
        EXPECT_TRUE(has(names, "att_mma_16x"));
        EXPECT_TRUE(has(names, "att_mma_c"));
    }
    FamilyOptions o;
    o.tolerance = 4e-3;
    sweep(graph_of(DType::F32, {1, 4, 2, 3, 300, 24, 36}), o);
    // A second kernel merges the parts of keys.
    FamilyRun r = expect_family(graph_of(DType::F16, {1, 1, 1, 60, 1500, 64, 32}),
                                {.tactic = "att_wgmma_128s1"});
    EXPECT_EQ(r.entries.size(), 2U);
    expect_family(graph_of(DType::F16, {1, 1, 1, 60, 1500, 32, 64}), {.tactic = "att_mma_64x"});
}

/// Only what no matrix instruction takes is products and a softmax, unless queries are few.
TEST(AttentionWidths, FewWidthsAreRefused) {
    auto ran_attention = [](int64_t queries, int64_t values) {
        Graph g = graph_of(DType::F16, {1, 2, 2, queries, 80, 16, values});
        return ran(expect_backend(g, {.tolerance = 6e-3}).kernels, "attention");
    };
    EXPECT_TRUE(ran_attention(64, 64));
    EXPECT_FALSE(ran_attention(64, 63));
    EXPECT_TRUE(ran_attention(2, 63));
    ops::Attention a;
    a.causal = true;
    a.offset = -5; // the first rows see nothing: zeros
    for (const char* mask : {"", "bool[1,1,64,80]", "f32[64,80]"}) {
        BackendRun r = expect_backend(graph_of(DType::F16, {1, 4, 2, 64, 80, 16, 63}, a, mask),
                                      {.tolerance = 6e-3});
        EXPECT_FALSE(ran(r.kernels, "attention"));
        EXPECT_TRUE(ran(r.kernels, "softmax"));
    }
    EXPECT_EQ(refusal(graph_of(DType::F16, {1, 4, 4, 64, 64, 16, 320})).value_or(""),
              "no family 'attention' takes the group: keys of 16 and values of 320 elements, for "
              "many queries;");
}

} // namespace
} // namespace ingot::test
