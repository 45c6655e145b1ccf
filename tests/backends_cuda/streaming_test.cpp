// SPDX-License-Identifier: Apache-2.0
// Weight streaming: constants beyond a budget stay on the host and are copied before each step that
// reads them, concurrently with earlier steps if the budget has room for two; results are bit-equal
// under every budget.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "engine/engine.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {

namespace {

constexpr int64_t width = 64;
constexpr int64_t matrix_bytes = width * width * 4;

Tensor numbers(Shape shape, int64_t seed) {
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>((i * 29 + seed * 13) % 41 - 20) / 64);
    }
    return t;
}

/// Four products with matrices of their own; the third matrix is read twice.
Graph products(bool data_decides = false) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[8,64]"));
    Value y = x;
    Values w;
    for (int64_t i = 0; i < 4; ++i) {
        w.push_back(ops::constant(g, numbers({width, width}, i)));
        y = ops::maximum(g, ops::matmul(g, y, w.back()), 0.0);
    }
    y = ops::matmul(g, y, w[2]);
    if (data_decides) {
        Dim count = g.fresh_symbol();
        g.add_output("where", ops::cast(g, g.add1(nonzero_def, NonZero{count}, {y}), DType::F32));
        Value z = ops::matmul(g, y, w[1]);
        Value n = ops::cast(g, ops::dims_tensor(g, {count}), DType::F32);
        y = ops::add(g, z, ops::reshape(g, n, {1, 1}));
    }
    g.add_output("y", y);
    return g;
}

/// A row of products, each with a matrix of its own.
Graph many_products(int64_t n) {
    Graph g;
    Value y = g.add_input("x", parse_type("f32[8,64]"));
    for (int64_t i = 0; i < n; ++i) {
        y = ops::maximum(g, ops::matmul(g, y, ops::constant(g, numbers({width, width}, i))), 0.0);
    }
    g.add_output("y", y);
    return g;
}

struct Timer : StepTimer {
    void step(const StepInfo&, double) noexcept override {}
};

struct Result {
    std::vector<Tensor> outputs;
    size_t resident = 0;
    int64_t streamed = 0;
    int64_t activations = 0;
    int64_t uploads = 0;
    int64_t beside = 0; // of them
};

class Streaming : public ::testing::Test {
protected:
    Result run(const Graph& g, int64_t budget, bool record = false) {
        CompileOptions o;
        o.of<CudaOptions>().runtime_cache = "";
        o.of<CudaOptions>().weight_budget = budget;
        o.of<CudaOptions>().record_graphs = record;
        o.poison = true;
        Context context(Engine::create(g, {}, {}), *backend, o);
        std::vector<Tensor> in = {numbers({8, width}, 7)};
        Result r;
        for (int i = 0; i < 4; ++i) { // plain, recorded, repeated
            r.outputs = context.run(in);
        }
        r.resident = context.executable().packed_bytes();
        r.streamed = context.execution().memory_use().streamed;
        std::vector<StepInfo> steps = context.execution().steps();
        for (const StepInfo& s : steps) {
            r.uploads += s.implementation.starts_with("upload") ? 1 : 0;
            r.beside += s.implementation == "upload beside" ? 1 : 0;
        }
        r.activations = context.execution().activation_bytes(std::array{Shape{8, width}});
        return r;
    }
    emulator::EmulatedGpu gpu{90};
    std::unique_ptr<Backend> backend = cuda::make_backend(gpu);
};

} // namespace

TEST_F(Streaming, BudgetsChangeWhereWeightsLieAndNoBits) {
    Graph g = products();
    Result all = run(g, -1);
    EXPECT_EQ(all.uploads, 0);
    EXPECT_EQ(all.streamed, 0);
    EXPECT_GE(all.resident, static_cast<size_t>(4 * matrix_bytes));
    for (int64_t kept : {0, 1, 2, 3}) {
        SCOPED_TRACE(kept);
        Result r = run(g, kept * matrix_bytes + 100);
        EXPECT_EQ(r.outputs, all.outputs);
        EXPECT_EQ(all.resident - r.resident, static_cast<size_t>((4 - kept) * matrix_bytes));
        EXPECT_EQ(r.streamed, matrix_bytes);
        EXPECT_GE(r.uploads, 4 - kept);
        EXPECT_GE(r.activations, all.activations);
        EXPECT_LE(r.activations, all.activations + matrix_bytes);
    }
    Result whole = run(g, 4 * matrix_bytes);
    EXPECT_EQ(whole.uploads, 0);
    EXPECT_EQ(whole.resident, all.resident);
}

