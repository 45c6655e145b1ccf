// SPDX-License-Identifier: Apache-2.0
// Family attention: every tactic, masks, causal, grouped heads, splits, packed buffers.
#include "kernels/attention_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace ingot::test {
namespace {

bool has(const std::vector<std::string>& names, std::string_view prefix) {
    for (const std::string& n : names) {
        if (n.substr(0, prefix.size()) == prefix) {
            return true;
        }
    }
    return false;
}

/// All tactics; f32 with and without TF32.
void sweep_all(const Graph& g, FamilyOptions o = {}) {
    if (g.type(g.inputs()[0]).dtype == DType::F32) {
        o.tf32 = false;
        sweep(g, o);
        o.tf32 = true;
        o.tolerance = 4e-3;
    }
    sweep(g, o);
}

TEST(Attention, HalfPrecisionOnMatrixInstructions) {
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {})), "att_mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::BF16, {1, 1, 1, 20, 40, 40, 40})), "att_mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {1, 1, 1, 10, 70, 96, 96})), "att_mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {1, 1, 1, 10, 40, 256, 256})), "att_mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {2, 1, 1, 5, 9, 8, 8})), "att_mma"));
}

/// Heads of 4 aligned bytes, padded in shared memory.
TEST(Attention, HeadsOfQuarterChunks) {
    for (int64_t depth : {6, 30, 50}) {
        SCOPED_TRACE(depth);
        EXPECT_TRUE(has(sweep(graph_of(DType::F16, {2, 2, 1, 33, 70, depth, depth})), "att_mma"));
    }
    sweep_all(graph_of(DType::F32, {2, 2, 1, 33, 70, 30, 30}, {}, "f32[2,1,33,70]"));
    // Parts of the keys are merged by fours of elements, or by a second kernel.
    sweep(graph_of(DType::BF16, {1, 2, 2, 3, 600, 30, 30}));
}

/// Heads whose elements lie apart are copied; those of many elements are products of their own.
TEST(Attention, HeadsThatLieApart) {
    FamilyOptions o;
    o.orders = {{0, 1, 3, 2}, {0, 3, 1, 2}, {0, 1, 2, 3}};
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {1, 2, 2, 20, 40, 48, 48}), o), "att_mma"));
    EXPECT_EQ(refusal(graph_of(DType::F16, {1, 4, 4, 16, 16, 1024, 1024})).value_or(""),
              "no family 'attention' takes the group: heads of 1024 elements, more than 256;");
}

/// Heads of 8 aligned bytes and 4 elements, padded in shared memory.
TEST(Attention, HeadsOfHalfChunks) {
    for (int64_t depth : {36, 60, 4, 100}) {
        SCOPED_TRACE(depth);
        EXPECT_TRUE(has(sweep(graph_of(DType::F16, {2, 2, 1, 33, 70, depth, depth})), "att_mma"));
    }
    // Few rows split the keys among warps and blocks.
    std::vector<std::string> names = sweep(graph_of(DType::BF16, {1, 2, 2, 3, 150, 60, 60}));
    for (const char* tactic : {"att_mma_16x", "att_mma_c"}) {
        EXPECT_TRUE(has(names, tactic)) << tactic;
    }
    ops::Attention a;
    a.causal = true;
    sweep(graph_of(DType::F16, {1, 2, 2, 40, 40, 36, 36}, a, "f16[1,1,1,40]"));
    EXPECT_FALSE(has(tactic_names(graph_of(DType::F16, {1, 1, 1, 9, 9, 7, 7})), "att_mma"));
    EXPECT_TRUE(
        tactic_names(graph_of(DType::F16, {1, 4, 4, 256, 256, 36, 36}))[0].starts_with("att_mma"));
}

