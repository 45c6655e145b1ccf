// SPDX-License-Identifier: Apache-2.0
// Runner: plans by shape and by data-dependent sizes, destinations of results, and observers of a
// run.
#include "error_of.h"
#include "ops/ops.h"
#include "plan/memory_planner.h"
#include "run/running.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::plan {
namespace {

using test::error_of;

Tensor indices(std::initializer_list<int64_t> list) {
    Tensor t = Tensor::zeros(DType::I64, {static_cast<int64_t>(list.size())});
    for (int64_t i = 0; int64_t n : list) {
        t.set_i64(i++, n);
    }
    return t;
}

/// x [N, M] -> softmax(x), turned; and the sums of its rows.
Graph open_sizes() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,M]"));
    Value y = ops::softmax(g, x, 1);
    g.add_output("turned", ops::permute(g, y, {1, 0}));
    g.add_output("sums", ops::reduce_sum(g, x, {1}));
    return g;
}

/// The columns of x's rows that hold a positive number in some row, each once.
Graph found() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    Value y = ops::maximum(g, x, 0.0);
    Value where = g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {y});
    Value columns = ops::squeeze(g, ops::slice(g, where, 0, 1, 1), {0});
    g.add_output("rows", ops::gather(g, ops::permute(g, y, {1, 0}), columns, 0));
    g.add_output("y", y);
    return g;
}

TEST(Runner, KeepsAPlanForEachShapeAndForgetsTheLeastUsed) {
    CompileOptions options;
    options.cached_plans = 2;
    Running s(open_sizes(), options);
    s.check({numbers({3, 5})});
    s.check({numbers({4, 7})});
    s.check({numbers({3, 5}, 1)});
    EXPECT_EQ(s.device.plans, 2);
    s.check({numbers({2, 2})}); // in the place of 4x7
    s.check({numbers({3, 5})});
    EXPECT_EQ(s.device.plans, 3);
    s.check({numbers({4, 7})});
    EXPECT_EQ(s.device.plans, 4);
    int64_t before = s.device.allocations;
    Tensor y = Tensor::zeros(DType::F32, {7, 4});
    Tensor sums = Tensor::zeros(DType::F32, {4});
    Tensor x = numbers({4, 7});
    std::vector<const std::byte*> in{x.bytes().data()};
    std::vector<ResultSlot> out(2);
    out[0].data = y.mutable_bytes().data();
    out[1].data = sums.mutable_bytes().data();
    s.runner->run(in, out);
    EXPECT_EQ(s.device.allocations, before) << "a prepared run into given memory";
}

TEST(Runner, PlansWhatFollowsASizeOnceForEachSize) {
    Running s(found());
    EXPECT_EQ(s.program->segments, 2);
    Tensor many = numbers({4, 8});
    Tensor none = Tensor::zeros(DType::F32, {4, 8});
    s.check({many});
    EXPECT_EQ(s.device.plans, 2);
    s.check({many});
    EXPECT_EQ(s.device.plans, 2);
    s.check({none});
    EXPECT_EQ(s.device.plans, 3);
    s.check({many});
    s.check({none});
    EXPECT_EQ(s.device.plans, 3);
    EXPECT_EQ(s.runner->result_shape(0), std::nullopt);
    EXPECT_EQ(s.runner->result_shape(1), (Shape{4, 8}));
    EXPECT_FALSE(s.runner->recordable());
}

TEST(Runner, ItsPlanIsTextBeforeARunAndAfter) {
    Running s(found());
    EXPECT_NE(s.runner->plan_text().find("segment 0: planned when"), std::string::npos);
    s.runner->prepare(std::array{Shape{4, 8}});
    std::string text = s.runner->plan_text();
    EXPECT_NE(text.find("segment 0: 2 steps, 0 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("segment 1: planned when the sizes before it are known\n  gather"),
              std::string::npos)
        << text;
    s.check({numbers({4, 8})});
    text = s.runner->plan_text();
    EXPECT_NE(text.find("bytes of activations, with ?0 = "), std::string::npos) << text;
    EXPECT_EQ(text.find("planned when"), std::string::npos) << text;
}

TEST(Runner, ShapesThatDoNotFitAreRefusedAndThePlansStay) {
    Running s(open_sizes());
    s.check({numbers({3, 5})});
    EXPECT_EQ(error_of([&] {
                  s.runner->prepare(std::array{Shape{3, 5}, Shape{1}});
              }),
              "got 2 inputs, expected 1");
    EXPECT_EQ(error_of([&] { s.runner->prepare(std::array{Shape{3}}); }),
              "input 'x' has rank 1 [3], expected rank 2 [N,M]");
    s.check({numbers({3, 5})});
    EXPECT_EQ(s.device.plans, 1);
}

TEST(Runner, AFailingStepIsNamed) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    Value i = g.add_input("i", parse_type("i64[2]"));
    g.set_origin("lookup");
    g.add_output("y", ops::gather(g, x, i, 0));
    Running s(std::move(g));
    s.check({numbers({4}), indices({3, 0})});
    Tensor x4 = numbers({4});
    Tensor bad = indices({1, 4});
    std::vector<const std::byte*> in{x4.bytes().data(), bad.bytes().data()};
    std::vector<ResultSlot> out(1);
    std::string text = error_of([&] { s.runner->run(in, out); });
    EXPECT_TRUE(text.starts_with("node 'lookup' (gather): ")) << text;
    EXPECT_NE(text.find("index 4"), std::string::npos) << text;
    s.check({x4, indices({2, 2})});
}