TEST_F(Streaming, UploadsRunBesideTheStepsBefore) {
    constexpr int64_t n = 14;
    Graph g = many_products(n);
    Result all = run(g, -1);
    for (bool late : {false, true}) { // as early as they may, and as late
        gpu.set_late_uploads(late);
        for (bool record : {false, true}) {
            SCOPED_TRACE(str(late, record));
            // The budget of eight matrices holds seven of them and room for a second slot.
            Result r = run(g, 8 * matrix_bytes, record);
            EXPECT_EQ(r.outputs, all.outputs);
            EXPECT_EQ(all.resident - r.resident, static_cast<size_t>((n - 7) * matrix_bytes));
            EXPECT_EQ(r.uploads, n - 7);
            EXPECT_EQ(r.beside, n - 7);
            EXPECT_EQ(r.streamed, 2 * matrix_bytes);
            EXPECT_LE(r.activations, all.activations + 2 * matrix_bytes);
        }
    }
    // With less there is no second slot.
    for (int64_t budget : {8 * matrix_bytes - 1, int64_t{0}}) {
        Result r = run(g, budget);
        EXPECT_EQ(r.outputs, all.outputs);
        EXPECT_EQ(r.uploads, budget == 0 ? n : n - 7);
        EXPECT_EQ(r.beside, 0);
        EXPECT_EQ(r.streamed, matrix_bytes);
    }
}

TEST_F(Streaming, BesideStepsBehindSizesThatDependOnData) {
    Graph g = many_products(12);
    Value y = g.outputs()[0];
    Dim count = g.fresh_symbol();
    g.add_output("where", ops::cast(g, g.add1(nonzero_def, NonZero{count}, {y}), DType::F32));
    Value n = ops::cast(g, ops::dims_tensor(g, {count}), DType::F32);
    Value z = ops::add(g, y, ops::reshape(g, n, {1, 1}));
    for (int64_t i = 20; i < 24; ++i) {
        z = ops::matmul(g, z, ops::constant(g, numbers({width, width}, i)));
    }
    g.add_output("z", z);
    gpu.set_late_uploads(true);
    Result all = run(g, -1);
    Result r = run(g, 8 * matrix_bytes);
    EXPECT_EQ(r.outputs, all.outputs);
    EXPECT_GT(r.beside, 4);
}

/// The driver's log: a step's matrix is copied on a separate stream while the previous step runs,
/// and the step waits only for that copy.
TEST(StreamingOrder, TheNextMatrixComesWhileAStepRuns) {
    fake::reset();
    fake::set_current(-1);
    std::unique_ptr<cuda::Gpu> gpu = fake::make_gpu();
    std::unique_ptr<Backend> backend = cuda::make_backend(*gpu, 1);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().weight_budget = 8 * matrix_bytes;
    o.of<CudaOptions>().force_tactic = "simt"; // one launch each
    o.of<CudaOptions>().record_graphs = true;
    auto e =
        backend->compile(std::make_shared<const Graph>(many_products(10)), o)->create_execution();
    std::vector<Binding> in = {{gpu->allocate(8 * width * 4), {8, width}}};
    std::vector<Binding> out = {{gpu->allocate(8 * width * 4), {}}};
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    std::vector<std::string> expected = {"record", "wait"}; // for the caller's stream
    auto add = [&expected](std::initializer_list<const char*> more) {
        expected.insert(expected.end(), more.begin(), more.end());
    };
    add({"record", "wait", "upload on stream 1"}); // of the eighth, from the start on
    for (int i = 0; i < 7; ++i) {
        add({"launch"});
    }
    for (int i = 7; i < 9; ++i) { // it is waited for, and the next begins before the launch
        add({"record", "wait", "record", "wait", "upload on stream 1", "launch"});
    }
    add({"record", "wait", "launch"});
    add({"record", "wait"}); // for what the caller enqueues next
    fake::take_log();
    Timer timer;
    e->change([&](RunSettings& changed) {
        changed.timer = &timer;
        changed.times_later = true;
    }); // no graph
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    std::vector<std::string> log = fake::take_log();
    std::erase(log, "mark");
    EXPECT_EQ(log, expected);
    e->change([&](RunSettings& changed) { changed.timer = nullptr; });
    for (int i = 0; i < 2; ++i) { // recorded, replayed
        ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    }
    fake::take_log();
    ASSERT_TRUE(e->enqueue(in, out, nullptr, {}).ok()) << e->error();
    EXPECT_EQ(fake::take_log(),
              (std::vector<std::string>{"record", "wait", "launch a graph", "record", "wait"}));
    int caller = 0; // a capture of the caller's takes the uploads along
    fake::capture(&caller);
    ASSERT_TRUE(e->enqueue(in, out, &caller, {}).ok()) << e->error();
    log = fake::take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(), "upload on stream 1 (captured)"), 3);
    fake::capture(nullptr);
}

TEST_F(Streaming, RecordedRunsUpload) {
    Graph g = products();
    Result all = run(g, -1, true);
    Result none = run(g, 0, true);
    EXPECT_EQ(none.outputs, all.outputs);
    EXPECT_EQ(none.uploads, 5);
}

TEST_F(Streaming, BehindSizesThatDependOnData) {
    Graph g = products(true);
    EXPECT_EQ(run(g, 0).outputs, run(g, -1).outputs);
    EXPECT_EQ(run(g, 2 * matrix_bytes).outputs, run(g, -1).outputs);
}

TEST_F(Streaming, SmallConstantsStay) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[8,64]"));
    g.add_output("y", ops::add(g, x, ops::constant(g, numbers({width}, 1))));
    Result r = run(g, 0);
    EXPECT_EQ(r.uploads, 0);
    EXPECT_EQ(r.outputs, run(g, -1).outputs);
}

} // namespace ingot::test