TEST(Attention, WarpgroupProducts) {
    // Every form, head sizes of one to three slabs, rows and keys that do not fill tiles.
    std::vector<std::string> names = sweep(graph_of(DType::F16, {1, 2, 2, 150, 300, 64, 64}));
    for (const char* form : {"att_wgmma_128s1", "att_wgmma_192s1", "att_wgmma_128s2",
                             "att_wgmma_64s2", "att_wgmma_64s3"}) {
        EXPECT_TRUE(has(names, form)) << form;
    }
    ops::Attention a;
    for (int64_t depth : {40, 80, 96, 128, 160}) {
        FamilyOptions o;
        for (const char* tactic : {"att_wgmma_128s1", "att_wgmma_64s2"}) {
            o.tactic = tactic;
            expect_family(graph_of(DType::BF16, {1, 2, 1, 70, 77, depth, depth}), o);
            expect_family(graph_of(DType::F16, {2, 1, 1, 65, 197, depth, depth}), o);
        }
    }
    names = sweep(graph_of(DType::F16, {1, 1, 1, 17, 600, 8, 8}));
    for (const char* form : {"att_wgmma_128s1f", "att_wgmma_128s2f", "att_wgmma_128s2o"}) {
        EXPECT_TRUE(has(names, form)) << form;
    }
    sweep(graph_of(DType::F16, {1, 1, 1, 130, 520, 64, 64}, {}, "bool[1,1,1,520]"));
}

TEST(Attention, WarpgroupsComeFirstWhereTheyWin) {
    auto best = [](const Sizes& s) { return tactic_names(graph_of(DType::F16, s)).front(); };
    for (const Sizes& s : {Sizes{2, 8, 8, 4096, 4096, 40, 40}, Sizes{2, 8, 8, 1024, 1024, 80, 80},
                           Sizes{2, 8, 8, 256, 256, 160, 160}, Sizes{32, 12, 12, 384, 384, 64, 64},
                           Sizes{32, 12, 12, 197, 197, 64, 64}}) {
        EXPECT_EQ(best(s).substr(0, 9), "att_wgmma") << s.queries;
    }
    EXPECT_EQ(best({1, 32, 8, 1, 4096, 128, 128}).substr(0, 7), "att_mma");
    EXPECT_FALSE(has(tactic_names(graph_of(DType::F16, {}), {.cc = 80}), "att_wgmma"));
}

/// Loops without matrix instructions are rated with the others: by what a block waits for where
/// blocks are few, else by instructions.
TEST(Attention, PlainLoopsDoNotComeFirst) {
    auto best = [](const Sizes& s, int cc) {
        return tactic_names(graph_of(DType::F16, s), {.cc = cc}).front();
    };
    for (int cc : {80, 89, 90}) {
        SCOPED_TRACE(cc);
        for (const Sizes& s :
             {Sizes{1, 12, 12, 8, 8, 64, 64}, Sizes{196, 12, 12, 8, 8, 64, 64},
              Sizes{1, 4, 4, 256, 256, 16, 128}, Sizes{32, 12, 12, 197, 197, 64, 64},
              Sizes{1, 2, 2, 33, 33, 32, 32}, Sizes{1, 32, 8, 1, 4096, 128, 128},
              Sizes{1, 8, 8, 32, 32, 192, 128}}) {
            EXPECT_EQ(best(s, cc).substr(0, 4), "att_") << s.batch << ' ' << s.queries;
        }
    }
}

