// SPDX-License-Identifier: Apache-2.0
// Choosing tactics by timing, on a GPU whose clock the test sets.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends/cuda/tune/tuning_job.h"
#include "backends_cuda/timed_gpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "cache/timing_cache.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace ingot::test {
namespace {

using kernels::Tactic;

std::shared_ptr<const Graph> product() {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[256,512]"));
    Value b = g.add_input("b", parse_type("f16[384,512]")); // as the family wants it
    g.add_output("y", ops::matmul(g, a, ops::permute(g, b, {1, 0})));
    return std::make_shared<const Graph>(std::move(g));
}

const std::vector<Shape> product_shapes = {{256, 512}, {384, 512}};

/// Two products of one problem, and a third, larger one.
std::shared_ptr<const Graph> three_products() {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[256,256]"));
    Value b = g.add_input("b", parse_type("f16[256,256]"));
    Value c = g.add_input("c", parse_type("f16[1024,256]"));
    Value t = ops::permute(g, b, {1, 0});
    Value x = ops::matmul(g, ops::matmul(g, a, t), t);
    g.add_output("y", ops::matmul(g, x, ops::permute(g, c, {1, 0})));
    return std::make_shared<const Graph>(std::move(g));
}

const std::vector<Shape> three_shapes = {{256, 256}, {256, 256}, {1024, 256}};

/// Between 1 and 100 microseconds, derived from the text.
double cost_of(const std::string& text, uint64_t salt = 0) {
    return 1 + static_cast<double>(hash_bytes(text.data(), text.size(), salt) % 9901) / 100;
}

struct Ran {
    std::vector<std::string> tactics; // of all steps
    std::vector<std::string> texts;   // launched
    double us = 0;
};

Tensor zeros(const Shape& shape) {
    Tensor t = Tensor::empty(DType::F16, shape);
    std::memset(t.mutable_bytes().data(), 0, t.bytes().size());
    return t;
}

std::vector<Tensor> inputs_of(const std::vector<Shape>& shapes) {
    std::vector<Tensor> in;
    for (const Shape& s : shapes) {
        in.push_back(zeros(s));
    }
    return in;
}

/// A run without the log of earlier ones.
Ran run(TimedGpu& gpu, Execution& e, const std::vector<Shape>& shapes) {
    e.prepare(shapes);
    gpu.forget_launches();
    std::vector<Tensor> in = inputs_of(shapes);
    std::vector<Tensor> out(1);
    EXPECT_TRUE(e.run(in, out).ok()) << e.error();
    Ran r;
    for (const StepInfo& s : e.steps()) {
        r.tactics.push_back(s.implementation);
    }
    for (const TimedGpu::Launch& l : gpu.launches()) {
        if (!l.background) {
            r.texts.push_back(l.text);
            r.us += cost_of(l.text);
        }
    }
    return r;
}

CompileOptions options(Tune tune, const std::string& file = {}) {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().tune = tune;
    o.of<CudaOptions>().timing_cache_file = file;
    o.of<CudaOptions>().tune_budget_ms = 1e6;
    return o;
}

Ran run_once(TimedGpu& gpu, const std::shared_ptr<const Graph>& g, const std::vector<Shape>& shapes,
             const CompileOptions& o) {
    auto backend = cuda::make_backend(gpu, 2);
    auto execution = backend->compile(g, o)->create_execution();
    return run(gpu, *execution, shapes);
}

struct Candidate {
    std::string tactic;
    std::vector<std::string> texts;
    double us = 0;
};

/// Candidates for the product, fastest first; `salt` changes the costs.
std::vector<Candidate> candidates(uint64_t salt = 0) {
    std::shared_ptr<const Graph> g = product();
    const kernels::Family* family = nullptr;
    for (const kernels::FamilyTable* table : kernels::all_families()) {
        for (const kernels::Family& f : *table) {
            family = f.name == "dot" ? &f : family;
        }
    }
    EXPECT_NE(family, nullptr);
    plan::Group group = plan::group_of(*g, g->nodes().back());
    Symbols symbols;
    std::vector<plan::Operand> in{{DType::F16, 0, plan::dense({256, 512})},
                                  {DType::F16, 1, {{512, 384}, {1, 512}}}};
    plan::Operand out{DType::F16, 2, plan::dense({256, 384})};
    std::vector<const std::byte*> constants(in.size());
    TimedGpu gpu;
    kernels::Problem p{group, symbols, in, {&out, 1}, constants, gpu.arch(), true};
    std::vector<Candidate> all;
    for (const Tactic& t : cuda::candidates_of(family->tactics(p))) {
        Candidate c{t.name, {}, 0};
        for (const kernels::Launch& l : family->emit(p, t).launches) {
            c.texts.push_back(kernels::full_text(l.program));
            c.us += cost_of(c.texts.back(), salt);
        }
        all.push_back(std::move(c));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.us < b.us; });
    return all;
}

