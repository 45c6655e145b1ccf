// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "ir/text.h"
#include "ops/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

const char* const sigmoid = "0=in(0):f32; 1=sigmoid(0):f32";
const char* const tanh_text = "0=in(0):f32; 1=tanh(0):f32";

/// A layer whose operands are all inputs, in their order.
struct Shape3 {
    std::string cell = "lstm";
    DType t = DType::F16;
    Dim steps = 5, batch = 3, hidden = 20;
    std::vector<int64_t> reversed = {0};
    bool lengths = false, peepholes = false, input_forget = false, reset_after = true;
};

Graph layer(const Shape3& l) {
    Graph g;
    ops::Recurrence a;
    a.cell = l.cell;
    a.reversed = l.reversed;
    a.gate = parse_expr(l.cell == "rnn" ? tanh_text : sigmoid);
    if (l.cell != "rnn") {
        a.candidate = parse_expr(tanh_text);
    }
    if (l.cell == "lstm") {
        a.output = parse_expr(tanh_text);
    }
    a.reset_after = l.cell == "gru" && l.reset_after;
    a.input_forget = l.input_forget;
    a.peepholes = l.peepholes;
    a.lengths = l.lengths;
    Dim d = a.directions();
    Dim rows = Dim(a.gates()) * l.hidden;
    ops::RecurrenceInputs in;
    in.x = g.add_input("x", {l.t, {l.steps, l.batch, d * rows}});
    in.r = g.add_input("r", {l.t, {d, rows, l.hidden}});
    in.h = g.add_input("h", {l.t, {d, l.batch, l.hidden}});
    if (a.has_cell_state()) {
        in.c = g.add_input("c", {l.t, {d, l.batch, l.hidden}});
    }
    if (a.reset_after) {
        in.reset_bias = g.add_input("bias", {l.t, {d, 1, l.hidden}});
    }
    if (l.peepholes) {
        in.peepholes = g.add_input("peepholes", {l.t, {d, 1, Dim(3) * l.hidden}});
    }
    if (l.lengths) {
        in.lengths = g.add_input("lengths", {DType::I64, {l.batch}});
    }
    Values out = ops::recurrence(g, a, in);
    for (size_t i = 0; i < out.size(); ++i) {
        g.add_output(str("out", i), out[i]);
    }
    return g;
}

/// Elements within [-0.5, 0.5]: no gate is saturated. f32 rounds operands of products to TF32.
FamilyOptions small(DType t = DType::F16) {
    FamilyOptions o;
    o.low = -0.5;
    o.high = 0.5;
    o.tolerance = t == DType::F32 ? 2e-3 : t == DType::F16 ? 8e-3 : 6e-2;
    return o;
}

FamilyOptions with_tactic(std::string tactic, int cc = 90, DType t = DType::F16) {
    FamilyOptions o = small(t);
    o.tactic = std::move(tactic);
    o.cc = cc;
    return o;
}

TEST(Recurrence, EveryArchitectureTypeAndCell) {
    std::vector<std::string> names = sweep(layer({.reversed = {0, 1}}), small());
    EXPECT_TRUE(ran(names, "cluster1_w4_n1")) << names.size();
    for (DType t : {DType::F16, DType::BF16, DType::F32}) {
        for (const char* cell : {"rnn", "gru", "lstm"}) {
            SCOPED_TRACE(str(cell, ' ', t));
            expect_family(layer({.cell = cell, .t = t, .reversed = {1}}), small(t));
        }
    }
}

TEST(Recurrence, SinglesAsTheyAre) {
    for (const char* cell : {"rnn", "gru", "lstm"}) {
        SCOPED_TRACE(cell);
        FamilyOptions o = small();
        o.tf32 = false;
        o.tolerance = 3e-6;
        expect_family(layer({.cell = cell, .t = DType::F32, .hidden = 24}), o);
        o.cc = 80;
        expect_family(layer({.cell = cell, .t = DType::F32, .hidden = 23}), o);
    }
}

TEST(Recurrence, OddSizes) {
    for (int64_t hidden : {1, 3, 13, 33}) {
        for (int64_t batch : {1, 8, 9}) {
            SCOPED_TRACE(str(hidden, " hidden, batch ", batch));
            expect_family(layer({.steps = 2, .batch = batch, .hidden = hidden}), small());
            expect_family(layer({.cell = "gru",
                                 .t = DType::F32,
                                 .steps = 3,
                                 .batch = batch,
                                 .hidden = hidden,
                                 .reversed = {1, 0}}),
                          small(DType::F32));
        }
    }
}

TEST(Recurrence, ClustersShareTheHiddenElements) {
    Graph g = layer({.steps = 4, .batch = 2, .hidden = 130, .reversed = {0, 1}});
    for (const char* tactic : {"cluster2_w8", "cluster4_w4", "cluster4_w8"}) {
        SCOPED_TRACE(tactic);
        expect_family(g, with_tactic(tactic));
    }
    Graph singles = layer({.cell = "gru", .t = DType::F32, .batch = 9, .hidden = 72});
    expect_family(singles, with_tactic("cluster4_w8_n2", 90, DType::F32));
    expect_family(singles, with_tactic("cluster2_w8_n1", 90, DType::F32));
}