TEST(Attention, WarpgroupMasks) {
    const char* const forms[] = {"att_wgmma_128s1", "att_wgmma_192s1", "att_wgmma_128s2",
                                 "att_wgmma_64s2", "att_wgmma_64s3"};
    for (const char* form : forms) {
        FamilyOptions o;
        o.tactic = form;
        expect_family(graph_of(DType::F16, {2, 2, 2, 40, 150, 48, 48}, {}, "bool[2,1,1,150]"), o);
        expect_family(graph_of(DType::F16, {2, 4, 2, 40, 150, 40, 40}, {}, "f32[2,1,1,150]"), o);
        ops::Attention a;
        a.causal = true;
        a.offset = 20;
        expect_family(graph_of(DType::F16, {1, 4, 2, 90, 110, 48, 48}, a), o);
    }
    for (const char* form : {"att_wgmma_128s1", "att_wgmma_64s2"}) {
        FamilyOptions o;
        o.tactic = form;
        expect_family(graph_of(DType::F16, {2, 2, 2, 40, 150, 48, 48}, {}, "bool[2,1,40,150]"), o);
        expect_family(graph_of(DType::BF16, {2, 2, 1, 40, 150, 160, 160}, {}, "f16[2,2,40,1]"), o);
        ops::Attention a;
        a.softcap = 1.5;
        expect_family(graph_of(DType::F16, {1, 2, 2, 40, 70, 64, 64}, a, "f32[40,70]"), o);
        a = {};
        a.causal = true;
        a.offset = 1400;
        FamilyRun r = expect_family(graph_of(DType::F16, {1, 1, 1, 60, 1500, 32, 32}, a), o);
        EXPECT_EQ(r.entries.size(), 2U);
        a.offset = -30; // the first rows see nothing
        expect_family(graph_of(DType::F16, {1, 1, 1, 60, 64, 32, 32}, a), o);
    }
}

/// f32 as TF32, whose values are turned in shared memory.
TEST(Attention, WarpgroupSingles) {
    FamilyOptions o;
    o.tolerance = 4e-3;
    std::vector<std::string> names = sweep(graph_of(DType::F32, {1, 2, 2, 150, 300, 48, 48}), o);
    for (const char* form : {"att_wgmma_128s1", "att_wgmma_192s1", "att_wgmma_64s2"}) {
        EXPECT_TRUE(has(names, form)) << form;
    }
    // Head sizes of one to four slabs, steps whose keys do not fill a slab, many steps.
    for (int64_t depth : {8, 16, 40, 64}) {
        for (const char* tactic : {"att_wgmma_128s1", "att_wgmma_64s2"}) {
            o.tactic = tactic;
            expect_family(graph_of(DType::F32, {1, 2, 1, 70, 77, depth, depth}), o);
            expect_family(graph_of(DType::F32, {2, 1, 1, 65, 197, depth, depth}), o);
        }
    }
    o.tactic = "att_wgmma_192s1";
    expect_family(graph_of(DType::F32, {1, 1, 1, 200, 1, 16, 16}), o);
    o.tactic.clear();
    o.tf32 = false;
    EXPECT_FALSE(has(tactic_names(graph_of(DType::F32, {}), o), "att_wgmma"));
}

TEST(Attention, WarpgroupMasksOfSingles) {
    FamilyOptions o;
    o.tolerance = 4e-3;
    ops::Attention a;
    for (const char* form : {"att_wgmma_128s1", "att_wgmma_192s1", "att_wgmma_64s2"}) {
        o.tactic = form;
        expect_family(graph_of(DType::F32, {2, 2, 2, 40, 150, 48, 48}, {}, "bool[2,1,1,150]"), o);
        expect_family(graph_of(DType::F32, {2, 4, 2, 40, 150, 40, 40}, {}, "f32[2,1,1,150]"), o);
        a = {.causal = true, .offset = 20};
        expect_family(graph_of(DType::F32, {1, 4, 2, 90, 110, 48, 48}, a), o);
        a.offset = -30; // the first rows see nothing
        expect_family(graph_of(DType::F32, {1, 1, 1, 60, 64, 32, 32}, a), o);
        a.offset = 1400;
        FamilyRun r = expect_family(graph_of(DType::F32, {1, 1, 1, 60, 1500, 32, 32}, a), o);
        EXPECT_EQ(r.entries.size(), 2U);
    }
}

