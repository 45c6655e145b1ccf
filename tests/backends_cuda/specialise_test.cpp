// SPDX-License-Identifier: Apache-2.0
// Variants of kernels for the shapes that occur: the same bytes, swapped in between runs.
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/jit/specialise.h"
#include "backends/cuda/options.h"
#include "backends_cuda/timed_gpu.h"
#include "emulator/emulated_gpu.h"
#include "kernels/copy/copy.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <random>
#include <regex>
#include <thread>

namespace ingot::test {
namespace {

/// Two steps that divide: a copy in another order, and a map over three axes.
std::shared_ptr<const Graph> moving() {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[N,C,H]"));
    Value b = g.add_input("b", parse_type("f32[C,1]"));
    Value y = ops::exp(g, ops::add(g, a, b));
    g.add_output("y", ops::reverse(g, ops::permute(g, y, {1, 2, 0}), 1));
    return std::make_shared<const Graph>(std::move(g));
}

std::vector<Shape> moving_shapes(int64_t n, int64_t c, int64_t h) {
    return {{n, c, h}, {c, 1}};
}

std::vector<Tensor> random_inputs(const std::vector<Shape>& shapes) {
    std::mt19937 random(7);
    std::vector<Tensor> in;
    for (const Shape& s : shapes) {
        Tensor t = Tensor::empty(DType::F32, s);
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, static_cast<double>(random() % 2000) / 1000 - 1);
        }
        in.push_back(std::move(t));
    }
    return in;
}

Tensor run(Execution& e, const std::vector<Shape>& shapes) {
    std::vector<Tensor> in = random_inputs(shapes);
    std::vector<Tensor> out(1);
    EXPECT_TRUE(e.run(in, out).ok()) << e.error();
    return out[0];
}

CompileOptions options(Specialise s) {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().specialise = s;
    return o;
}

bool is_special(const std::string& text) {
    return text.find("_argument") != std::string::npos;
}

int special_launches(const TimedGpu& gpu) {
    std::vector<TimedGpu::Launch> all = gpu.launches();
    return static_cast<int>(std::count_if(
        all.begin(), all.end(), [](const TimedGpu::Launch& l) { return is_special(l.text); }));
}

TEST(Specialise, WritesIntegerArgumentsAsLiterals) {
    plan::Operand from{DType::F32, 0, {{3, 5, 7}, {1, 3, 15}}};
    plan::Operand to{DType::F32, 1, plan::dense({3, 5, 7})};
    kernels::Emitted e = kernels::emit_copy(from, to, kernels::arch_of(90));
    bool any = false;
    for (const kernels::Launch& l : e.launches) {
        std::optional<std::string> text = cuda::specialised_text(l);
        ASSERT_TRUE(text) << kernels::generated_text(l.program);
        any = true;
        EXPECT_EQ(l.args.offsets().size(), l.program.kernel->parameters.size());
        EXPECT_NE(text->find("const u32 d1 = (u32)0x"), std::string::npos) << *text;
        EXPECT_NE(text->find("u32 d1_argument"), std::string::npos) << *text;
    }
    EXPECT_TRUE(any);
}

TEST(Specialise, LeavesAloneWhatDoesNotDivide) {
    plan::Operand from{DType::F32, 0, plan::dense({1000})};
    plan::Operand to{DType::F32, 1, plan::dense({1000})};
    kernels::Emitted e = kernels::emit_copy(from, to, kernels::arch_of(90));
    ASSERT_FALSE(e.launches.empty());
    for (const kernels::Launch& l : e.launches) {
        EXPECT_FALSE(cuda::specialised_text(l));
    }
}

TEST(Nvrtc, AnArchitectureThatItDoesNotKnowIsNamed) {
    if (cuda::nvrtc_version().empty()) {
        GTEST_SKIP() << "no NVRTC here";
    }
    try {
        cuda::nvrtc_compile("", "sm_999a");
        FAIL() << "was compiled";
    } catch (const Error& e) {
        EXPECT_TRUE(std::regex_match(
            e.what(), std::regex("NVRTC \\d+\\.\\d+ \\(.*libnvrtc.*\\) cannot compile for sm_999a, "
                                 "the newest that it knows is sm_\\d+: install one that knows it "
                                 "\\(12\\.8 for sm_100a and sm_120\\), or name it in INGOT_NVRTC")))
            << e.what();
    }
}