TEST(Recurrence, LargeClusters) {
    Graph g = layer({.steps = 3, .batch = 1, .hidden = 256});
    for (const char* tactic : {"cluster4_w8", "cluster8_w8"}) {
        SCOPED_TRACE(tactic);
        expect_family(g, with_tactic(tactic));
    }
    expect_family(layer({.t = DType::F32, .steps = 3, .batch = 1, .hidden = 128}),
                  with_tactic("cluster8_w4", 90, DType::F32));
}

TEST(Recurrence, WeightsThatFindNoRegisters) {
    // Rest in shared memory; rest in memory.
    Graph g = layer({.steps = 3, .batch = 2, .hidden = 256});
    expect_family(g, with_tactic("cluster4_w16_n1"));
    expect_family(layer({.steps = 3, .batch = 1, .hidden = 400}), with_tactic("cluster8_w8_n1"));
    Graph singles = layer({.t = DType::F32, .steps = 2, .batch = 3, .hidden = 200});
    expect_family(singles, with_tactic("cluster4_w8_n1", 90, DType::F32));
    expect_family(singles, with_tactic("cluster4_w16_n1", 120, DType::F32));
}

TEST(Recurrence, ALaunchForEachStep) {
    for (int cc : {80, 90}) {
        for (const char* cell : {"rnn", "gru", "lstm"}) {
            SCOPED_TRACE(str(cell, " on ", cc));
            Graph g =
                layer({.cell = cell, .steps = 4, .batch = 9, .hidden = 50, .reversed = {0, 1}});
            FamilyRun run = expect_family(g, with_tactic("steps_n1", cc));
            EXPECT_EQ(run.entries.size(), 4U);
            EXPECT_GT(run.scratch, 0);
            expect_family(g, with_tactic("steps_n2", cc));
        }
    }
    expect_family(layer({.t = DType::F32, .steps = 1, .batch = 33, .hidden = 9}),
                  with_tactic("steps_n4", 90, DType::F32));
    // More elements than a cluster takes.
    FamilyRun run = expect_family(layer({.steps = 3, .batch = 2, .hidden = 1030}), small());
    EXPECT_EQ(run.tactic, "steps_n1");
    FamilyOptions none = with_tactic("steps_n1");
    none.symbols = {{"S", 0}};
    expect_family(layer({.steps = Dim::symbol("S"), .hidden = 12}), none);
}

TEST(Recurrence, SequencesOfTheirOwnLengths) {
    FamilyOptions o = small();
    o.inputs.resize(5);
    o.inputs[4] = Tensor::i64({5, 0, 3, 2, 1});
    Graph g = layer({.batch = 5, .reversed = {0, 1}, .lengths = true});
    expect_family(g, o);
    o = small(DType::F32);
    o.inputs.resize(4);
    o.inputs.push_back(Tensor::i64({2, 5, 4, 0, 5}));
    Graph gru =
        layer({.cell = "gru", .t = DType::F32, .batch = 5, .reversed = {1}, .lengths = true});
    expect_family(gru, o);
}

TEST(Recurrence, PeepholesAndCoupledGates) {
    expect_family(layer({.peepholes = true}), small());
    expect_family(layer({.t = DType::F32, .reversed = {1}, .input_forget = true}),
                  small(DType::F32));
}

TEST(Recurrence, SizesThatVary) {
    Graph g = layer({.steps = Dim::symbol("S"), .batch = Dim::symbol("B"), .hidden = 12});
    for (int64_t steps : {0, 1, 2, 7}) {
        for (int64_t batch : {0, 1, 17}) {
            SCOPED_TRACE(str(steps, " steps of ", batch));
            FamilyOptions o = small();
            o.symbols = {{"S", steps}, {"B", batch}};
            expect_family(g, o);
        }
    }
}

TEST(Recurrence, Refusals) {
    EXPECT_EQ(refusal(layer({.t = DType::F64})).value_or(""),
              "no family 'recurrence' takes the group: elements are f64;");
    EXPECT_EQ(refusal(layer({.hidden = Dim::symbol("H")})).value_or(""),
              "no family 'recurrence' takes the group: H hidden elements are no known number;");
    EXPECT_EQ(refusal(layer({.cell = "rnn", .hidden = 513})).value_or(""),
              "no family 'recurrence' takes the group: a plain cell has 513 hidden elements, more "
              "than 512;");
    EXPECT_EQ(refusal(layer({.cell = "gru", .reset_after = false})).value_or(""),
              "no family 'recurrence' takes the group: a step has two products;");
}

TEST(Recurrence, ThroughTheBackend) {
    Graph g = layer({.steps = 6, .batch = 2, .hidden = 64, .reversed = {0, 1}});
    BackendRun run = expect_backend(g, {.tolerance = 1e-2});
    EXPECT_EQ(run.kernels, std::vector<std::string>{"recurrence"});
    // A layer that no kernel takes is a loop.
    Graph loop = layer({.cell = "gru", .t = DType::F32, .hidden = 16, .reset_after = false});
    run = expect_backend(loop, {.tolerance = 1e-2});
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "loop"), 1);
}

} // namespace
} // namespace ingot::test