TEST(Attention, MaximaOnlyWhereWeightsGrow) {
    // Scores that reach 600, so that maxima are raised now and then; masks; keys that none sees.
    for (const char* form : {"att_wgmma_256s1z_", "att_wgmma_128s2z_", "att_wgmma_192s1z_"}) {
        FamilyOptions o;
        o.tactic = form;
        expect_family(graph_of(DType::BF16, {1, 2, 1, 70, 333, 40, 40}), o);
        o.low = -24;
        o.high = 24;
        expect_family(graph_of(DType::F16, {1, 1, 1, 300, 500, 40, 40}), o);
        expect_family(graph_of(DType::F16, {2, 1, 1, 33, 260, 64, 64}, {}, "f32[2,1,1,260]"), o);
        ops::Attention a;
        a.causal = true;
        a.offset = -30;
        expect_family(graph_of(DType::F16, {1, 1, 1, 200, 200, 48, 48}, a), o);
    }
    FamilyOptions o;
    for (int64_t depth : {80, 128, 160}) {
        o.tactic = "att_wgmma_192s1z_";
        expect_family(graph_of(DType::F16, {1, 1, 1, 40, 150, depth, depth}), o);
    }
    for (const char* form : {"att_wgmma_256s1zf", "att_wgmma_128s2zf", "att_wgmma_192s1zf"}) {
        o.tactic = form;
        expect_family(graph_of(DType::F16, {1, 1, 1, 17, 600, 16, 16}), o);
    }
    // More tiles than the GPU holds: blocks loop.
    o.tactic = "att_wgmma_256s1z_";
    expect_family(graph_of(DType::F16, {135, 1, 1, 17, 90, 8, 8}, {}, "bool[135,1,1,90]"), o);
    o.tactic = "att_wgmma_192s1z_";
    expect_family(graph_of(DType::F16, {34, 2, 1, 20, 40, 72, 72}), o);
    ops::Attention a;
    a.causal = true;
    expect_family(graph_of(DType::F16, {67, 2, 2, 33, 33, 16, 16}, a), o);
}

TEST(Attention, LastStepsOfFewKeysAreShort) {
    auto tail = [](const Graph& g, const char* tactic) {
        FamilyOptions o;
        o.tactic = tactic;
        std::string text = expect_family(g, o).texts.at(0);
        constexpr std::string_view define = "#define TAIL ";
        return std::stoi(text.substr(text.find(define) + define.size()));
    };
    // Three steps of 64 keys, then 5, 16, 20 and 40.
    for (auto [keys, expected] : {std::pair{197, 16}, {208, 16}, {212, 32}, {232, 0}, {192, 0}}) {
        SCOPED_TRACE(keys);
        EXPECT_EQ(tail(graph_of(DType::F16, {2, 1, 1, 150, keys, 64, 64}), "att_wgmma_128s2_"),
                  expected);
    }
    EXPECT_EQ(tail(graph_of(DType::BF16, {1, 2, 1, 70, 333, 40, 40}, {}, "bool[1,1,1,333]"),
                   "att_wgmma_256s1z_"),
              16);
    EXPECT_EQ(tail(graph_of(DType::F16, {1, 1, 1, 70, 212, 64, 64}, {}, "f32[1,1,1,212]"),
                   "att_wgmma_128s2_"),
              32);
    ops::Attention a;
    a.causal = true;
    EXPECT_EQ(tail(graph_of(DType::F16, {1, 1, 1, 70, 197, 64, 64}, a), "att_wgmma_128s2_"), 0);
    EXPECT_EQ(tail(graph_of(DType::F16, {1, 1, 1, 70, 197, 64, 64}), "att_wgmma_64s3_"), 0);
}

TEST(Attention, SingleAsTf32) {
    FamilyOptions o;
    o.tolerance = 4e-3;
    EXPECT_TRUE(has(sweep(graph_of(DType::F32, {}), o), "att_tf32"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F32, {1, 2, 1, 20, 70, 36, 36}), o), "att_tf32"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F32, {1, 1, 1, 40, 50, 160, 160}), o), "att_tf32"));
    o.tf32 = false;
    EXPECT_FALSE(has(tactic_names(graph_of(DType::F32, {}), o), "att_tf32"));
}