TEST(Specialise, VariantsCompileForEveryArchitecture) {
    if (cuda::nvrtc_version().empty()) {
        GTEST_SKIP() << "no NVRTC here";
    }
    plan::Operand from{DType::F16, 0, {{4, 5, 7}, {1, 4, 20}}};
    plan::Operand to{DType::F16, 1, plan::dense({4, 5, 7})};
    for (const kernels::Arch& arch : kernels::known_archs()) {
        for (const kernels::Launch& l : kernels::emit_copy(from, to, arch).launches) {
            EXPECT_NO_THROW(
                cuda::nvrtc_compile(*cuda::specialised_text(l), std::string(arch.nvrtc)));
        }
    }
}

TEST(Specialise, VariantsGiveTheSameBytes) {
    std::vector<Shape> shapes = moving_shapes(3, 10, 37);
    emulator::EmulatedGpu gpu(90);
    auto backend = cuda::make_backend(gpu, 2);
    auto generic = backend->compile(moving(), options(Specialise::None))->create_execution();
    Tensor expected = run(*generic, shapes);
    auto before = static_cast<int>(cuda::requested_programs(*backend).size());
    auto special = backend->compile(moving(), options(Specialise::Eager))->create_execution();
    for (int i = 0; i < 3; ++i) { // plain, recorded, replayed
        EXPECT_EQ(run(*special, shapes), expected);
    }
    int variants = 0;
    for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
        variants += is_special(text) ? 1 : 0;
    }
    EXPECT_GE(variants, 1);
    EXPECT_EQ(static_cast<int>(cuda::requested_programs(*backend).size()), before + variants);
    EXPECT_EQ(gpu.problems(), "");
}

TEST(Specialise, EagerRunsNothingElse) {
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 2);
    auto e = backend->compile(moving(), options(Specialise::Eager))->create_execution();
    run(*e, moving_shapes(3, 10, 37));
    std::vector<TimedGpu::Launch> first = gpu.launches();
    EXPECT_EQ(special_launches(gpu), static_cast<int>(first.size()));
    run(*e, moving_shapes(3, 10, 38));
    EXPECT_EQ(special_launches(gpu), static_cast<int>(gpu.launches().size()));
    EXPECT_NE(gpu.launches().back().text, first.back().text);
}

TEST(Specialise, ABrokenVariantLeavesTheGenericKernel) {
    TimedGpu gpu;
    gpu.compile_ms = [](const std::string& text) -> double {
        require(!is_special(text), ErrorCode::Internal, "no such literal");
        return 0;
    };
    for (Specialise s : {Specialise::Eager, Specialise::Lazy}) {
        auto backend = cuda::make_backend(gpu, 2);
        auto e = backend->compile(moving(), options(s))->create_execution();
        for (int i = 0; i < 3; ++i) {
            run(*e, moving_shapes(3, 10, 37));
        }
    }
    EXPECT_EQ(special_launches(gpu), 0);
}

/// Lets variants compile when the test says so.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    void pass() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return open; });
    }
    void let() {
        std::scoped_lock lock(mutex);
        open = true;
        changed.notify_all();
    }
};

TEST(Specialise, LazySwapsVariantsInBetweenRuns) {
    Gate gate;
    TimedGpu gpu;
    gpu.compile_ms = [&gate](const std::string& text) -> double {
        if (is_special(text)) {
            gate.pass();
        }
        return 0;
    };
    auto backend = cuda::make_backend(gpu, 2);
    auto e = backend->compile(moving(), options(Specialise::Lazy))->create_execution();
    for (int i = 0; i < 3; ++i) {
        run(*e, moving_shapes(3, 10, 37)); // plain, recorded, replayed: without waiting
    }
    EXPECT_EQ(special_launches(gpu), 0);
    auto steps = static_cast<int>(e->steps().size());
    EXPECT_EQ(static_cast<int>(gpu.launches().size()), 2 * steps) << "the third was a replay";
    gate.let();
    for (int i = 0; i < 2000 && special_launches(gpu) < steps; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        run(*e, moving_shapes(3, 10, 37));
    }
    EXPECT_GE(special_launches(gpu), steps) << "recorded anew with the variants";
    gpu.forget_launches();
    run(*e, moving_shapes(3, 10, 37));
    EXPECT_TRUE(gpu.launches().empty()) << "and replayed";
}

