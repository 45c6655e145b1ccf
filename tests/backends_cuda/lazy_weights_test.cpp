// SPDX-License-Identifier: Apache-2.0
// Constants whose bytes are made when the device takes them: lowering and planning need none.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device_weights.h"
#include "backends/device_memory.h"
#include "backends_cuda/fake_driver.h"
#include "backends_cuda/slow_gpu.h"
#include "ir/lazy_bytes.h"
#include "ir/rewrite.h"
#include "ops/ops.h"
#include "plan/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>

namespace ingot::test {
namespace {

using plan::StoredConstant;

Tensor small_numbers(DType type, const Shape& shape, int seed) {
    Tensor t = Tensor::empty(type, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>((i * 37 + seed) % 251 - 125) / 1024);
    }
    return t;
}

/// Query, key and value of rows, normalised first where `norm`.
Graph three_products(DType type, bool norm) {
    Graph g;
    Value x = g.add_input("x", {type, {64, 256}});
    if (norm) {
        ops::LayerNorm a;
        a.axis = 1;
        x = ops::layer_norm(g, a, x, ops::constant(g, small_numbers(type, {256}, 1)),
                            ops::constant(g, small_numbers(type, {256}, 2)));
    }
    for (int i = 0; i < 3; ++i) {
        Value w = ops::constant(g, small_numbers(type, {256, 512}, 3 + i));
        Value b = ops::constant(g, small_numbers(type, {512}, 6 + i));
        g.add_output(str("y", i), ops::add(g, ops::matmul(g, x, w), b));
    }
    return g;
}

std::vector<Tensor> lazy_constants(const Graph& g) {
    std::vector<Tensor> all;
    visit_nodes(g, [&](const Graph&, const Node& n) {
        if (n.is(constant_def) && n.as<Constant>().value.is_lazy()) {
            all.push_back(n.as<Constant>().value);
        }
    });
    return all;
}

int64_t made(const std::vector<Tensor>& all) {
    return std::count_if(all.begin(), all.end(), [](const Tensor& t) { return t.is_made(); });
}

CompileOptions plain() {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    return o;
}

struct Case {
    DType type;
    bool norm;
};

class LazyWeights : public testing::TestWithParam<Case> {};

TEST_P(LazyWeights, LoweringAndPlanningMakeNone) {
    SlowGpu gpu;
    auto backend = cuda::make_backend(gpu, 1);
    CompileOptions o = plain();
    o.of<CudaOptions>().memory_limit = 1 << 30; // nothing is copied before a plan explains it
    auto graph = std::make_shared<const Graph>(three_products(GetParam().type, GetParam().norm));
    auto executable = backend->compile(graph, o);
    std::vector<Tensor> lazy = lazy_constants(executable->lowered());
    ASSERT_EQ(lazy.size(), 2U) << "weights and biases";
    std::vector<Shape> shapes = {{64, 256}};
    EXPECT_GT(executable->create_execution()->activation_bytes(shapes), 0);
    EXPECT_EQ(made(lazy), 0);
    EXPECT_EQ(gpu.written(), 0);
}

/// Each constant that a run reads is on the device as if it had been made at once.
TEST_P(LazyWeights, ArriveAsIfTheyHadBeenMadeAtOnce) {
    fake::reset();
    {
        auto gpu = fake::make_gpu();
        CompileOptions o = plain();
        Graph lowered = lower_ahead(three_products(GetParam().type, GetParam().norm), 90, o);
        cuda::Memory memory(*gpu, 0);
        cuda::Weights weights(*gpu, memory);
        cuda::StreamedWeights streamed(*gpu, 1 << 20);
        std::unique_ptr<cuda::Stream> stream = gpu->create_stream();
        for (const Tensor& t : lazy_constants(lowered)) {
            std::vector<StoredConstant> all = {t};
            if (t.rank() == 2) {
                all.emplace_back(t, plan::Operand{t.dtype(), 0, plan::dense(t.shape())},
                                 plan::Order{1, 0});
            }
            weights.start(all);
            std::vector<const std::byte*> there;
            for (const StoredConstant& c : all) {
                there.push_back(weights.find(c, *stream));
                there.push_back(streamed.find(c));
            }
            EXPECT_EQ(t.unjoined() == nullptr, t.is_made()) << "a joined copy on the host";
            for (size_t i = 0; i < there.size(); ++i) {
                const StoredConstant& c = all[i / 2];
                plan::PackCache packs;
                Tensor want = c.is_gathered() ? plan::packed_constant(packs, c.view(),
                                                                      t.bytes().data(), c.order())
                                              : t;
                EXPECT_EQ(std::memcmp(there[i], want.bytes().data(), c.size()), 0) << str(t.type());
            }
        }
    }
    EXPECT_EQ(fake::alive(), "");
}

INSTANTIATE_TEST_SUITE_P(All, LazyWeights,
                         testing::Values(Case{DType::F16, true}, Case{DType::F16, false},
                                         Case{DType::F32, false}),
                         [](const auto& c) {
                             return str(c.param.type, c.param.norm ? "Normed" : "");
                         });

/// A door that somebody opens.
class Door {
public:
    void open() {
        std::scoped_lock lock(mutex_);
        is_open_ = true;
        opened_.notify_all();
    }
    bool wait() {
        std::unique_lock lock(mutex_);
        return opened_.wait_for(lock, std::chrono::minutes(1), [this] { return is_open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool is_open_ = false;
};

/// The function of a constant waits for the compiler: a compiler that waits for the constant never
/// begins.
TEST(LazyWeights, KernelsAreCompiledMeanwhile) {
    SlowGpu gpu;
    Door compiled;
    std::atomic<bool> is_early{false};
    gpu.compile_ms = [&compiled](const std::string&) {
        compiled.open();
        return 0.0;
    };
    auto backend = cuda::make_backend(gpu, 1);
    Graph g;
    Value x = g.add_input("x", {DType::F16, {8, 4096}});
    Tensor w = Tensor::lazy(DType::F16, {4096, 2304}, [&](ThreadPool&) {
        is_early = is_early || !compiled.wait();
        return Tensor::zeros(DType::F16, {4096, 2304});
    });
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    auto executable = backend->compile(std::make_shared<const Graph>(std::move(g)), plain());
    std::vector<Tensor> in = {Tensor::zeros(DType::F16, {8, 4096})};
    std::vector<Tensor> out(1);
    EXPECT_TRUE(executable->create_execution()->run(in, out).ok());
    EXPECT_FALSE(is_early);
    EXPECT_GE(gpu.written(), 4096 * 2304 * 2);
}

/// Constants of several pieces are made beside each other: the function of each waits for the
/// other's.
TEST(LazyWeights, ThreadsMakeThemBesideEachOther) {
    if (std::thread::hardware_concurrency() < 2) {
        GTEST_SKIP() << "one CPU has one thread for copies";
    }
    SlowGpu gpu;
    cuda::Memory memory(gpu, 0);
    cuda::Weights weights(gpu, memory);
    std::unique_ptr<cuda::Stream> stream = gpu.create_stream();
    Door begun[2];
    std::atomic<int> alone{0};
    std::vector<StoredConstant> all;
    constexpr int64_t bytes = 17 << 20;
    for (int i : {0, 1}) {
        all.emplace_back(Tensor::lazy(DType::U8, {bytes}, [&, i](ThreadPool&) {
            begun[i].open();
            alone += begun[1 - i].wait() ? 0 : 1;
            return random_bytes(bytes, static_cast<uint64_t>(i));
        }));
    }
    weights.start(all);
    for (int i : {0, 1}) {
        const std::byte* there = weights.find(all[static_cast<size_t>(i)], *stream);
        Tensor want = random_bytes(bytes, static_cast<uint64_t>(i));
        EXPECT_EQ(std::memcmp(there, want.bytes().data(), want.byte_count()), 0);
    }
    EXPECT_EQ(alone, 0);
}

/// One that cannot be made fails the run that needs it; the next one asks again.
TEST(LazyWeights, AFailureIsThatOfTheRun) {
    SlowGpu gpu;
    auto backend = cuda::make_backend(gpu, 1);
    std::atomic<bool> fails{true};
    Graph g;
    Value x = g.add_input("x", {DType::F16, {8, 4096}});
    Tensor w = Tensor::lazy(DType::F16, {4096, 2304}, [&](ThreadPool&) {
        require(!fails, ErrorCode::OutOfMemory, "no memory for a constant");
        return Tensor::zeros(DType::F16, {4096, 2304});
    });
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    auto executable = backend->compile(std::make_shared<const Graph>(std::move(g)), plain());
    auto execution = executable->create_execution();
    std::vector<Tensor> in = {Tensor::zeros(DType::F16, {8, 4096})};
    std::vector<Tensor> out(1);
    EXPECT_EQ(execution->run(in, out).code(), ErrorCode::OutOfMemory);
    EXPECT_EQ(execution->error(), "no memory for a constant");
    fails = false;
    EXPECT_TRUE(execution->run(in, out).ok()) << execution->error();
}

} // namespace
} // namespace ingot::test