void by_text(TimedGpu& gpu, uint64_t salt = 0) {
    gpu.launch_us = [salt](const std::string& text, const cuda::LaunchShape&) {
        return cost_of(text, salt);
    };
}

TEST(Tuner, FullChoosesTheFastestBeforeTheFirstRun) {
    std::vector<Candidate> all = candidates();
    ASSERT_GE(all.size(), 3U) << "a problem with something to choose";
    TimedGpu gpu;
    by_text(gpu);
    Ran by_model = run_once(gpu, product(), product_shapes, options(Tune::Off));
    EXPECT_EQ(gpu.flushes(), 0);
    Ran tuned = run_once(gpu, product(), product_shapes, options(Tune::Full));
    ASSERT_EQ(tuned.tactics.size(), 1U);
    EXPECT_EQ(tuned.tactics[0], str("dot ", all[0].tactic, " (timed)"));
    EXPECT_NEAR(tuned.us, all[0].us, 1e-6);
    EXPECT_LE(tuned.us, by_model.us);
    EXPECT_GE(gpu.flushes(), 3 * static_cast<int>(all.size())) << "caches are cold each time";
    EXPECT_EQ(gpu.used(), 0);
}

TEST(Tuner, OffIsAFunctionOfTheProblem) {
    TemporaryFolder t;
    TimedGpu gpu;
    by_text(gpu);
    Ran a = run_once(gpu, product(), product_shapes, options(Tune::Off));
    run_once(gpu, product(), product_shapes, options(Tune::Full, t.path() + "/times"));
    Ran b = run_once(gpu, product(), product_shapes, options(Tune::Off, t.path() + "/times"));
    ASSERT_FALSE(a.tactics.empty());
    EXPECT_EQ(a.texts, b.texts);
    EXPECT_EQ(a.tactics, b.tactics);
    EXPECT_EQ(a.tactics[0].find("timed"), std::string::npos) << a.tactics[0];
}

TEST(Tuner, ChoicesAreRepeatedFromTheFile) {
    TemporaryFolder t;
    std::string file = t.path() + "/times";
    TimedGpu gpu;
    by_text(gpu);
    Ran a = run_once(gpu, three_products(), three_shapes, options(Tune::Full, file));
    ASSERT_TRUE(std::filesystem::exists(file));
    for (Tune mode : {Tune::Full, Tune::Background}) {
        TimedGpu other;
        other.launch_us = [](const std::string& text, const cuda::LaunchShape&) {
            return 200 - cost_of(text); // timing again would choose otherwise
        };
        CompileOptions o = options(mode, file);
        o.of<CudaOptions>().tune_budget_ms = 0;
        Ran b = run_once(other, three_products(), three_shapes, o);
        EXPECT_EQ(b.texts, a.texts);
        EXPECT_EQ(b.tactics, a.tactics);
        EXPECT_EQ(other.flushes(), 0) << "nothing was timed";
    }
}

