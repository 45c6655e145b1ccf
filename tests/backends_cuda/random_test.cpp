// SPDX-License-Identifier: Apache-2.0
// Random numbers on a GPU: different in each run, the same sequence in each execution, and without
// re-recording: runs are replayed, repeated by a caller's graphs, and allocate nothing.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/allocation_count.h"
#include "emulator/emulated_gpu.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

constexpr int64_t count = 300;
constexpr int64_t bytes = count * 4;

/// x plus uniform numbers, and normal ones.
Graph noise(int64_t seed = 5) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[300]"));
    Random uniform{"uniform", -1, 2, DType::F32, {Dim(count)}, seed};
    g.add_output("y", ops::add(g, x, g.add1(random_def, uniform, {})));
    Random normal{"normal", 0, 1, DType::F32, {Dim(count)}, 77};
    g.add_output("z", g.add1(random_def, normal, {}));
    return g;
}

enum class Records { Never, SecondRun, FirstRun };

std::unique_ptr<Execution> execution_of(const Backend& backend, Records records,
                                        const Graph& g = noise()) {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().record_graphs = records != Records::Never;
    o.of<CudaOptions>().record_first = records == Records::FirstRun;
    return backend.compile(std::make_shared<const Graph>(g), o)->create_execution();
}

Tensor zeros() {
    return Tensor::zeros(DType::F32, {count});
}

std::vector<Tensor> run(Execution& e) {
    std::vector<Tensor> in = {zeros()};
    std::vector<Tensor> out(2);
    EXPECT_TRUE(e.run(in, out).ok()) << e.error();
    return out;
}

/// The numbers of run `run` of an execution, by the evaluator.
std::vector<Tensor> expected(uint64_t run) {
    uint64_t key = run * 0x9E3779B97F4A7C15U;
    std::vector<Tensor> in = {zeros()};
    std::vector<Tensor> y = evaluate(noise(static_cast<int64_t>(5 + key)), in);
    Graph g;
    Random normal{"normal", 0, 1, DType::F32, {Dim(count)}, static_cast<int64_t>(77 + key)};
    g.add_output("z", g.add1(random_def, normal, {}));
    return {y[0], evaluate(g, {})[0]};
}

void expect_near(const Tensor& a, const Tensor& b) {
    for (int64_t i = 0; i < count; ++i) {
        ASSERT_NEAR(a.get_f64(i), b.get_f64(i), 1e-5) << i;
    }
}

class RandomRuns : public testing::TestWithParam<Records> {
protected:
    emulator::EmulatedGpu gpu{90};
    std::unique_ptr<Backend> backend = cuda::make_backend(gpu);
};

TEST_P(RandomRuns, DifferAndComeInTheSameOrderEverywhere) {
    auto first = execution_of(*backend, GetParam());
    auto second = execution_of(*backend, GetParam());
    auto on_cpu = execution_of(cpu_backend(), Records::Never);
    std::vector<Tensor> before;
    for (uint64_t k = 0; k < 5; ++k) { // plain, recorded, replayed
        SCOPED_TRACE(k);
        std::vector<Tensor> now = run(*first);
        EXPECT_NE(now, before);
        EXPECT_EQ(now[0], expected(k)[0]);
        expect_near(now[1], expected(k)[1]);
        EXPECT_EQ(now, run(*second));
        EXPECT_EQ(now[0], run(*on_cpu)[0]);
        before = now;
    }
}

TEST_P(RandomRuns, ThatDrawNothingDoNotCount) {
    Graph body;
    body.add_output("u",
                    body.add1(random_def, Random{"uniform", 0, 1, DType::F32, {Dim(4)}, 3}, {}));
    Graph other;
    other.add_output("u", ops::constant(other, Tensor::zeros(DType::F32, {4})));
    Graph g;
    Value c = g.add_input("c", parse_type("bool[]"));
    If branches{std::make_shared<const Graph>(std::move(body)),
                std::make_shared<const Graph>(std::move(other)),
                {}};
    g.add_output("y", g.add1(if_def, branches, {c}));
    for (const Backend* b : {static_cast<const Backend*>(backend.get()), &cpu_backend()}) {
        auto e = execution_of(*b, GetParam(), g);
        std::vector<Tensor> drawn;
        for (bool draws : {true, false, false, true, true}) {
            Tensor condition = Tensor::empty(DType::Bool, {});
            condition.set_i64(0, draws);
            std::vector<Tensor> in = {condition};
            std::vector<Tensor> out(1);
            ASSERT_TRUE(e->run(in, out).ok()) << e->error();
            if (draws) {
                drawn.push_back(out[0]);
            } else {
                EXPECT_EQ(out[0].get_f64(0), 0);
            }
        }
        Graph second; // of the runs that draw
        Random r{"uniform",  0,        1,
                 DType::F32, {Dim(4)}, static_cast<int64_t>(3 + 0x9E3779B97F4A7C15U)};
        second.add_output("u", second.add1(random_def, r, {}));
        EXPECT_EQ(drawn[1], evaluate(second, {})[0]);
        EXPECT_NE(drawn[1], drawn[2]);
    }
}

