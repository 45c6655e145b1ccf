// SPDX-License-Identifier: Apache-2.0
// The report of small models, for a GPU that is not here and for the CPU:
// tests/plan/kernels/MODEL.{sm_90,cpu}.txt. INGOT_WRITE_GOLDENS=1 writes the texts.
#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "emulator/emulated_gpu.h"
#include "expect_golden.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/models.h"
#include "workflow/report/kernel_report.h"
#include "workflow/report/page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ingot::test {
namespace {

CompileOptions plain_options() {
    CompileOptions o;
    o.of<CpuOptions>().use_library = false; // its loops differ between CPUs
    o.of<CudaOptions>().runtime_cache = "";
    return o;
}

std::vector<Shape> shapes_of(const std::vector<Tensor>& inputs) {
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs) {
        shapes.push_back(t.shape());
    }
    return shapes;
}

KernelReport report_for(const PlanModel& m, int capability) {
    ReportRequest q;
    q.backend = capability == 0 ? &cpu_backend() : nullptr;
    q.capability = capability;
    q.shapes = shapes_of(m.inputs);
    KernelReport r = kernel_report(Engine::create(m.graph, {}, {}), q, plain_options());
    if (capability == 0) {
        r.device = "a CPU";
    }
    return r;
}

const PlanModel& model(std::string_view name) {
    static const std::vector<PlanModel> models = plan_models();
    for (const PlanModel& m : models) {
        if (m.name == name) {
            return m;
        }
    }
    ADD_FAILURE() << "there is no model " << name;
    return models.front();
}

class KernelTable : public testing::TestWithParam<const char*> {};

TEST_P(KernelTable, IsAsListed) {
    const PlanModel& m = model(GetParam());
    for (int capability : {0, 90}) {
        std::string file = "tests/plan/kernels/" + m.name + (capability == 0 ? ".cpu" : ".sm_90");
        expect_golden(file + ".txt", report_text(report_for(m, capability)));
    }
}

INSTANTIATE_TEST_SUITE_P(Models, KernelTable,
                         testing::Values("attention", "residual_block", "choice", "found_elements"),
                         [](const auto& p) { return std::string(p.param); });

PlanModel of(Graph g, const Symbols& symbols = {}) {
    PlanModel m;
    m.name = "own";
    m.inputs = small_inputs(g, symbols);
    m.graph = std::move(g);
    return m;
}

TEST(KernelReport, AProductReadsItsOperandsOnceAndWritesItsResult) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[64,128]"));
    Value w = ops::constant(g, small_numbers(DType::F16, {128, 256}, 1));
    g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F16}, x, w));
    for (int capability : {0, 80, 90, 120}) {
        KernelReport r = report_for(of(Graph(g)), capability);
        int64_t read = 0;
        double products = 0;
        for (const LayerReport& l : r.layers) {
            products += l.step.operations.products;
            read += l.step.info.kernel == "dot" ? l.step.bytes_read : 0;
        }
        EXPECT_EQ(products, 2.0 * 64 * 128 * 256) << capability;
        if (capability == 0) {
            continue; // computes in f32
        }
        ASSERT_EQ(r.layers.size(), 1U);
        EXPECT_EQ(read, 2 * (64 * 128 + 128 * 256));
        EXPECT_EQ(r.layers[0].step.bytes_written, 2 * 64 * 256);
        EXPECT_EQ(r.layers[0].step.product_type, DType::F16);
        EXPECT_EQ(r.layers[0].basis, TimeBasis::Model);
        EXPECT_DOUBLE_EQ(r.layers[0].time_us, r.layers[0].step.choices.at(0).predicted_us);
        double floor = r.layers[0].bytes() / (r.figures->dram_gbs * 1e3);
        EXPECT_DOUBLE_EQ(r.layers[0].floor_us, floor) << "so small a product is bound by memory";
        EXPECT_EQ(r.layers[0].limited_by, "memory");
    }
}

TEST(KernelReport, AGatherReadsItsRowsNotTheTable) {
    Graph g;
    Value table = ops::constant(g, small_numbers(DType::F16, {1000, 64}, 1));
    Value rows = g.add_input("rows", parse_type("i64[3]"));
    g.add_output("y", g.add1(gather_def, Gather{0}, {table, rows}));
    KernelReport r = report_for(of(std::move(g)), 90);
    ASSERT_EQ(r.layers.size(), 1U);
    EXPECT_EQ(r.layers[0].step.bytes_read, 2 * 3 * 64 + 8 * 3);
    EXPECT_EQ(r.layers[0].step.bytes_written, 2 * 3 * 64);
}