TEST(Tuner, AChoiceThatWasEditedIsTaken) {
    TemporaryFolder t;
    std::string file = t.path() + "/times";
    std::vector<Candidate> all = candidates();
    ASSERT_GE(all.size(), 2U);
    TimedGpu gpu;
    by_text(gpu);
    run_once(gpu, product(), product_shapes, options(Tune::Full, file));
    for (size_t i : {all.size() - 1, size_t{1}}) { // by hash, as an editor of the cache knows it
        plan::TimingCache cache(file);
        plan::TimingCache::Entries entries = cache.entries();
        ASSERT_EQ(entries.size(), 1U);
        entries.begin()->second.tactic = plan::hashed_tactic(plan::tactic_hash(all[i].tactic));
        write_file(file, std::string_view(plan::print_timings(entries)));
        Ran r = run_once(gpu, product(), product_shapes, options(Tune::Full, file));
        ASSERT_EQ(r.tactics.size(), 1U);
        EXPECT_NE(r.tactics[0].find(all[i].tactic), std::string::npos) << r.tactics[0];
        EXPECT_EQ(r.texts, all[i].texts);
    }
}

TEST(Tuner, EqualProblemsAreTimedOnce) {
    TimedGpu gpu;
    by_text(gpu);
    auto backend = cuda::make_backend(gpu, 2);
    auto executable = backend->compile(three_products(), options(Tune::Full));
    Ran r = run(gpu, *executable->create_execution(), three_shapes);
    ASSERT_EQ(r.tactics.size(), 3U);
    EXPECT_EQ(r.tactics[0], r.tactics[1]);
    int flushes = gpu.flushes();
    run(gpu, *executable->create_execution(), three_shapes);
    EXPECT_EQ(gpu.flushes(), flushes);
}

TEST(Tuner, TheBudgetIsKept) {
    TimedGpu gpu;
    by_text(gpu);
    Ran by_model = run_once(gpu, three_products(), three_shapes, options(Tune::Off));
    CompileOptions o = options(Tune::Full);
    o.of<CudaOptions>().tune_budget_ms = 0;
    Ran none = run_once(gpu, three_products(), three_shapes, o);
    EXPECT_EQ(none.tactics, by_model.tactics);
    EXPECT_EQ(gpu.flushes(), 0);
    // One launch takes the whole budget: no candidate is raced to the end, the first is kept.
    TimedGpu slow;
    slow.launch_us = [](const std::string&, const cuda::LaunchShape&) { return 50000; };
    o.of<CudaOptions>().tune_budget_ms = 20;
    none = run_once(slow, three_products(), three_shapes, o);
    EXPECT_EQ(none.tactics, by_model.tactics);
    EXPECT_LE(slow.flushes(), 6) << "one warm run of each candidate of one problem";
}

TEST(Tuner, WhatTakesMostOfARunComesFirst) {
    // A chain of eight equal products, and one that alone takes about as long as two of them.
    Graph g;
    Value x = g.add_input("a", parse_type("f16[256,256]"));
    Value b = ops::permute(g, g.add_input("b", parse_type("f16[256,256]")), {1, 0});
    Value c = ops::permute(g, g.add_input("c", parse_type("f16[512,256]")), {1, 0});
    for (int i = 0; i < 8; ++i) {
        x = ops::matmul(g, x, b);
    }
    g.add_output("y", ops::matmul(g, x, c));
    TimedGpu gpu;
    gpu.launch_us = [](const std::string&, const cuda::LaunchShape&) { return 1000; };
    CompileOptions o = options(Tune::Full);
    o.of<CudaOptions>().tune_budget_ms = 20; // one problem's worth
    Ran r = run_once(gpu, std::make_shared<const Graph>(std::move(g)),
                     {{256, 256}, {256, 256}, {512, 256}}, o);
    ASSERT_EQ(r.tactics.size(), 9U);
    EXPECT_NE(r.tactics[0].find("(timed)"), std::string::npos) << r.tactics[0];
    EXPECT_EQ(r.tactics[8].find("(timed)"), std::string::npos) << r.tactics[8];
}

