// SPDX-License-Identifier: Apache-2.0
// Whole engines on a GPU: bit-equality, no recompilation, exhausted memory, and the sum of the
// layers' profile.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/hash.h"
#include "gpu/engines.h"
#include "workflow/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

namespace ingot::test {
namespace {

std::vector<Tensor> inputs_at(const Engine& e, int which, uint64_t seed) {
    return random_inputs(e, input_shapes(e, profile_symbols(e, which)), seed);
}

class EveryEngine : public testing::TestWithParam<size_t> {
protected:
    const Engine& engine() const { return *engine_at(GetParam()); }
    const std::shared_ptr<const Engine>& shared() const { return engine_at(GetParam()); }
    const std::string& name() const { return engine_names()[GetParam()]; }
};

CompileOptions plain_options() {
    CompileOptions o = gpu_options();
    o.of<CudaOptions>().record_graphs = false;
    return o;
}

// A run is recorded once and then replayed; other inputs and, in between, another shape must not
// affect results.
TEST_P(EveryEngine, ReplaysGiveTheBitsOfLaunches) {
    size_t sets = 16;
    Context plain(shared(), gpu_backend(), plain_options());
    Context recorded(shared(), gpu_backend(), gpu_options());
    std::vector<std::vector<Tensor>> inputs;
    std::vector<std::vector<Tensor>> expected;
    size_t bytes = 0;
    for (size_t i = 0; i < sets; ++i) {
        inputs.push_back(inputs_at(engine(), 1, i + 1));
        expected.push_back(plain.run(inputs[i]));
        ASSERT_EQ(bits_differ(plain.run(inputs[i]), expected[i]), "") << "two plain runs";
        for (const Tensor& t : expected[i]) {
            bytes += t.bytes().size();
        }
        constexpr size_t most_bytes = size_t{512} << 20;
        if (bytes / (i + 1) * (i + 2) > most_bytes) {
            sets = i + 1;
        }
    }
    EXPECT_TRUE(sets == 1 || !bits_differ(expected[0], expected[1]).empty())
        << "the outputs do not depend on the inputs";
    std::vector<Tensor> small = inputs_at(engine(), 0, 99);
    std::vector<Tensor> expected_small = plain.run(small);
    std::mt19937 random(7);
    int64_t replays = setting("INGOT_REPLAYS", on_device() ? 1000 : 8);
    int64_t different = 0;
    std::vector<Tensor> outputs;
    for (int64_t i = 0; i < replays; ++i) {
        size_t k = random() % sets;
        outputs = recorded.run(inputs[k], outputs);
        different += bits_differ(outputs, expected[k]).empty() ? 0 : 1;
        if (i % 250 == 100) {
            EXPECT_EQ(bits_differ(recorded.run(small), expected_small), "") << "replay " << i;
        }
    }
    EXPECT_EQ(different, 0) << "of " << replays << " replays";
    report("replay." + name(), str("replays=", replays, " sets=", sets, " different=", different));
}

// Without variants for the very shapes, a hundred shapes of the profile need no kernel that the
// first run did not need.
TEST_P(EveryEngine, ShapesOfAProfileCompileNothing) {
    Bounds bounds = input_bounds(engine());
    bool dynamic = std::any_of(bounds.begin(), bounds.end(),
                               [](const auto& b) { return b.second.low < b.second.high; });
    if (!dynamic) {
        GTEST_SKIP() << name() << " has one shape";
    }
    CompileOptions options = gpu_options();
    options.of<CudaOptions>().specialise = Specialise::None;
    Context context(shared(), gpu_backend(), options);
    context.run(inputs_at(engine(), 1, 1));
    cuda::ProgramCounts first = cuda::count_programs(gpu_backend());
    std::mt19937 random(11);
    int64_t shapes = setting("INGOT_SHAPES_COUNT", on_device() ? 100 : 3);
    for (int64_t i = 0; i < shapes; ++i) {
        Symbols symbols;
        for (const auto& [name, range] : bounds) {
            symbols[name] = std::uniform_int_distribution<int64_t>(range.low, range.high)(random);
        }
        context.run(
            random_inputs(engine(), input_shapes(engine(), symbols), static_cast<uint64_t>(i)));
    }
    cuda::ProgramCounts last = cuda::count_programs(gpu_backend());
    EXPECT_EQ(last.requested, first.requested) << "programs that later shapes asked for are new";
    report("shapes." + name(), str("shapes=", shapes, " programs=", first.requested,
                                   " new=", last.requested - first.requested));
}

// Two contexts that share a lowering, and one of its own, each in a thread.
TEST_P(EveryEngine, ThreadsGiveTheBitsOfOneThread) {
    Context first(shared(), gpu_backend(), gpu_options());
    std::unique_ptr<Context> second = first.sibling();
    Context third(shared(), gpu_backend(), gpu_options());
    std::vector<Context*> contexts = {&first, second.get(), &third};
    std::vector<std::vector<Tensor>> inputs;
    std::vector<std::vector<Tensor>> expected;
    Context serial(shared(), gpu_backend(), gpu_options());
    for (size_t i = 0; i < contexts.size(); ++i) {
        inputs.push_back(inputs_at(engine(), 1, 20 + i));
        expected.push_back(serial.run(inputs[i]));
    }
    int64_t runs = on_device() ? 50 : 3;
    std::vector<int64_t> different(contexts.size(), 0);
    std::vector<std::string> errors(contexts.size());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < contexts.size(); ++t) {
        threads.emplace_back([&, t] {
            try {
                for (int64_t i = 0; i < runs; ++i) {
                    auto k = (t + static_cast<size_t>(i)) % inputs.size();
                    different[t] +=
                        bits_differ(contexts[t]->run(inputs[k]), expected[k]).empty() ? 0 : 1;
                }
            } catch (const std::exception& e) {
                errors[t] = e.what();
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    for (size_t t = 0; t < contexts.size(); ++t) {
        EXPECT_EQ(errors[t], "") << "thread " << t;
        EXPECT_EQ(different[t], 0) << "runs of thread " << t;
    }
    report("threads." + name(), str("threads=", contexts.size(), " runs=", runs));
}

// For two processes that start on one empty cache: the bits of one run, and the number of
// compilations.
TEST_P(EveryEngine, RunsOnce) {
    std::vector<Tensor> out =
        Context(shared(), gpu_backend(), gpu_options()).run(inputs_at(engine(), 1, 5));
    HashStream hash(false);
    for (const Tensor& t : out) {
        hash.add(t.bytes());
    }
    cuda::ProgramCounts n = cuda::count_programs(gpu_backend());
    report("once." + name(),
           str("bits=", to_text(hash.xxh3()), " programs=", n.requested, " compiled=", n.compiled));
}

// Kernels for older GPUs and for less shared memory compute the same.
TEST_P(EveryEngine, OtherTacticsAgree) {
    std::vector<Tensor> in = inputs_at(engine(), 1, 3);
    CompileOptions options = gpu_options();
    options.of<CudaOptions>().tf32 = false;
    std::vector<Tensor> own = Context(shared(), gpu_backend(), options).run(in);
    constexpr double most = 1e-2; // of the range, in 16 bits
    std::string errors;
    for (auto [arch, shared_memory] : {std::pair(80, 0), std::pair(0, 99 << 10)}) {
        options.of<CudaOptions>().arch = arch;
        options.of<CudaOptions>().shared_memory = shared_memory;
        std::vector<Tensor> got = Context(shared(), gpu_backend(), options).run(in);
        double error = range_error(got, own);
        EXPECT_LE(error, most) << "architecture " << arch << ", shared memory " << shared_memory;
        errors += str(errors.empty() ? "arch80=" : " shared99k=", error);
    }
    report("other_tactics." + name(), errors);
}

TEST_P(EveryEngine, LayersAddUpToTheRun) {
    Context context(shared(), gpu_backend(), gpu_options());
    LayerProfile p = profile_layers(context, inputs_at(engine(), 1, 2), on_device() ? 20 : 2);
    double sum = 0;
    for (const LayerTime& l : p.layers) {
        EXPECT_GE(l.total_ms, 0) << l.name;
        sum += l.average_ms;
    }
    EXPECT_NEAR(sum, p.serial_ms, 0.02 * p.serial_ms);
    if (on_device()) {
        // A plain run overlaps kernels and pays for no marks: shorter, but not by magnitudes.
        EXPECT_LE(p.plain_ms, 1.2 * p.serial_ms + 0.02);
        EXPECT_GE(p.plain_ms, 0.2 * p.serial_ms);
    }
    report("profile." + name(), str("layers=", p.layers.size(), " sum_ms=", sum,
                                    " serial_ms=", p.serial_ms, " run_ms=", p.plain_ms));
}

// A too low limit names the required memory; the same context continues with fitting shapes.
TEST_P(EveryEngine, MemoryThatRunsOutIsNamed) {
    std::vector<Tensor> in = inputs_at(engine(), 2, 4);
    std::vector<Tensor> small = inputs_at(engine(), 0, 4);
    auto bytes_of = [](const std::vector<Tensor>& list) {
        size_t n = 0;
        for (const Tensor& t : list) {
            n += t.bytes().size();
        }
        return static_cast<int64_t>(n);
    };
    CompileOptions options = gpu_options();
    std::vector<Tensor> expected;
    int64_t taken = 0; // by the smallest run
    {
        Context free(shared(), gpu_backend(), options);
        expected = free.run(small);
        int64_t weights = static_cast<int64_t>(free.executable().packed_bytes());
        int64_t activations = free.execution().memory_use().activations;
        taken = weights + activations + bytes_of(small) + bytes_of(expected);
        constexpr int64_t slack = int64_t{66} << 20; // a piece of weights, error words
        options.of<CudaOptions>().memory_limit =
            weights + activations + bytes_of(small) + bytes_of(expected) + slack;
    }
    Context limited(shared(), gpu_backend(), options);
    std::string error;
    try {
        limited.run(in);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory) << e.what();
        error = e.what();
    }
    if (!error.empty()) {
        EXPECT_NE(error.find("are needed"), std::string::npos) << error;
        EXPECT_NE(error.find("can be had"), std::string::npos) << error;
    }
    EXPECT_EQ(bits_differ(limited.run(small), expected), "");
    // Half of the smallest run's memory is refused, for every model.
    options.of<CudaOptions>().memory_limit = std::max<int64_t>(taken / 2, 1);
    try {
        Context(shared(), gpu_backend(), options).run(small);
        ADD_FAILURE() << "a run of " << taken << " bytes within "
                      << options.of<CudaOptions>().memory_limit;
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory) << e.what();
        EXPECT_NE(std::string(e.what()).find("are needed"), std::string::npos) << e.what();
    }
    report("memory." + name(),
           str("limit=", options.of<CudaOptions>().memory_limit, " refused=", !error.empty()));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryEngine, testing::Range(size_t{0}, engine_names().size()),
                         [](const auto& p) {
                             std::string name = engine_names()[p.param];
                             std::replace_if(
                                 name.begin(), name.end(),
                                 [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

} // namespace
} // namespace ingot::test