TEST(Attention, EveryOtherShapeAndDType) {
    FamilyOptions exact;
    exact.tf32 = false;
    sweep(graph_of(DType::F32, {}), exact);
    sweep(graph_of(DType::F16, {1, 2, 2, 9, 33, 20, 28}));
    expect_family(graph_of(DType::F64, {1, 1, 1, 17, 40, 24, 40}));
    expect_family(graph_of(DType::F8E5M2, {1, 1, 1, 5, 40, 16, 16}));
    expect_family(graph_of(DType::F32, {1, 1, 1, 3, 40, 16, 300}));
    expect_family(graph_of(DType::F64, {1, 1, 1, 3, 40, 900, 16}));
}

TEST(Attention, Causal) {
    ops::Attention a;
    a.causal = true;
    for (int64_t offset : {0, 37, -5}) {
        a.offset = offset;
        sweep_all(graph_of(DType::F16, {1, 2, 1, 33, 70, 16, 16}, a));
        sweep_all(graph_of(DType::F32, {1, 2, 1, 33, 70, 16, 16}, a));
    }
}

TEST(Attention, Masks) {
    for (DType t : {DType::F16, DType::F32}) {
        sweep_all(graph_of(t, {2, 2, 2, 20, 70, 16, 16}, {}, "bool[2,1,1,70]"));
        sweep_all(graph_of(t, {2, 2, 2, 20, 70, 16, 16}, {}, "f32[2,20,70]"));
        sweep_all(graph_of(t, {2, 2, 1, 20, 70, 16, 16}, {}, "f16[2,2,20,70]"));
    }
}

TEST(Attention, RowsThatSeeNothing) {
    FamilyOptions o;
    std::vector<uint8_t> hidden(static_cast<size_t>(3 * 40), 1);
    for (size_t i = 0; i < 40; ++i) {
        hidden[40 + i] = 0;
    }
    o.inputs = {{}, {}, {}, random_elements(DType::Bool, {1, 1, 3, 40}, 3)};
    for (size_t i = 0; i < hidden.size(); ++i) {
        o.inputs[3].mutable_bytes()[i] = static_cast<std::byte>(hidden[i]);
    }
    for (DType t : {DType::F16, DType::F32}) {
        sweep_all(graph_of(t, {1, 1, 1, 3, 40, 16, 16}, {}, "bool[1,1,3,40]"), o);
    }
}

TEST(Attention, Softcap) {
    ops::Attention a;
    a.softcap = 1.5;
    sweep_all(graph_of(DType::F16, {1, 1, 1, 20, 40, 32, 32}, a));
    sweep_all(graph_of(DType::F32, {1, 1, 1, 20, 40, 32, 32}, a));
}

TEST(Attention, FewQueriesSplitTheKeys) {
    for (DType t : {DType::BF16, DType::F32}) {
        FamilyOptions o;
        o.cc = 80;
        o.tf32 = false;
        FamilyRun r = expect_family(graph_of(t, {1, 8, 2, 1, 1100, 32, 32}), o);
        EXPECT_EQ(r.entries.size(), 2U);
    }
    ops::Attention a;
    a.causal = true;
    a.offset = 300;
    sweep_all(graph_of(DType::F16, {1, 2, 1, 4, 600, 16, 16}, a));
}

/// The tactics that split the keys among warps, with so many keys a stage.
void expect_across(const Graph& g, std::initializer_list<int> stages, double tolerance = -1) {
    for (int stage : stages) {
        bool wide = g.type(g.inputs()[0]).dtype == DType::F32;
        std::string name = str(wide ? "att_tf32_16x" : "att_mma_16x", stage);
        EXPECT_EQ(expect_family(g, {.tactic = name, .tolerance = tolerance}).tactic, name);
    }
}