TEST(Tuner, CompilingCountsForTheBudget) {
    TimedGpu gpu;
    by_text(gpu);
    gpu.compile_ms = [](const std::string&) { return 1000.0; };
    CompileOptions o = options(Tune::Full);
    o.of<CudaOptions>().tune_budget_ms = 1500;
    Ran r = run_once(gpu, three_products(), three_shapes, o);
    ASSERT_EQ(r.tactics.size(), 3U);
    for (const std::string& t : r.tactics) {
        EXPECT_EQ(t.find("timed"), std::string::npos) << t;
    }
    gpu.compile_ms = {};
    EXPECT_NE(run_once(gpu, three_products(), three_shapes, o).tactics[0].find("timed"),
              std::string::npos)
        << "the same budget, without the compiler";
}

TEST(Tuner, WhatDoesNotCompileLoses) {
    std::vector<Candidate> all = candidates();
    auto fails = [&all](const std::string& text) {
        return std::count(all[0].texts.begin(), all[0].texts.end(), text) != 0;
    };
    TimedGpu gpu;
    by_text(gpu);
    gpu.compile_ms = [&](const std::string& text) -> double {
        require(!fails(text), ErrorCode::Internal, "no such instruction");
        return 0;
    };
    auto next = std::find_if(all.begin(), all.end(), [&](const Candidate& c) {
        return std::none_of(c.texts.begin(), c.texts.end(), fails);
    });
    ASSERT_NE(next, all.end());
    Ran r = run_once(gpu, product(), product_shapes, options(Tune::Full));
    EXPECT_EQ(r.tactics[0], str("dot ", next->tactic, " (timed)"));
}

TEST(Tuner, WithoutMemoryTheModelChooses) {
    TimedGpu gpu;
    by_text(gpu);
    Ran by_model = run_once(gpu, product(), product_shapes, options(Tune::Off));
    gpu.memory = 1800000; // enough to run, too little to clear caches
    Ran r = run_once(gpu, product(), product_shapes, options(Tune::Full));
    EXPECT_EQ(r.tactics, by_model.tactics);
}

TEST(Tuner, TakesNoMoreMemoryThanIsAllowed) {
    TimedGpu gpu;
    by_text(gpu);
    auto g = product();
    Ran off = run_once(gpu, g, product_shapes, options(Tune::Off));
    // Buffers of 256 KiB, 384 KiB and 192 KiB, 1 MiB of a pattern, half of the limit to flush with.
    CompileOptions o = options(Tune::Full);
    std::vector<std::string> skipped;
    o.on_limit = [&skipped](std::string_view text) { skipped.emplace_back(text); };
    o.of<CudaOptions>().tuning_memory = 2 << 20;
    EXPECT_EQ(run_once(gpu, g, product_shapes, o).tactics, off.tactics);
    ASSERT_FALSE(skipped.empty());
    EXPECT_NE(skipped[0].find(" bytes of device memory, allowed are 2097152"), std::string::npos)
        << skipped[0];
    skipped.clear();
    o.of<CudaOptions>().tuning_memory = 64 << 20;
    Ran tuned = run_once(gpu, g, product_shapes, o);
    EXPECT_TRUE(skipped.empty());
    EXPECT_LE(tuned.us, off.us);
    EXPECT_EQ(tuned.tactics, run_once(gpu, g, product_shapes, options(Tune::Full)).tactics);
}

