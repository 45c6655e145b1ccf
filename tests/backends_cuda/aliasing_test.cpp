// SPDX-License-Identifier: Apache-2.0
// An output may overlap an input: a state that each run updates.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "emulator/emulated_gpu.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Tensor numbers(double first) {
    Tensor t = Tensor::empty(DType::F32, {2, 3});
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, first + static_cast<double>(i));
    }
    return t;
}

/// The new state is old + x; a second result reads the old state afterwards.
Graph stateful() {
    Graph g;
    Value state = g.add_input("state", parse_type("f32[2,3]"));
    Value x = g.add_input("x", parse_type("f32[2,3]"));
    Value next = ops::binary(g, ExprOp::Add, state, x);
    g.add_output("next", next);
    g.add_output("turned", ops::permute(g, state, {1, 0}));
    return g;
}

void check(Execution& e) {
    Tensor state = numbers(0);
    Tensor x = numbers(10);
    for (int run = 0; run < 4; ++run) {
        Tensor before = state.clone();
        std::vector<Tensor> in = {state, x};
        std::vector<Tensor> out = {state, Tensor()};
        ASSERT_TRUE(e.run(in, out).ok()) << e.error();
        for (int64_t i = 0; i < state.count(); ++i) {
            EXPECT_EQ(state.get_f64(i), before.get_f64(i) + x.get_f64(i)) << "run " << run;
            int64_t turned = i % 3 * 2 + i / 3;
            EXPECT_EQ(out[1].get_f64(turned), before.get_f64(i)) << "run " << run;
        }
    }
}

TEST(Aliasing, AStateIsUpdatedInPlaceOnTheCpu) {
    check(*cpu_backend().compile(std::make_shared<const Graph>(stateful()))->create_execution());
}

TEST(Aliasing, AStateIsUpdatedInPlaceOnAGpu) {
    emulator::EmulatedGpu gpu(90);
    auto backend = cuda::make_backend(gpu);
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    check(*backend->compile(std::make_shared<const Graph>(stateful()), o)->create_execution());
}

/// Results in a permuted layout, one of which a map reads last.
Graph outputs_that_are_read() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[1,2,4,4]"));
    ops::Pool pool;
    pool.fn = "max";
    pool.sizes = {2, 2};
    pool.strides = {2, 2};
    pool.dilations = {1, 1};
    pool.low = {1, 1};
    pool.high = {1, 1};
    pool.extra = {0, 0};
    Value most = ops::pool(g, pool, x);
    pool.fn = "average";
    Value mean = ops::pool(g, pool, x);
    g.add_output("most", most);
    g.add_output("mean", mean);
    g.add_output("mixed", ops::add(g, ops::mul(g, most, 0.75), ops::mul(g, mean, 0.25)));
    return g;
}

void expect_outputs_that_are_read(const Backend& backend) {
    Graph g = outputs_that_are_read();
    Tensor x = Tensor::empty(DType::F32, {1, 2, 4, 4});
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_f64(i, 1 + 0.125 * static_cast<double>(i));
    }
    std::vector<Tensor> expected = evaluate(g, std::vector{x});
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    auto e = backend.compile(std::make_shared<const Graph>(g), o)->create_execution();
    std::vector<Tensor> out(3);
    ASSERT_TRUE(e->run(std::vector{x}, out).ok()) << e->error();
    for (size_t k = 0; k < out.size(); ++k) {
        for (int64_t i = 0; i < out[k].count(); ++i) {
            EXPECT_NEAR(out[k].get_f64(i), expected[k].get_f64(i), 1e-6) << k << ' ' << i;
        }
    }
}

TEST(Aliasing, AMapDoesNotWriteOverAnOutput) {
    expect_outputs_that_are_read(cpu_backend());
    emulator::EmulatedGpu gpu(90);
    expect_outputs_that_are_read(*cuda::make_backend(gpu));
}

} // namespace
} // namespace ingot::test