TEST(Attention, FewRowsSplitTheKeysAmongWarps) {
    std::vector<std::string> names = sweep(graph_of(DType::F16, {2, 8, 2, 1, 513, 64, 64}));
    EXPECT_TRUE(has(names, "att_mma_16x128") && has(names, "att_mma_16x256"));
    expect_across(graph_of(DType::BF16, {1, 4, 2, 3, 300, 40, 40}), {128});
    expect_across(graph_of(DType::F16, {1, 2, 2, 16, 130, 128, 128}), {128});
    expect_across(graph_of(DType::F16, {1, 8, 1, 2, 77, 256, 256}), {64});
    expect_across(graph_of(DType::F32, {1, 8, 2, 1, 300, 64, 64}), {128}, 4e-3);
    // Masks of keys and of every row, what is hidden from some warps, and two ways to split.
    expect_across(graph_of(DType::F16, {2, 4, 2, 1, 200, 32, 32}, {}, "bool[2,1,1,200]"), {256});
    expect_across(graph_of(DType::F16, {1, 4, 2, 3, 200, 32, 32}, {}, "f16[1,4,3,200]"), {128});
    ops::Attention a;
    a.causal = true;
    a.offset = 40;
    expect_across(graph_of(DType::F16, {1, 2, 1, 4, 600, 16, 16}, a), {256});
    expect_across(graph_of(DType::F16, {1, 2, 1, 1, 2100, 16, 16}), {128, 256});
    // With few rows and many keys these come first where there are no clusters; 17 rows are too
    // many.
    FamilyRun r = expect_family(graph_of(DType::F16, {1, 32, 8, 1, 513, 64, 64}), {.cc = 80});
    EXPECT_EQ(r.tactic, "att_mma_16x256");
    EXPECT_EQ(r.entries.size(), 1U);
    EXPECT_FALSE(has(sweep(graph_of(DType::F16, {1, 1, 1, 17, 100, 16, 16})), "att_mma_16x"));
}

TEST(Attention, ClustersSplitTheKeysOfFewRows) {
    auto clustered = [](const Graph& g, const char* tactic, double tolerance = -1) {
        FamilyRun r = expect_family(g, {.tactic = tactic, .tolerance = tolerance});
        EXPECT_EQ(r.tactic.substr(0, std::string_view(tactic).size()), tactic) << r.tactic;
        EXPECT_EQ(r.entries.size(), 1U);
    };
    Graph decode = graph_of(DType::F16, {1, 32, 8, 1, 513, 64, 64});
    clustered(decode, tactic_names(decode).front().c_str());
    EXPECT_EQ(tactic_names(decode).front().substr(0, 10), "att_mma_c8");
    EXPECT_FALSE(has(tactic_names(decode, {.cc = 89}), "att_mma_c"));
    // Shares of the results that are not equal, blocks without keys, and several stages of a block.
    clustered(graph_of(DType::BF16, {2, 6, 2, 1, 513, 40, 40}), "att_mma_c8w4");
    clustered(graph_of(DType::F16, {2, 8, 2, 1, 61, 256, 256}), "att_mma_c");
    clustered(graph_of(DType::BF16, {1, 2, 2, 16, 2100, 128, 128}), "att_mma_c8w4");
    clustered(graph_of(DType::F32, {1, 8, 2, 1, 300, 36, 36}), "att_tf32_c", 4e-3);
    clustered(graph_of(DType::F16, {2, 4, 2, 1, 900, 32, 32}, {}, "bool[2,1,1,900]"),
              "att_mma_c8w8");
    clustered(graph_of(DType::F16, {1, 4, 2, 3, 700, 32, 32}, {}, "f16[1,4,3,700]"),
              "att_mma_c8w4");
    ops::Attention a;
    a.causal = true;
    a.offset = 40; // most blocks see nothing
    clustered(graph_of(DType::F16, {1, 2, 1, 4, 700, 16, 16}, a), "att_mma_c8");
    a.offset = -2; // the first rows see nothing at all
    clustered(graph_of(DType::F16, {1, 2, 1, 4, 700, 16, 16}, a), "att_mma_c8");
}