TEST(Tuner, BackgroundServesTheNextContext) {
    TemporaryFolder t;
    TimedGpu gpu;
    Ran by_model = run_once(gpu, product(), product_shapes, options(Tune::Off));
    uint64_t salt = 0; // costs by which the model errs
    while (by_model.tactics[0] == str("dot ", candidates(salt)[0].tactic)) {
        ++salt;
    }
    by_text(gpu, salt);
    std::string winner = candidates(salt)[0].tactic;
    auto backend = cuda::make_backend(gpu, 2);
    CompileOptions o = options(Tune::Background, t.path() + "/times");
    o.cached_plans = 1;
    auto executable = backend->compile(product(), o);
    auto first = executable->create_execution();
    EXPECT_EQ(run(gpu, *first, product_shapes).tactics, by_model.tactics);
    for (int i = 0; i < 2000 && !std::filesystem::exists(t.path() + "/times"); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(std::filesystem::exists(t.path() + "/times"));
    auto second = executable->create_execution();
    EXPECT_EQ(run(gpu, *second, product_shapes).tactics[0], str("dot ", winner, " (timed)"));
    EXPECT_EQ(run(gpu, *first, product_shapes).tactics, by_model.tactics)
        << "choices do not change under a context";
}

TEST(Tuner, TimingInTheBackgroundUsesItsOwnStream) {
    TemporaryFolder t;
    TimedGpu gpu;
    by_text(gpu);
    auto backend = cuda::make_backend(gpu, 2);
    auto executable = backend->compile(product(), options(Tune::Background, t.path() + "/times"));
    auto e = executable->create_execution();
    e->prepare(product_shapes);
    for (int i = 0; i < 2000 && !std::filesystem::exists(t.path() + "/times"); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::vector<TimedGpu::Launch> launches = gpu.launches();
    EXPECT_FALSE(launches.empty());
    for (const TimedGpu::Launch& l : launches) {
        EXPECT_TRUE(l.background);
    }
}

TEST(Tuner, ALiveContextKeepsItsChoicesOverPlans) {
    TimedGpu gpu;
    by_text(gpu);
    CompileOptions o = options(Tune::Full);
    o.cached_plans = 1;
    auto backend = cuda::make_backend(gpu, 2);
    Graph g;
    Value a = g.add_input("a", parse_type("f16[N,256]"));
    Value b = g.add_input("b", parse_type("f16[256,256]"));
    g.add_output("y", ops::matmul(g, a, ops::permute(g, b, {1, 0})));
    auto executable = backend->compile(std::make_shared<const Graph>(std::move(g)), o);
    auto e = executable->create_execution();
    Ran one = run(gpu, *e, {{64, 256}, {256, 256}});
    run(gpu, *e, {{96, 256}, {256, 256}});
    EXPECT_EQ(run(gpu, *e, {{64, 256}, {256, 256}}).texts, one.texts);
}

TEST(Tuner, ProblemsAreToldApart) {
    auto text = [](const char* type, bool transposed) {
        Graph g;
        Value a = g.add_input("a", parse_type(type));
        Value b = g.add_input("b", parse_type(type));
        g.add_output("y", ops::matmul(g, a, b));
        plan::Group group = plan::group_of(g, g.nodes().back());
        Symbols symbols;
        Type t = parse_type(type);
        plan::View v = plan::dense(*as_const(t.dims));
        std::vector<plan::Operand> in{{t.dtype, 0, v}, {t.dtype, 1, v}};
        if (transposed) {
            std::swap(in[1].view.strides[0], in[1].view.strides[1]);
        }
        plan::Operand out{t.dtype, 2, v};
        std::vector<const std::byte*> constants(2);
        kernels::Family family{};
        family.name = "dot";
        return cuda::problem_text(
            family, {group, symbols, in, {&out, 1}, constants, kernels::arch_of(90), true});
    };
    std::set<std::string> all{text("f16[64,64]", false), text("f16[64,64]", true),
                              text("f16[128,128]", false), text("bf16[64,64]", false)};
    EXPECT_EQ(all.size(), 4U);
    EXPECT_EQ(all.count(text("f16[64,64]", false)), 1U);
    for (const std::string& s : all) {
        EXPECT_EQ(s.find_first_of("\t\n"), std::string::npos);
    }
}

} // namespace
} // namespace ingot::test