INSTANTIATE_TEST_SUITE_P(Graphs, RandomRuns,
                         testing::Values(Records::Never, Records::SecondRun, Records::FirstRun),
                         [](const auto& i) {
                             return i.param == Records::Never       ? "Plain"
                                    : i.param == Records::SecondRun ? "Recorded"
                                                                    : "RecordedFirst";
                         });

TEST(RandomCaptures, EachLaunchOfTheCallersGraphDrawsAnew) {
    emulator::EmulatedGpu gpu(90);
    std::unique_ptr<Backend> backend = cuda::make_backend(gpu);
    auto e = execution_of(*backend, Records::SecondRun);
    std::byte* x = gpu.allocate(bytes);
    std::byte* y = gpu.allocate(bytes);
    std::byte* z = gpu.allocate(bytes);
    std::fill(x, x + bytes, std::byte{0});
    std::vector<Binding> in = {{x, {count}}};
    std::vector<Binding> out = {{y, {}}, {z, {}}};
    int caller = 0;
    auto uniform = [&] {
        return Tensor::wrap(DType::F32, {count}, {y, static_cast<size_t>(bytes)}, nullptr).clone();
    };
    ASSERT_TRUE(e->enqueue(in, out, &caller, {}).ok()) << e->error();
    EXPECT_EQ(uniform(), expected(0)[0]);
    gpu.begin_capture(&caller);
    ASSERT_TRUE(e->capturable(std::vector<Shape>{{count}}));
    ASSERT_TRUE(e->enqueue(in, out, &caller, {}).ok()) << e->error();
    auto graph = gpu.end_capture();
    for (uint64_t k = 1; k < 4; ++k) {
        graph();
        EXPECT_EQ(uniform(), expected(k)[0]) << k;
    }
    ASSERT_TRUE(e->enqueue(in, out, &caller, {}).ok()) << e->error();
    EXPECT_EQ(uniform(), expected(4)[0]); // numbers drawn by the graph do not repeat
    e.reset();
    for (std::byte* p : {x, y, z}) {
        gpu.release(p);
    }
    EXPECT_EQ(gpu.problems(), "");
}

/// On the driver that counts: kernels do nothing there.
class RandomLaunches : public testing::Test {
protected:
    void start(bool records) {
        execution.reset();
        fake::reset();
        fake::set_current(-1);
        gpu = fake::make_gpu();
        backend = cuda::make_backend(*gpu, 1);
        execution = execution_of(*backend, records ? Records::SecondRun : Records::Never);
        in = {{gpu->allocate(bytes), {count}}};
        out = {{gpu->allocate(bytes), {}}, {gpu->allocate(bytes), {}}};
    }
    void enqueue() {
        ASSERT_TRUE(execution->enqueue(in, out, nullptr, {}).ok()) << execution->error();
    }
    std::unique_ptr<cuda::Gpu> gpu;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Execution> execution;
    std::vector<Binding> in;
    std::vector<Binding> out;
};

TEST_F(RandomLaunches, AreReplayed) {
    start(true);
    enqueue();
    enqueue();
    fake::take_log();
    for (int k = 0; k < 3; ++k) {
        enqueue();
        EXPECT_EQ(fake::take_log(),
                  (std::vector<std::string>{"record", "wait", "launch a graph", "record", "wait"}));
    }
}

TEST_F(RandomLaunches, EmitNothingInLaterRuns) {
    start(false);
    enqueue();
    for (int k = 0; k < 3; ++k) {
        int64_t before = allocation_count();
        ASSERT_TRUE(execution->enqueue(in, out, nullptr, {}).ok());
        EXPECT_EQ(allocation_count(), before);
    }
}

} // namespace
} // namespace ingot::test