TEST(Specialise, WhatIsStillQueuedIsDroppedAtTheEnd) {
    Gate gate;
    std::atomic<int> special{0};
    TimedGpu gpu;
    gpu.compile_ms = [&](const std::string& text) -> double {
        if (is_special(text)) {
            ++special;
            gate.pass();
        }
        return 0;
    };
    std::thread opener;
    {
        auto backend = cuda::make_backend(gpu, 2);
        auto e = backend->compile(moving(), options(Specialise::Lazy))->create_execution();
        for (int64_t h = 30; h < 40; ++h) {
            run(*e, moving_shapes(3, 10, h));
            run(*e, moving_shapes(3, 10, h));
        }
        while (special == 0) {
            std::this_thread::yield();
        }
        opener = std::thread([&gate] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            gate.let();
        });
    }
    opener.join();
    EXPECT_LE(special, 2);
}

/// A decoder's tokens are shapes that run once each.
TEST(Specialise, AShapeThatRunsOnceAsksForNoVariant) {
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 2);
    auto e = backend->compile(moving(), options(Specialise::Lazy))->create_execution();
    auto variants = [&backend] {
        auto all = cuda::requested_programs(*backend);
        return std::count_if(all.begin(), all.end(),
                             [](const auto& p) { return is_special(p.second); });
    };
    for (int64_t h = 30; h < 40; ++h) {
        run(*e, moving_shapes(3, 10, h));
    }
    EXPECT_EQ(variants(), 0);
    run(*e, moving_shapes(3, 10, 39));
    EXPECT_GT(variants(), 0);
}

/// The first run is the only one that is not a replay.
TEST(Specialise, AReplayOfTheFirstRunAsksForVariants) {
    TimedGpu gpu;
    auto backend = cuda::make_backend(gpu, 2);
    CompileOptions o = options(Specialise::Lazy);
    o.of<CudaOptions>().record_first = true;
    auto e = backend->compile(moving(), o)->create_execution();
    run(*e, moving_shapes(3, 10, 37));
    auto steps = static_cast<int>(e->steps().size());
    ASSERT_GT(steps, 0);
    auto all = cuda::requested_programs(*backend);
    EXPECT_TRUE(
        std::none_of(all.begin(), all.end(), [](const auto& p) { return is_special(p.second); }));
    for (int i = 0; i < 2000 && special_launches(gpu) < steps; ++i) {
        run(*e, moving_shapes(3, 10, 37));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_GE(special_launches(gpu), steps) << "recorded anew with the variants";
}

TEST(Specialise, AutoIsLazyForDynamicProfilesOnly) {
    auto variants = [](const std::vector<Shape>& min, const std::vector<Shape>& max) {
        TimedGpu gpu;
        auto backend = cuda::make_backend(gpu, 2);
        CompileOptions o = options(Specialise::Auto);
        if (!min.empty()) {
            o.profiles = {{{{"a", min[0], min[0], max[0]}, {"b", min[1], min[1], max[1]}}}};
        }
        auto e = backend->compile(moving(), o)->create_execution();
        run(*e, moving_shapes(3, 10, 37));
        run(*e, moving_shapes(3, 10, 37));
        int n = 0;
        for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
            n += is_special(text) ? 1 : 0;
        }
        return n;
    };
    std::vector<Shape> one = moving_shapes(3, 10, 37);
    EXPECT_EQ(variants({}, {}), 0);
    EXPECT_EQ(variants(one, one), 0);
    EXPECT_GE(variants(one, moving_shapes(4, 10, 64)), 1);
}

} // namespace
} // namespace ingot::test
