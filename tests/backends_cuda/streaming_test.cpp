// SPDX-License-Identifier: Apache-2.0
// Weight streaming: constants beyond a budget stay on the host and are copied before each step
// that reads them; results are the same bits under every budget.
#include "backends/cuda/backend.h"
#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "engine/engine.h"
#include "ops/ops.h"
#include "ops/primitives.h"

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

struct Result {
    std::vector<Tensor> outputs;
    size_t resident = 0;
    int64_t streamed = 0;
    int64_t activations = 0;
    int64_t uploads = 0;
};

class Streaming : public ::testing::Test {
protected:
    Result run(const Graph& g, int64_t budget, bool record = false) {
        CompileOptions o;
        o.runtime_cache = "";
        o.weight_budget = budget;
        o.record_graphs = record;
        o.poison = true;
        Context context(Engine::create(g, {}, {}), *backend, o);
        std::vector<Tensor> in = {numbers({8, width}, 7)};
        Result r;
        for (int i = 0; i < 4; ++i) { // plain, recorded, repeated
            r.outputs = context.run(in);
        }
        r.resident = context.executable().packed_bytes();
        r.streamed = context.execution().streamed_bytes();
        std::vector<StepInfo> steps = context.execution().steps();
        r.uploads = std::count_if(steps.begin(), steps.end(),
                                  [](const StepInfo& s) { return s.kernel == "weights"; });
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
