// SPDX-License-Identifier: Apache-2.0
// Runner: plans by shape and by data-dependent sizes, destinations of results, and observers of a
// run.
#include "backends/cpu/kernel.h"
#include "backends/cpu/lower.h"
#include "backends/cpu/options.h"
#include "base/error.h"
#include "error_of.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "plan/memory_planner.h"
#include "plan/memory_source.h"
#include "run/runner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace ingot::plan {
namespace {

using test::error_of;

/// Host memory; counts plans and allocations.
class CountingDevice final : public Device, DeviceLaunches {
public:
    CountingDevice() : Device(true) {
        DeviceParts parts;
        parts.launches = this;
        set_parts(parts);
    }
    int plans = 0;
    int64_t allocations = 0;
    int64_t limit = int64_t{1} << 40;
    std::vector<void*> communicators; // for bodies, as segments without a recording find them

    std::byte* allocate(int64_t bytes) override {
        require(bytes <= limit, ErrorCode::OutOfMemory, "no ", bytes, " bytes");
        ++allocations;
        return static_cast<std::byte*>(::operator new (
            static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::align_val_t{64}));
    }
    void release(std::byte* memory) noexcept override {
        ::operator delete (memory, std::align_val_t{64});
    }
    void set_memory(std::shared_ptr<MemorySource>) override {}
    const std::byte* constant(const Tensor& t) override { return t.bytes().data(); }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        std::memmove(to, from, bytes);
    }
    void fill(std::byte* to, int byte, size_t bytes) override { std::memset(to, byte, bytes); }
    void read(void* to, const std::byte* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
    }
    void synchronize() override {}

private:
    void begin_plan() override { ++plans; }
    void join_steps(SegmentPlan&) override {}
    bool settle() override { return false; }
    bool replay(SegmentPlan&, const RunContext& c) override {
        communicators.push_back(c.bodies->communicator);
        return false;
    }
};

Tensor indices(std::initializer_list<int64_t> list) {
    Tensor t = Tensor::zeros(DType::I64, {static_cast<int64_t>(list.size())});
    for (int64_t i = 0; int64_t n : list) {
        t.set_i64(i++, n);
    }
    return t;
}

Tensor numbers(const Shape& shape, int64_t seed = 0) {
    Tensor t = Tensor::zeros(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>((i * 29 + seed * 13) % 41 - 20) / 16);
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

struct Running {
    Graph graph;
    CountingDevice device;
    std::shared_ptr<const Program> program;
    std::unique_ptr<Runner> runner;

    explicit Running(Graph g, CompileOptions options = {}) : graph(std::move(g)) {
        options.of<CpuOptions>().use_library = false;
        options.poison = true;
        program = make_program(std::make_shared<const Graph>(cpu::lower(graph, options)),
                               cpu::cpu_kernels(), std::make_shared<PackCache>(), options);
        runner = std::make_unique<Runner>(program, device, Symbols());
    }

    /// Runs, and compares all results with the evaluator's.
    void check(const std::vector<Tensor>& in, const RunWatch& watch = {}) {
        std::vector<Shape> shapes;
        std::vector<const std::byte*> inputs;
        for (const Tensor& t : in) {
            shapes.push_back(t.shape());
            inputs.push_back(t.bytes().data());
        }
        runner->prepare(shapes);
        std::vector<Tensor> want = evaluate(graph, in);
        std::vector<ResultSlot> results(want.size());
        std::vector<Tensor> given(want.size());
        for (size_t i = 0; i < want.size(); i += 2) { // every other one goes to the caller's memory
            if (std::optional<Shape> shape = runner->result_shape(i)) {
                given[i] = Tensor::zeros(want[i].dtype(), *shape);
                results[i].data = given[i].mutable_bytes().data();
            }
        }
        runner->run(inputs, results, watch);
        for (size_t i = 0; i < want.size(); ++i) {
            const Tensor& got = given[i].defined() ? given[i] : results[i].tensor;
            ASSERT_EQ(got.type(), want[i].type()) << i;
            for (int64_t k = 0; k < got.count(); ++k) {
                ASSERT_NEAR(got.get_f64(k), want[i].get_f64(k), 1e-5) << i << " at " << k;
            }
        }
    }
};

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

/// if (c) { if (c) { x + x } else { x } } else { x }
Graph nested_branches() {
    auto branch = [](bool twice) {
        auto g = std::make_shared<Graph>();
        Value x = g->add_input("x", parse_type("f32[3]"));
        g->add_output("y", twice ? ops::add(*g, x, x) : ops::maximum(*g, x, 0.0));
        return g;
    };
    auto outer = std::make_shared<Graph>();
    Value c = outer->add_input("c", parse_type("bool[]"));
    Value x = outer->add_input("x", parse_type("f32[3]"));
    outer->add_output("y", outer->add1(if_def, If{branch(true), branch(false), {}}, {c, x}));
    auto other = std::make_shared<Graph>();
    other->add_input("c", parse_type("bool[]"));
    other->add_output("y", ops::maximum(*other, other->add_input("x", parse_type("f32[3]")), 0.0));
    Graph g;
    Value condition = g.add_input("c", parse_type("bool[]"));
    Value in = g.add_input("x", parse_type("f32[3]"));
    g.add_output("y", g.add1(if_def, If{outer, other, {}}, {condition, condition, in}));
    return g;
}

/// A new setting holds in bodies by itself; a timer, an observer and an event are the whole run's.
TEST(Runner, SettingsOfARunHoldInBodies) {
    Running r(nested_branches());
    Tensor yes = Tensor::zeros(DType::Bool, {});
    yes.set_i64(0, 1);
    int marker = 0;
    RunWatch watch;
    watch.communicator = &marker;
    r.check({yes, numbers({3})}, watch);
    // The whole, its branch, and the branch of that one, which has no bodies.
    EXPECT_EQ(r.device.communicators, (std::vector<void*>{&marker, &marker, nullptr}));
    r.device.communicators.clear();
    r.check({yes, numbers({3})});
    EXPECT_EQ(r.device.communicators, std::vector<void*>(3));

    struct : StepTimer {
        void step(const StepInfo&, double) noexcept override {}
    } timer;
    watch.timer = &timer;
    watch.times_later = true;
    watch.observer = [](const ObservedValue&) {};
    watch.ranges = Ranges::Detailed;
    watch.inputs_event = &marker;
    watch.cache_limit = 7;
    watch.replay = false;
    RunWatch bodies = watch.for_bodies();
    EXPECT_EQ(bodies.timer, nullptr);
    EXPECT_FALSE(bodies.times_later || bodies.observer || bodies.replay);
    EXPECT_EQ(bodies.ranges, Ranges::None);
    EXPECT_EQ(bodies.inputs_event, nullptr);
    EXPECT_EQ(bodies.communicator, &marker);
    EXPECT_EQ(bodies.cache_limit, 7);
}

} // namespace
} // namespace ingot::plan
