// SPDX-License-Identifier: Apache-2.0
// Driver failures: each call of a scenario fails in turn. Nothing is lost, later runs work, and a
// dead device is reported at once.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/allocation_count.h"
#include "base/error.h"
#include "counts.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <functional>

namespace ingot::test {
namespace {

/// Rows through a product, an epilogue and a softmax; and the indices of nonzero elements.
Graph small_model(bool dynamic_result) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[batch,64]"));
    Value w = ops::constant(g, Tensor::empty(DType::F32, {64, 32}));
    Value y = ops::unary(g, ExprOp::Abs, ops::matmul(g, x, w));
    g.add_output("y", ops::softmax(g, y, 1));
    if (dynamic_result) {
        g.add_output("places", g.add1(nonzero_def, NonZero{Dim::symbol("?0")}, {x}));
    }
    return g;
}

std::vector<Tensor> batch(int64_t n) {
    Tensor t = Tensor::empty(DType::F32, {n, 64});
    std::fill(t.mutable_bytes().begin(), t.mutable_bytes().end(), std::byte{0});
    return {t};
}

CompileOptions options() {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    return o;
}

struct Outcome {
    Status status;
    std::string error;
};

Outcome run(Execution& e, int64_t rows) {
    std::vector<Tensor> outputs(2);
    Status s = e.run(batch(rows), outputs);
    return {s, s.ok() ? "" : e.error()};
}

/// Plain, recorded and replayed runs, of two shapes; calls `each` with the outcome of each part.
void scenario(cuda::Gpu& gpu, const std::function<void(const Outcome&)>& each) {
    auto backend = cuda::make_backend(gpu, 1);
    std::unique_ptr<Execution> execution;
    while (execution == nullptr) {
        try {
            execution =
                backend->compile(std::make_shared<const Graph>(small_model(true)), options())
                    ->create_execution();
        } catch (const Error& e) {
            each({{e.code(), "create"}, e.what()});
            if (e.code() != ErrorCode::OutOfMemory) {
                return;
            }
        }
    }
    for (int64_t rows : {8, 8, 8, 300, 300, 8, 300}) {
        each(run(*execution, rows));
    }
}

TEST(Failures, OneRefusalLosesNothing) {
    fake::reset();
    auto counting = fake::make_gpu();
    int64_t before = fake::calls();
    scenario(*counting, [](const Outcome& o) { EXPECT_TRUE(o.status.ok()) << o.error; });
    int64_t all = fake::calls() - before;
    counting.reset(); // it keeps page-locked memory
    EXPECT_EQ(fake::alive(), "");
    ASSERT_GT(all, 40);
    int64_t refused = 0;
    for (int64_t n = 1; n <= all; ++n) {
        SCOPED_TRACE(str("call ", n, " of ", all));
        fake::reset();
        auto gpu = fake::make_gpu();
        fake::fail_call(n, cuda::out_of_memory, false);
        int failures = 0;
        scenario(*gpu, [&](const Outcome& o) {
            if (!o.status.ok()) {
                ++failures;
                EXPECT_EQ(o.status.code(), ErrorCode::OutOfMemory) << o.error;
                EXPECT_NE(o.error, "");
            }
        });
        EXPECT_EQ(gpu->error(), nullptr) << "the device counts as lost";
        EXPECT_LE(failures, 1); // none where a plain run stands in for a recorded one
        gpu.reset();
        EXPECT_EQ(fake::alive(), "");
        refused += failures;
    }
    record_injections(all, refused);
}

/// A driver whose n-th call ends the device with that error: the first call says so, later ones say
/// it again without asking the driver.
void expect_dead(int64_t n, cuda::CUresult error) {
    SCOPED_TRACE(str("call ", n, " gives ", static_cast<int>(error)));
    std::string number = str("CUDA_ERROR_FAKE, ", static_cast<int>(error));
    fake::reset();
    auto gpu = fake::make_gpu();
    fake::fail_call(n, error, true);
    std::string first;
    int64_t calls_at_death = 0;
    scenario(*gpu, [&](const Outcome& o) {
        if (o.status.ok()) {
            EXPECT_EQ(first, "") << "a run on a dead device succeeded";
            return;
        }
        EXPECT_EQ(o.status.code(), ErrorCode::Device) << o.error;
        EXPECT_NE(o.error.find("unusable in this process"), std::string::npos) << o.error;
        if (first.empty()) {
            first = o.error;
            calls_at_death = fake::calls();
            return;
        }
        EXPECT_NE(o.error.find("since an earlier failure"), std::string::npos) << o.error;
        EXPECT_NE(o.error.find(number), std::string::npos) << o.error;
        EXPECT_EQ(fake::calls(), calls_at_death) << "the driver was asked again";
    });
    EXPECT_NE(first, "");
    ASSERT_NE(gpu->error(), nullptr);
    EXPECT_NE(std::string(gpu->error()).find(number), std::string::npos);
    // Another executable on the same device gets the same error.
    std::string other;
    scenario(*gpu, [&](const Outcome& o) { other = o.error; });
    EXPECT_NE(other.find("since an earlier failure"), std::string::npos) << other;
}

TEST(Failures, ADeadDeviceSaysSoAtOnce) {
    fake::reset();
    auto counting = fake::make_gpu();
    int64_t before = fake::calls();
    int64_t all = 0; // up to the end of the last run
    scenario(*counting, [&](const Outcome&) { all = fake::calls() - before; });
    int64_t injections = 0;
    // An illegal address, a launch that took too long, an assertion, a misaligned address and an
    // unspecified failure.
    for (int error : {700, 702, 710, 716, 719}) {
        for (int64_t n = 1; n <= all; n += as_many(error == 700 ? 4 : 29, 1)) {
            expect_dead(n, static_cast<cuda::CUresult>(error));
            ++injections;
        }
    }
    record_injections(injections, injections);
}

/// The number behind "NAME = " in a message.
int64_t number_after(const std::string& text, const std::string& name) {
    size_t at = text.find(name + " = ");
    return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + name.size() + 3);
}

