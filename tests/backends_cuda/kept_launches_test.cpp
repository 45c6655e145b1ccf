// SPDX-License-Identifier: Apache-2.0
// Launches that plans of one execution share.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/kept_launches.h"
#include "backends_cuda/timed_gpu.h"
#include "emulator/emulated_gpu.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/random_graph.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot::test {
namespace {

class KeptLaunchesTest : public ::testing::Test {
protected:
    KeptLaunchesTest() {
        Value x = g.add_input("x", parse_type("f16[8,64]"));
        Value y = g.add_input("y", parse_type("f16[64,8]"));
        g.add_output("z", ops::matmul(g, x, y));
        known->tactics.resize(2);
    }

    cuda::KeptLaunches::Key key(int buffer, int64_t offset, const std::byte* constant = nullptr,
                                bool backwards = false, size_t tactic = 0, int variant = 0) {
        plan::Operand o{DType::F16, buffer, plan::dense({8, 64})};
        o.view.offset = offset;
        Symbols symbols;
        plan::Group group = plan::group_of(g, g.nodes().back());
        std::vector<plan::Operand> in{o, o};
        std::vector<const std::byte*> constants{nullptr, constant};
        kernels::Problem p{group, symbols, in, {&o, 1}, constants, gpu.arch()};
        p.backwards = backwards;
        return {g.nodes().back(), known, tactic, variant, p};
    }
    std::shared_ptr<cuda::MadeLaunches> find(const cuda::KeptLaunches::Key& k) {
        return kept.find(
            k, [] { return std::make_shared<cuda::MadeLaunches>(kernels::Emitted(), "t", false); });
    }

    Graph g;
    TimedGpu gpu;
    std::shared_ptr<cuda::KnownProblem> known = std::make_shared<cuda::KnownProblem>();
    cuda::KeptLaunches kept;
};

TEST_F(KeptLaunchesTest, EqualPlacesAndChoicesShareThem) {
    kept.begin_plan();
    auto first = find(key(3, 64));
    EXPECT_EQ(find(key(3, 64)), first);
    std::byte weights{};
    EXPECT_NE(find(key(4, 64)), first);
    EXPECT_NE(find(key(3, 128)), first);
    EXPECT_NE(find(key(3, 64, &weights)), first);
    EXPECT_NE(find(key(3, 64, nullptr, true)), first);
    EXPECT_NE(find(key(3, 64, nullptr, false, 1)), first);
    EXPECT_NE(find(key(3, 64, nullptr, false, 0, 1)), first);
    auto other = known;
    known = std::make_shared<cuda::KnownProblem>();
    EXPECT_NE(find(key(3, 64)), first) << "a problem of other shapes";
    known = other;
    EXPECT_EQ(find(key(3, 64)), first);
}

TEST_F(KeptLaunchesTest, LaunchesThatNoPlanAsksForAreDropped) {
    std::weak_ptr<cuda::MadeLaunches> first;
    std::weak_ptr<cuda::MadeLaunches> used;
    for (int plan = 0; plan < 20; ++plan) {
        kept.begin_plan();
        auto one = find(key(1, 0));
        EXPECT_TRUE(plan == 0 || one == used.lock());
        used = one;
        if (plan == 0) {
            first = find(key(2, 0));
        }
        kept.end_plan();
        EXPECT_EQ(first.expired(), plan >= 8) << plan;
    }
}

/// Rows of x that grow, as a decoder's caches do, beside rows that do not: a product, a rotation
/// and sums that may join, one of them after a reduction.
Graph grows() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,32]"));
    Value q = g.add_input("q", parse_type("f32[3,32]"));
    Value w = g.add_input("w", parse_type("f32[32,32]"));
    Value a = ops::matmul(g, q, w);
    Value b = ops::matmul(g, a, ops::permute(g, x, {1, 0}));
    g.add_output("scores", ops::softmax(g, b, 1));
    g.add_output("all", ops::matmul(g, ops::softmax(g, b, 1), x));
    g.add_output("turned", ops::exp(g, ops::permute(g, q, {1, 0})));
    g.add_output("sum", ops::add(g, a, q));
    g.add_output("moved", ops::reverse(g, ops::exp(g, x), 0));
    return g;
}

/// Runs shapes one after another in one execution, most of them planned again, and each in an
/// execution of its own.
void expect_bits_of_their_own(emulator::EmulatedGpu& gpu, const std::shared_ptr<const Graph>& graph,
                              const std::vector<std::vector<Tensor>>& runs) {
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions options;
    options.of<CudaOptions>().runtime_cache = "";
    options.cached_plans = 2;
    options.poison = true;
    auto executable = backend->compile(graph, options);
    auto execution = executable->create_execution();
    for (size_t n = 0; n < runs.size(); ++n) {
        const std::vector<Tensor>& in = runs[n];
        auto run = [&](Execution& e) {
            std::vector<Tensor> out(graph->outputs().size());
            Status s = e.run(in, out);
            EXPECT_TRUE(s.ok()) << "run " << n << ": " << e.error();
            return out;
        };
        std::vector<Tensor> got = run(*execution);
        std::vector<Tensor> want = run(*executable->create_execution());
        for (size_t i = 0; i < want.size(); ++i) {
            EXPECT_EQ(got[i], want[i]) << "run " << n << ", output " << i;
        }
        if (::testing::Test::HasFailure()) {
            return;
        }
    }
}

std::vector<Tensor> inputs_of(int64_t rows) {
    std::mt19937 random(static_cast<uint32_t>(rows));
    std::vector<Tensor> in;
    for (const Shape& s : {Shape{rows, 32}, Shape{3, 32}, Shape{32, 32}}) {
        Tensor t = Tensor::empty(DType::F32, s);
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, static_cast<double>(random() % 2000) / 1000 - 1);
        }
        in.push_back(std::move(t));
    }
    return in;
}

TEST(KeptLaunchesOfPlans, EachShapeGivesTheBitsOfAContextOfItsOwn) {
    emulator::EmulatedGpu gpu(90);
    std::vector<std::vector<Tensor>> runs;
    for (int64_t rows : {5, 6, 7, 5, 6, 40, 5, 7, 41, 6}) {
        runs.push_back(inputs_of(rows));
    }
    expect_bits_of_their_own(gpu, std::make_shared<const Graph>(grows()), runs);
    EXPECT_EQ(gpu.problems(), "");
}

TEST(KeptLaunchesOfPlans, OfRandomGraphsToo) {
    emulator::EmulatedGpu gpu(90);
    for (uint64_t seed = 0; seed < 25; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        auto graph = std::make_shared<const Graph>(random_graph(seed + 7100));
        std::vector<std::vector<Tensor>> runs;
        for (int64_t n : {3, 1, 4, 3, 5, 4}) {
            runs.push_back(random_inputs(*graph, seed, n));
        }
        expect_bits_of_their_own(gpu, graph, runs);
        ASSERT_FALSE(HasFailure()) << print(*graph);
    }
    EXPECT_EQ(gpu.problems(), "");
}

} // namespace
} // namespace ingot::test