/// A mask that shows each row the keys of these ranges.
Tensor shown(const std::string& type, const std::vector<std::pair<int64_t, int64_t>>& ranges) {
    Type t = parse_type(type);
    Tensor mask = Tensor::empty(t.dtype, eval(t.dims, {}));
    int64_t keys = mask.shape().back();
    bool adds = is_float(t.dtype);
    for (int64_t i = 0; i < mask.count(); ++i) {
        bool any = std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) {
            return r.first <= i % keys && i % keys < r.second;
        });
        double hidden = adds ? -std::numeric_limits<double>::infinity() : 0;
        mask.set_f64(i, any ? (adds ? 0.5 : 1) : hidden);
    }
    return mask;
}

TEST(Attention, KeysBeforeTheFirstAndBehindTheLastShownAreSkipped) {
    const std::vector<std::vector<std::pair<int64_t, int64_t>>> cases = {
        {{0, 40}},     {{700, 731}}, {{1690, 1700}}, {},           {{5, 6}, {1400, 1401}},
        {{300, 1700}}, {{129, 384}}, {{256, 512}},   {{255, 257}}, {{0, 1700}},
        {{383, 384}}};
    for (const auto& ranges : cases) {
        SCOPED_TRACE(ranges.empty() ? std::string("none")
                                    : str(ranges[0].first, " to ", ranges.back().second));
        auto expect = [&](DType t, const Sizes& sizes, const std::string& mask,
                          const std::string& tactic, double tolerance = -1) {
            FamilyOptions o{.tactic = tactic, .tolerance = tolerance};
            o.inputs = {{}, {}, {}, shown(mask, ranges)};
            expect_family(graph_of(t, sizes, {}, mask), o);
        };
        for (const char* tactic : {"att_mma_16x128", "att_mma_16x256"}) {
            expect(DType::F16, {1, 8, 2, 1, 1700, 32, 32}, "bool[1,1,1,1700]", tactic);
            expect(DType::F16, {1, 8, 2, 1, 1700, 32, 32}, "f16[1,1,1,1700]", tactic);
        }
        expect(DType::F32, {2, 4, 1, 3, 1700, 16, 16}, "bool[2,1,1,1700]", "att_tf32_16x128", 4e-3);
        // 600 keys for each block of a cluster.
        expect(DType::F16, {1, 4, 1, 1, 4800, 16, 16}, "bool[1,1,1,4800]", "att_mma_c8w4");
    }
}

TEST(Attention, PackedAndStrided) {
    for (DType t : {DType::F16, DType::F32}) {
        FamilyOptions o;
        o.orders = {{0, 2, 1, 3}, {0, 2, 1, 3}, {0, 2, 1, 3}};
        sweep_all(graph_of(t, {2, 3, 3, 20, 40, 16, 16}), o);
        o.orders = {};
        o.strided = true;
        sweep_all(graph_of(t, {2, 3, 3, 20, 40, 16, 16}), o);
    }
}

TEST(Attention, PartsOfOneBuffer) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,40,432]"));
    x = ops::reshape(g, x, {2, 40, 9, 48});
    Value parts[3];
    for (int i = 0; i < 3; ++i) {
        parts[i] = ops::permute(g, ops::slice(g, x, 2, 3 * i, 3), {0, 2, 1, 3});
    }
    Value y = ops::attention(g, {.scale = 0.2}, parts[0], parts[1], parts[2]);
    g.add_output("y", ops::reshape(g, ops::permute(g, y, {0, 2, 1, 3}), {2, 40, 144}));
    for (const char* tactic : {"att_wgmma_128s1", "att_wgmma_64s3", "att_mma"}) {
        expect_backend(g, {.tactic = tactic, .tolerance = 4e-3});
    }
}

} // namespace
} // namespace ingot::test