std::unique_ptr<Execution> execution_of(const Backend& backend, const CompileOptions& o) {
    return backend.compile(std::make_shared<const Graph>(small_model(false)), o)
        ->create_execution();
}

Outcome run_one(Execution& e, int64_t rows) {
    std::vector<Tensor> outputs(1);
    Status s = e.run(batch(rows), outputs);
    return {s, s.ok() ? "" : e.error()};
}

TEST(Failures, TooLargeAShapeIsToldWhatFits) {
    for (bool by_limit : {false, true}) {
        SCOPED_TRACE(by_limit ? "a limit" : "the device's memory");
        constexpr int64_t memory = 3 << 20;
        fake::reset(by_limit ? int64_t{1} << 30 : memory);
        auto gpu = fake::make_gpu();
        {
            auto backend = cuda::make_backend(*gpu, 1);
            CompileOptions o = options();
            o.of<CudaOptions>().memory_limit = by_limit ? memory : 0;
            auto e = execution_of(*backend, o);
            ASSERT_TRUE(run_one(*e, 16).status.ok()) << e->error();
            Outcome refused = run_one(*e, 100000);
            ASSERT_EQ(refused.status.code(), ErrorCode::OutOfMemory) << refused.error;
            EXPECT_NE(refused.error.find("x[100000,64]"), std::string::npos) << refused.error;
            int64_t fits = number_after(refused.error, "batch");
            ASSERT_GT(fits, 1000) << refused.error;
            EXPECT_TRUE(run_one(*e, fits).status.ok()) << refused.error << "\n" << e->error();
            EXPECT_FALSE(run_one(*e, fits + fits / 8).status.ok()) << refused.error;
            EXPECT_TRUE(run_one(*e, 16).status.ok()) << e->error();
            // The activations fit here and the inputs do not; then neither may be leaked.
            EXPECT_FALSE(run_one(*e, 10000).status.ok());
            EXPECT_TRUE(run_one(*e, 5500).status.ok()) << e->error();
        }
        gpu.reset();
        EXPECT_EQ(fake::alive(), "");
    }
}