TEST(KernelReport, LayersNameThoseThatTheyRead) {
    KernelReport r = report_for(model("attention"), 90);
    ASSERT_EQ(r.layers.size(), 3U);
    EXPECT_EQ(r.layers[0].step.reads_from, std::vector<size_t>());
    EXPECT_EQ(r.layers[1].step.reads_from, std::vector<size_t>({0}));
    EXPECT_EQ(r.layers[2].step.reads_from, std::vector<size_t>({1}));
}

TEST(KernelReport, AForcedTacticIsCalledForced) {
    CompileOptions o = plain_options();
    o.of<CudaOptions>().force_tactic = "simt";
    const PlanModel& m = model("attention");
    ReportRequest q;
    q.capability = 90;
    q.shapes = shapes_of(m.inputs);
    KernelReport r = kernel_report(Engine::create(m.graph, {}, {}), q, o);
    const plan::ChoiceReport& c = r.layers.at(0).step.choices.at(0);
    EXPECT_EQ(c.reason, plan::ChoiceReason::Forced);
    EXPECT_EQ(c.tactic, "simt");
    EXPECT_NE(c.runner_up, "simt");
    EXPECT_GT(c.predicted_us, c.runner_up_us) << "the model would have chosen another";
}

TEST(KernelReport, OnADeviceTheSameKernelsAreMeasured) {
    const PlanModel& m = model("residual_block");
    emulator::EmulatedGpu gpu(90);
    std::unique_ptr<Backend> cuda = cuda::make_backend(gpu);
    ReportRequest q;
    q.backend = cuda.get();
    q.shapes = shapes_of(m.inputs);
    q.inputs = m.inputs;
    q.timed_runs = 2;
    KernelReport here = kernel_report(Engine::create(m.graph, {}, {}), q, plain_options());
    KernelReport ahead = report_for(m, 90);
    EXPECT_TRUE(here.is_here);
    EXPECT_EQ(here.timed_runs, 2);
    ASSERT_EQ(here.layers.size(), ahead.layers.size());
    for (size_t i = 0; i < here.layers.size(); ++i) {
        EXPECT_EQ(here.layers[i].basis, TimeBasis::Measured);
        EXPECT_GT(here.layers[i].time_us, 0);
        EXPECT_EQ(here.layers[i].step.info.implementation,
                  ahead.layers[i].step.info.implementation);
        ASSERT_EQ(here.layers[i].step.launches.size(), ahead.layers[i].step.launches.size());
        for (size_t k = 0; k < here.layers[i].step.launches.size(); ++k) {
            EXPECT_EQ(here.layers[i].step.launches[k].text, ahead.layers[i].step.launches[k].text);
            EXPECT_EQ(here.layers[i].step.launches[k].grid, ahead.layers[i].step.launches[k].grid);
        }
    }
}

TEST(KernelReport, ThePageHoldsWhatInspectPrints) {
    const PlanModel& m = model("attention");
    PageContents c;
    c.version = "1";
    PageSubject& s = c.subjects.emplace_back();
    s.file = "</script><script>alert(1)</script>";
    s.engine = Engine::create(m.graph, {}, {});
    s.report = report_for(m, 90);
    s.cold_start.push_back({"plan", "<b>", 0, 0, 1});
    auto data = nlohmann::json::parse(page_json(c));
    EXPECT_EQ(data["subjects"][0]["report"], nlohmann::json::parse(report_json(s.report, false)));
    EXPECT_EQ(data["subjects"][0]["coldStart"][0]["detail"], "<b>");
    std::string page = page_html(c);
    EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
    EXPECT_EQ(page.find("{{"), std::string::npos) << "a mark that nothing replaced";
    EXPECT_EQ(page.find("http"), page.find("http-equiv")) << "nothing is loaded";
    c.timeline = "{";
    EXPECT_THROW(page_json(c), Error);
}

TEST(KernelReport, NamesThatAreNoTextAreShownAsUnknownCharacters) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    g.set_origin("a\xff\xfe");
    g.add_output("y", ops::unary(g, ExprOp::Tanh, x));
    std::string json = report_json(report_for(of(std::move(g)), 0), false);
    EXPECT_NE(json.find("a\xef\xbf\xbd\xef\xbf\xbd"), std::string::npos);
}

} // namespace
} // namespace ingot::test