TEST(Runner, TimersAndObserversSeeEveryStep) {
    struct Timer : StepTimer {
        std::vector<std::string> kernels;
        double sum = 0;
        double whole = -1;
        void step(const StepInfo& info, double ms) noexcept override {
            kernels.push_back(info.kernel);
            sum += ms;
        }
        void run(double ms) noexcept override { whole = ms; }
    } timer;
    Running s(found());
    RunWatch watch;
    watch.timer = &timer;
    std::set<std::string> seen;
    watch.observer = [&seen](const ObservedValue& v) { seen.emplace(v.name); };
    s.check({numbers({4, 8})}, watch);
    std::vector<std::string> kernels;
    for (const StepInfo& info : s.runner->steps()) {
        kernels.push_back(info.kernel);
    }
    EXPECT_EQ(timer.kernels, kernels);
    EXPECT_GE(kernels.size(), 3U);
    EXPECT_DOUBLE_EQ(timer.whole, timer.sum);
    EXPECT_FALSE(s.runner->report_times(timer)) << "nothing was timed for later";
    watch.observer = nullptr;
    watch.times_later = true;
    s.check({numbers({4, 8})}, watch);
    timer.kernels.clear();
    EXPECT_TRUE(s.runner->report_times(timer));
    EXPECT_EQ(timer.kernels, kernels);
}

TEST(Runner, ObserversSeeNamedValues) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    Value y = ops::softmax(g, x, 1);
    g.set_value_name(y, "weights");
    g.add_output("z", ops::softmax(g, y, 0));
    Running s(g);
    Tensor seen;
    RunWatch watch;
    watch.observer = [&seen](const ObservedValue& v) {
        seen = v.name == "weights" ? v.tensor.clone() : seen;
    };
    Tensor in = numbers({4, 8});
    s.check({in}, watch);
    Graph alone;
    alone.add_output("y", ops::softmax(alone, alone.add_input("x", parse_type("f32[4,8]")), 1));
    Tensor want = evaluate(alone, std::vector<Tensor>{in})[0];
    ASSERT_TRUE(seen.defined());
    for (int64_t i = 0; i < want.count(); ++i) {
        ASSERT_NEAR(seen.get_f64(i), want.get_f64(i), 1e-6);
    }
}

// Steps are counted over all segments, as steps() lists them, whether they are timed or not.
TEST(Runner, ObserversSeeValuesInTheOrderOfSteps) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    g.set_origin("positive");
    Value y = ops::maximum(g, x, 0.0);
    g.set_value_name(y, "b");
    g.set_origin("where");
    Value where = g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {y});
    Value columns = ops::squeeze(g, ops::slice(g, where, 0, 1, 1), {0});
    g.set_origin("rows");
    Value rows = ops::gather(g, ops::permute(g, y, {1, 0}), columns, 0);
    g.set_value_name(rows, "a");
    g.add_output("rows", rows);
    Running s(g);
    struct : StepTimer {
        void step(const StepInfo&, double) noexcept override {}
    } timer;
    for (StepTimer* t : {static_cast<StepTimer*>(nullptr), static_cast<StepTimer*>(&timer)}) {
        std::vector<std::string> seen;
        std::vector<size_t> steps;
        RunWatch watch;
        watch.timer = t;
        watch.observer = [&](const ObservedValue& v) {
            seen.push_back(str(v.name, " of ", v.node));
            steps.push_back(v.step);
        };
        s.check({numbers({4, 8})}, watch);
        EXPECT_EQ(seen, (std::vector<std::string>{"b of positive", "a of rows"}));
        ASSERT_EQ(steps.size(), 2U);
        std::vector<StepInfo> listed = s.runner->steps();
        EXPECT_EQ(listed.at(steps[0]).name, "positive");
        EXPECT_EQ(listed.at(steps[1]).name, "rows");
        EXPECT_GT(steps[1], steps[0] + 1) << "nonzero is between them";
    }
}

TEST(Runner, ActivationsMayLieInLentMemory) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,64]"));
    g.add_output("y", ops::softmax(g, ops::softmax(g, x, 1), 0));
    Running s(std::move(g));
    std::array shape{Shape{16, 64}};
    int64_t needed = s.runner->activation_bytes(shape);
    EXPECT_GE(needed, 16 * 64 * 4);
    auto* memory =
        static_cast<std::byte*>(::operator new (static_cast<size_t>(needed), std::align_val_t{64}));
    s.device.limit = 1 << 12; // results only
    s.runner->lend_memory(memory, needed);
    s.check({numbers({16, 64})});
    EXPECT_NE(error_of([&] { s.runner->prepare(std::array{Shape{32, 64}}); }), "");
    s.check({numbers({16, 64}, 3)});
    s.runner->lend_memory(nullptr, 0);
    ::operator delete (memory, std::align_val_t{64});
}

} // namespace
} // namespace ingot::plan
