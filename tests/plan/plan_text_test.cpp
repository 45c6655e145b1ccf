// SPDX-License-Identifier: Apache-2.0
// The plans of small models, as text, on both backends: tests/plan/texts/MODEL.{cpu,cuda}.txt. The
// same runs give the evaluator's results. INGOT_WRITE_GOLDENS=1 writes the texts.
#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "emulator/emulated_gpu.h"
#include "engine/engine.h"
#include "expect_golden.h"
#include "ops/evaluator.h"
#include "passes/difference.h"
#include "plan/models.h"
#include "workflow/plans.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ingot::test {
namespace {

CompileOptions plain_options(ThreadPool& pool) {
    CompileOptions o;
    o.pool = &pool;
    o.of<CpuOptions>().use_library = false; // its loops differ between CPUs
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().specialise = Specialise::None;
    o.poison = true;
    o.of<CudaOptions>().tf32 = false;
    o.verify_passes = true;
    return o;
}

/// The CPU's scratch sizes depend on its vector width: goldens use the least instruction set.
class LeastInstructions : public testing::Environment {
public:
    void SetUp() override { setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1); }
};
const testing::Environment* const least = testing::AddGlobalTestEnvironment(new LeastInstructions);

class PlanText : public testing::TestWithParam<size_t> {};

TEST_P(PlanText, IsAsListedAndTheRunIsRight) {
    static const std::vector<PlanModel> models = plan_models();
    const PlanModel& m = models.at(GetParam());
    std::vector<Tensor> want = evaluate(m.graph, m.inputs);
    auto engine = Engine::create(m.graph, {}, {});
    emulator::EmulatedGpu gpu(90);
    std::unique_ptr<Backend> cuda = cuda::make_backend(gpu);
    ThreadPool pool(2);
    for (const Backend* backend : {&cpu_backend(), static_cast<const Backend*>(cuda.get())}) {
        SCOPED_TRACE(backend->name());
        CompileOptions options = plain_options(pool);
        options.of<CudaOptions>().weight_budget = m.weight_budget;
        Context context(engine, *backend, options);
        std::vector<Tensor> got = context.run(m.inputs);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(difference(want[i], got[i], 1e-5), "") << "output " << i;
        }
        expect_golden(str("tests/plan/texts/", m.name, ".", backend->name(), ".txt"),
                      context.execution().plan_text());
    }
}

std::vector<size_t> indices() {
    std::vector<size_t> out(plan_models().size());
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = i;
    }
    return out;
}

INSTANTIATE_TEST_SUITE_P(Models, PlanText, testing::ValuesIn(indices()),
                         [](const auto& p) { return plan_models().at(p.param).name; });

// Without a GPU the first segment is the same; segments behind a data-dependent size are listed
// without sizes.
TEST(PlanTextAhead, IsThatOfTheGpuAsFarAsSizesAreKnown) {
    for (const PlanModel& m : plan_models()) {
        SCOPED_TRACE(m.name);
        emulator::EmulatedGpu gpu(90);
        std::unique_ptr<Backend> backend = cuda::make_backend(gpu);
        ThreadPool pool(2);
        CompileOptions options = plain_options(pool);
        options.of<CudaOptions>().weight_budget = m.weight_budget;
        std::vector<Shape> shapes;
        for (const Tensor& t : m.inputs) {
            shapes.push_back(t.shape());
        }
        auto engine = Engine::create(m.graph, {}, {});
        Context context(engine, *backend, options);
        context.prepare(shapes);
        EXPECT_EQ(plan_text(engine, 90, shapes, options), context.execution().plan_text());
    }
}

TEST(PlanTextAhead, KnowsTheArchitecture) {
    PlanModel m = std::move(plan_models()[2]);
    auto engine = Engine::create(m.graph, {}, {});
    ThreadPool pool(2);
    std::vector<Shape> shapes{m.inputs[0].shape()};
    CompileOptions options = plain_options(pool);
    EXPECT_NE(plan_text(engine, 80, shapes, options), plan_text(engine, 90, shapes, options));
    EXPECT_NE(plan_text(engine, 0, shapes, options), plan_text(engine, 90, shapes, options));
    try {
        plan_text(engine, 91, shapes, options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_TRUE(std::string(e.what()).starts_with("compute capability 9.1 is not known"))
            << e.what();
    }
}

TEST(PassNames, AreThoseOfAllLists) {
    std::vector<std::string> names = pass_names();
    for (const char* name : {"raise_norm", "widen_halves", "merge_dots", "dead_code"}) {
        EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    }
    check_pass_names(names);
    try {
        check_pass_names(std::vector<std::string>{"fuse_map"});
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()), "there is no pass 'fuse_map', did you mean 'fuse_maps'?");
    }
}

} // namespace
} // namespace ingot::test
