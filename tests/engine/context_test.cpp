// SPDX-License-Identifier: Apache-2.0
// Contexts and threads: an engine serves many at once, a context one at a time. `cmake --preset
// tsan` makes a build that shows races.
#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "base/error.h"
#include "engine/engine.h"
#include "error_of.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <thread>

namespace ingot {
namespace {

using test::error_of;

Tensor pattern(Shape shape, double step) {
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, std::sin(step * static_cast<double>(i + 1)));
    }
    return t;
}

// Convolution, products, norms, shapes that depend on the batch: kernels that pack, share the pool
// and plan for each shape.
Graph network() {
    Graph g("network");
    Value x = g.add_input("x", parse_type("f32[batch,3,32,32]"));
    ops::Conv a;
    a.strides = {1, 1};
    a.low = {1, 1};
    a.high = {1, 1};
    a.dilations = {1, 1};
    Value y = ops::conv(g, a, x, ops::constant(g, pattern({16, 3, 3, 3}, 0.7)));
    y = ops::maximum(g, y, 0.0);
    y = ops::reshape(g, y, {g.type(x).dims[0], Dim(16384)});
    y = ops::matmul(g, y, ops::constant(g, pattern({16384, 32}, 0.3)));
    y = ops::mul(g, y, 1.0 / 128);
    y = ops::softmax(g, y, 1);
    Value sum = ops::reduce(g, "sum", y, {0});
    g.add_output("y", ops::add(g, y, sum));
    return g;
}

// A library that the sanitizer cannot see into raises false alarms.
#if defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

// More threads than the machine may have; contexts share them.
CompileOptions options(bool library) {
    static ThreadPool pool(3);
    CompileOptions o;
    o.pool = &pool;
    o.of<CpuOptions>().use_library = library;
    return o;
}

class Contexts : public testing::TestWithParam<bool> {
protected:
    CompileOptions options_ = options(GetParam());
};

struct Sample {
    std::vector<Tensor> inputs;
    std::vector<Tensor> expected;
};

std::vector<Sample> samples(const Graph& g) {
    std::vector<Sample> out;
    for (int64_t batch : {1, 5, 2, 3}) {
        Tensor x = pattern({batch, 3, 32, 32}, 0.1 * static_cast<double>(batch));
        out.push_back({{x}, evaluate(g, std::vector<Tensor>{x})});
    }
    return out;
}

// Whether results are the expected ones; threads report once, at the end.
bool agrees(Context& context, const Sample& s) {
    std::vector<Tensor> got = context.run(s.inputs);
    if (got.size() != 1 || got[0].shape() != s.expected[0].shape()) {
        return false;
    }
    for (int64_t i = 0; i < got[0].count(); ++i) {
        if (!(std::abs(got[0].get_f64(i) - s.expected[0].get_f64(i)) <= 1e-5)) {
            return false;
        }
    }
    return true;
}

constexpr int thread_count = 4;

template <class Work>
void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
        threads.emplace_back([&work, i] { work(i); });
    }
    for (std::thread& t : threads) {
        t.join();
    }
}

TEST_P(Contexts, ManyShareOneLoweringAcrossThreads) {
    auto engine = Engine::create(network(), {}, {});
    std::vector<Sample> data = samples(engine->graph());
    Context first(engine, cpu_backend(), options_);
    std::array<int, thread_count> good{};
    in_threads([&](int id) {
        std::unique_ptr<Context> sibling = first.sibling();
        Context& mine = *sibling;
        for (int run = 0; run < 12; ++run) {
            auto i = static_cast<size_t>(id);
            good[i] += agrees(mine, data[static_cast<size_t>(id + run) % data.size()]) ? 1 : 0;
        }
    });
    for (int count : good) {
        EXPECT_EQ(count, 12);
    }
}

TEST_P(Contexts, ThreadsMayLowerOneEngineAtOnce) {
    auto engine = Engine::create(network(), {}, {});
    std::vector<Sample> data = samples(engine->graph());
    std::array<bool, thread_count> good{};
    in_threads([&](int id) {
        Context mine(engine, cpu_backend(), options_);
        auto i = static_cast<size_t>(id);
        good[i] = agrees(mine, data[i % data.size()]);
    });
    for (bool g : good) {
        EXPECT_TRUE(g);
    }
}

// Contexts may outlive the ones that they were copied from, and every other owner of the engine.
TEST_P(Contexts, KeepsAllThatItNeeds) {
    auto engine = Engine::create(network(), {}, {});
    Sample sample = samples(engine->graph())[1];
    auto first = std::make_unique<Context>(std::move(engine), cpu_backend(), options_);
    std::unique_ptr<Context> sibling = first->sibling();
    Context& second = *sibling;
    first.reset();
    EXPECT_TRUE(agrees(second, sample));
}

// While a step of a run is being timed, the run continues: calls from outside arrive in between.
struct Intruder : StepTimer {
    explicit Intruder(std::function<void()> f) : call(std::move(f)) {}
    void step(const StepInfo&, double) noexcept override {
        if (calls++ == 0) {
            std::thread([this] { call(); }).join();
        }
    }
    std::function<void()> call;
    int calls = 0;
};

TEST_P(Contexts, ASecondThreadIsRefused) {
    auto engine = Engine::create(network(), {}, {});
    Sample sample = samples(engine->graph())[0];
    Context context(engine, cpu_backend(), options_);
    std::vector<std::string> errors;
    Intruder intruder([&] {
        errors.push_back(error_of([&] { context.run(sample.inputs); }));
        errors.push_back(error_of([&] { context.prepare(std::array{Shape{2, 3, 32, 32}}); }));
    });
    context.execution().change([&](RunSettings& changed) { changed.timer = &intruder; });
    EXPECT_TRUE(agrees(context, sample));
    ASSERT_EQ(errors.size(), 2U);
    for (const std::string& e : errors) {
        EXPECT_EQ(e, "this context is in use by another thread; give each thread a context of its "
                     "own");
    }
    context.execution().change([&](RunSettings& changed) { changed.timer = nullptr; });
    EXPECT_TRUE(agrees(context, sample)) << "the refused calls left the context as it was";
}

// The first thread runs, the other is refused; results stay right.
TEST_P(Contexts, ThreadsThatFightForOneAreNeverWrong) {
    auto engine = Engine::create(network(), {}, {});
    std::vector<Sample> data = samples(engine->graph());
    Context context(engine, cpu_backend(), options_);
    std::atomic<int> right = 0;
    std::atomic<int> wrong = 0;
    std::atomic<int> refused = 0;
    in_threads([&](int id) {
        for (int run = 0; run < 25; ++run) {
            try {
                bool same = agrees(context, data[static_cast<size_t>(id)]);
                ++(same ? right : wrong);
            } catch (const Error& e) {
                refused += e.code() == ErrorCode::InvalidArgument ? 1 : 0;
            }
        }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(right, 0);
    EXPECT_EQ(right + refused, thread_count * 25);
}

INSTANTIATE_TEST_SUITE_P(Loops, Contexts,
                         testing::ValuesIn(sanitized ? std::vector{false}
                                                     : std::vector{false, true}),
                         [](const auto& p) { return p.param ? "library" : "own"; });

} // namespace
} // namespace ingot