TEST(Failures, ALimitHoldsForAllExecutionsTogether) {
    fake::reset();
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    CompileOptions o = options();
    o.of<CudaOptions>().memory_limit = 3 << 20;
    auto executable = backend->compile(std::make_shared<const Graph>(small_model(false)), o);
    auto first = executable->create_execution();
    auto second = executable->create_execution();
    int64_t rows = 5000;
    ASSERT_TRUE(run_one(*first, rows).status.ok()) << first->error();
    EXPECT_EQ(run_one(*second, rows).status.code(), ErrorCode::OutOfMemory);
    first.reset();
    EXPECT_TRUE(run_one(*second, rows).status.ok()) << second->error();
}

TEST(Profile, LayersAreTimedBehindAGateAndAddUp) {
    struct Timer : StepTimer {
        double sum = 0;
        double whole = 0;
        int steps = 0;
        void step(const StepInfo&, double ms) noexcept override {
            sum += ms;
            ++steps;
        }
        void run(double ms) noexcept override { whole += ms; }
    };
    fake::reset();
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    auto e = execution_of(*backend, options());
    ASSERT_TRUE(run_one(*e, 8).status.ok()) << e->error();
    Timer timer;
    e->change([&](RunSettings& changed) { changed.timer = &timer; });
    ASSERT_TRUE(run_one(*e, 8).status.ok()) << e->error();
    e->change([&](RunSettings& changed) { changed.timer = nullptr; });
    EXPECT_GE(timer.steps, 2);
    EXPECT_DOUBLE_EQ(timer.sum, 0.25 * timer.steps); // what the fake's events measure
    EXPECT_DOUBLE_EQ(timer.whole, 0.25);
    EXPECT_LT(fake::waited(), 1) << "the gate was still closed when the host waited";
}

/// Rows of a table by their numbers: a step that can fail at run time.
Graph gathering() {
    Graph g;
    Value i = g.add_input("i", parse_type("i64[n]"));
    Value table = ops::constant(g, Tensor::zeros(DType::F32, {10, 4}));
    g.add_output("y", ops::unary(g, ExprOp::Abs, ops::gather(g, table, i, 0)));
    return g;
}

TEST(Runs, AllocateNothingOnceTheyAreReplayed) {
    for (bool fails : {false, true}) {
        fake::reset();
        auto gpu = fake::make_gpu();
        auto backend = cuda::make_backend(*gpu, 1);
        Graph g = fails ? gathering() : small_model(false);
        auto e = backend->compile(std::make_shared<const Graph>(g), options())->create_execution();
        std::vector<Tensor> in = {fails ? Tensor::zeros(DType::I64, {6}) : batch(6)[0]};
        std::vector<Tensor> out(1);
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(e->run(in, out).ok()) << e->error();
        }
        int64_t before = allocation_count();
        Status s = e->run(in, out);
        EXPECT_EQ(allocation_count(), before) << (fails ? "gather" : "product");
        EXPECT_TRUE(s.ok()) << e->error();
    }
}

// Plans come and go with shapes; their device resources go with them.
TEST(Runs, GoOnThroughThousandsOfShapes) {
    fake::reset();
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    auto e =
        backend->compile(std::make_shared<const Graph>(gathering()), options())->create_execution();
    for (int64_t n = 1; n < 17000; ++n) { // more than there are error words
        const Shape shape{n};
        ASSERT_NO_THROW(e->prepare({&shape, 1})) << n;
    }
}

TEST(Options, KernelsOfAnotherArchitectureAreUsedWhereTheyRun) {
    fake::reset();
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    CompileOptions o = options();
    o.of<CudaOptions>().arch = 100; // asks for what a GPU of 9.0 has
    EXPECT_NO_THROW(execution_of(*backend, o));
    for (auto [arch, shared] : {std::pair(75, 0), std::pair(95, 0), std::pair(0, 1000)}) {
        o.of<CudaOptions>().arch = arch;
        o.of<CudaOptions>().shared_memory = shared;
        EXPECT_THROW(execution_of(*backend, o), Error) << arch << ' ' << shared;
    }
}

} // namespace
} // namespace ingot::test
