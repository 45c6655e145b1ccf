// SPDX-License-Identifier: Apache-2.0
// Placing scales in models and graphs.
#include "backends/backends.h"
#include "base/file.h"
#include "error_message.h"
#include "ir/rewrite.h"
#include "lower/passes.h"
#include "onnx/importer.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "slim/slim_models.h"
#include "workflow/build.h"
#include "workflow/inputs/inputs.h"
#include "workflow/quantization/calibrate.h"
#include "workflow/quantization/quantize.h"
#include "workflow/quantization/quantize_graph.h"
#include "workflow/quantization/quantizer_placement.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot {
namespace {

using slim_test::Builder;

/// Scale 1/16 for every tensor that nodes compute, and inputs.
CalibrationCache cache_of(const onnx::Model& m) {
    CalibrationCache c;
    for (const onnx::ValueInfo& v : m.graph.inputs) {
        c.scales.emplace_back(v.name, 0.0625F);
    }
    for (const onnx::Node& n : quantisable(m).graph.nodes) {
        for (const std::string& o : n.outputs) {
            c.scales.emplace_back(o, 0.0625F);
        }
    }
    return c;
}

/// The types of a model's products when it is lowered for a GPU. Convolutions of few channels
/// multiply integers as 16-bit floats.
struct Products {
    int integer = 0;
    int floating = 0;
};
Products products_of(const Graph& optimised) {
    Graph g = plan::after(plan::quantized_products, optimised);
    Products out;
    visit_nodes(g, [&](const Graph& part, const Node& n) {
        if (n.is(ops::conv_def) || n.is(dot_def)) {
            DType result = part.type(n.outputs[0]).dtype;
            bool halves = part.type(n.inputs[0]).dtype == DType::F16 && result == DType::F32;
            ++(result == DType::I32 || halves ? out.integer : out.floating);
        }
    });
    return out;
}

Products products_of(const onnx::Model& m) {
    return products_of(run_aot_passes(onnx::import_or_throw(m)));
}

// --- placement

TEST(Placement, ProductsReadInt8) {
    PlacementSketch s;
    s.scales = {1, 2, 3};
    s.ops = {{PlacementRole::Product, {0}, {1}}, {PlacementRole::Product, {1}, {2}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 2, 0}));
}

TEST(Placement, ViewsPassItOn) {
    PlacementSketch s;
    s.scales = {1, 0, 3};
    s.ops = {{PlacementRole::View, {0}, {1}}, {PlacementRole::Product, {1}, {2}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 0, 0}));
    s.scales = {0, 5, 3};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{5, 0, 0}));
}

// 0 -> conv -> 1 -> relu -> 2 -> conv -> 3; 2 + 3 -> 4 -> conv -> 5. The residual 2 is read as
// int8; 3 is added before anything is stored.
TEST(Placement, OfAResidualOnlyTheOldOperandIsStored) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4, 5, 6};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Pointwise, {1}, {2}},
             {PlacementRole::Product, {2}, {3}},
             {PlacementRole::Join, {2, 3}, {4}},
             {PlacementRole::Product, {4}, {5}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 0, 3, 0, 5, 0}));
}

// Two products added: the earlier one is stored as int8.
TEST(Placement, OfTwoProductsTheEarlierIsStored) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4, 5};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Product, {0}, {2}},
             {PlacementRole::Join, {1, 2}, {3}},
             {PlacementRole::Product, {3}, {4}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 2, 0, 4, 0}));
}

// x * sigmoid(x) of a product belongs to that product as a whole.
TEST(Placement, AGateOfItselfIsNotStored) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4, 5};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Pointwise, {1}, {2}},
             {PlacementRole::Join, {1, 2}, {3}},
             {PlacementRole::Product, {3}, {4}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 0, 0, 4, 0}));
}

TEST(Placement, PoolingAndConcatenationTakeTheScaleOfTheResult) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4, 5, 6};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Maximum, {1}, {2}},
             {PlacementRole::Concat, {0, 2}, {3}},
             {PlacementRole::Product, {3}, {4}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{4, 4, 4, 4, 0, 0}));
    s.ops[1].role = PlacementRole::Window;
    EXPECT_EQ(assign_scales(s), (std::vector<float>{4, 2, 4, 4, 0, 0}));
}

TEST(Placement, WhatIsConcatenatedAsFloatsStays) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4, 5};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Concat, {0, 1}, {2}},
             {PlacementRole::Pointwise, {2}, {3}},
             {PlacementRole::Product, {3}, {4}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 0, 0, 4, 0}));
}

TEST(Placement, WhatLeadsToNoProductStays) {
    PlacementSketch s;
    s.scales = {1, 2, 3, 4};
    s.ops = {{PlacementRole::Product, {0}, {1}},
             {PlacementRole::Maximum, {1}, {2}},
             {PlacementRole::Other, {2}, {3}}};
    EXPECT_EQ(assign_scales(s), (std::vector<float>{1, 0, 0, 0}));
    s.scales[0] = 0;
    EXPECT_EQ(assign_scales(s), (std::vector<float>{0, 0, 0, 0}));
}

// --- models

/// conv + relu, residual, max pool, a gate, global pool, Gemm.
onnx::Model small_net(int64_t opset = 17) {
    Builder b(opset);
    std::string x = b.input("x", {"n", 3, 12, 12});
    auto conv = [&](const std::string& in, int64_t from, int64_t to) {
        return b.node("Conv", {in, b.weights({to, from, 3, 3}), b.weights({to})},
                      {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    };
    std::string y = b.node("Relu", {conv(x, 3, 8)});
    std::string z =
        b.node("Relu", {b.node("Add", {conv(b.node("Relu", {conv(y, 8, 8)}), 8, 8), y})});
    std::string p = b.node(
        "MaxPool", {z},
        {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
    std::string c = conv(p, 8, 16);
    std::string gated = b.node("Mul", {c, b.node("Sigmoid", {c})});
    std::string flat = b.node("Flatten", {b.node("GlobalAveragePool", {conv(gated, 16, 16)})});
    b.output(
        b.node("Gemm", {flat, b.weights({10, 16}), b.weights({10})}, {{"transB", int64_t{1}}}));
    return b.model();
}

/// Scales of small_net by calibration on random inputs.
CalibrationCache calibrated(const onnx::Model& m) {
    Graph g = calibration_graph(m);
    CalibrationOptions o;
    o.method = CalibrationMethod::MinMax;
    Calibrator c(g, cpu_backend(), o);
    for (uint64_t i = 0; i < 4; ++i) {
        c.add_batch(std::array{random_tensor(DType::F32, {3, 3, 12, 12}, i, "x")});
    }
    return c.finish();
}

TEST(Quantised, AllProductsBecomeInteger) {
    onnx::Model m = small_net();
    QuantizeReport report;
    onnx::Model q = quantised(m, calibrated(m), &report);
    EXPECT_EQ(report.products.size(), 6U);
    EXPECT_TRUE(report.missing.empty());
    EXPECT_TRUE(report.unknown.empty());
    Products p = products_of(q);
    EXPECT_EQ(p.integer, 6);
    EXPECT_EQ(p.floating, 0);
}

TEST(Quantised, ResultsAreCloseToFloats) {
    onnx::Model m = small_net();
    onnx::Model q = quantised(m, calibrated(m));
    std::vector<Tensor> floats = slim_test::run(m, 9);
    std::vector<Tensor> narrow = slim_test::run(q, 9);
    EXPECT_EQ(slim_test::difference(narrow, floats, 0.05), "");
    EXPECT_NE(slim_test::difference(narrow, floats, 1e-6), "");
}

TEST(Quantised, WeightsAreStoredAsInt8) {
    onnx::Model m = small_net();
    onnx::Model q = quantised(m, calibrated(m));
    int weights = 0;
    for (const onnx::Tensor& t : q.graph.initializers) {
        EXPECT_TRUE(t.data_type == 3 || t.dims.size() < 2) << t.name; // 3: int8
        weights += t.dims.size() >= 2 ? 1 : 0;
    }
    EXPECT_EQ(weights, 6) << "one of each product";
}

// Scales for each channel: ONNX has them from opset 13 on.
TEST(Quantised, OldOpsetsUseContribOperators) {
    onnx::Model m = small_net(11);
    onnx::Model q = quantised(m, calibrated(m));
    EXPECT_EQ(q.opset_imports.at(""), 11);
    EXPECT_EQ(q.opset_imports.at("com.microsoft"), 1);
    EXPECT_EQ(products_of(q).integer, 6);
}

TEST(Quantised, WritesAndReadsBack) {
    onnx::Model m = small_net();
    onnx::Model q = quantised(m, calibrated(m));
    std::string bytes = onnx::write_model(q);
    onnx::Model back =
        onnx::read_model(std::as_bytes(std::span(bytes.data(), bytes.size())), "", {});
    EXPECT_EQ(slim_test::difference(slim_test::run(back), slim_test::run(q), 0), "");
    EXPECT_EQ(onnx::write_model(quantised(m, calibrated(m))), bytes); // the same each time
}

TEST(Quantised, MatrixProductsAreQuantised) {
    Builder b;
    std::string x = b.input("x", {2, 5, 16});
    std::string y = b.node("MatMul", {x, b.weights({16, 32})});
    std::string z = b.node("Gelu", {y}, {});
    b.opset = 20;
    b.output(b.node("MatMul", {z, b.weights({32, 16})}));
    onnx::Model m = b.model();
    Products p = products_of(quantised(m, cache_of(m)));
    EXPECT_EQ(p.integer, 2);
    EXPECT_EQ(p.floating, 0);
}

TEST(Quantised, TransposedWeightsToo) {
    Builder b;
    std::string x = b.input("x", {5, 16});
    std::string w = b.weights({32, 16});
    std::string y = b.node("MatMul", {x, b.node("Transpose", {w})});
    b.output(b.node("MatMul", {y, w}));
    onnx::Model m = b.model();
    onnx::Model q = quantised(m, cache_of(m));
    Products p = products_of(q);
    EXPECT_EQ(p.integer, 2);
    EXPECT_EQ(p.floating, 0);
    auto is_transpose = [](const onnx::Node& n) { return n.op_type == "Transpose"; };
    EXPECT_TRUE(std::none_of(q.graph.nodes.begin(), q.graph.nodes.end(), is_transpose));
}

TEST(Quantised, ProductsWithoutAScaleStay) {
    Builder b;
    std::string x = b.input("x", {1, 16});
    std::string y = b.node("MatMul", {x, b.weights({16, 32})});
    b.output(b.node("MatMul", {b.node("Tanh", {y}), b.weights({32, 16})}));
    onnx::Model m = b.model();
    CalibrationCache c;
    c.scales = {{"x", 0.1F}, {"elsewhere", 1.0F}};
    QuantizeReport report;
    Products p = products_of(quantised(m, c, &report));
    EXPECT_EQ(p.integer, 1);
    EXPECT_EQ(p.floating, 1);
    EXPECT_EQ(report.unknown, (std::vector<std::string>{"elsewhere"}));
    EXPECT_EQ(report.missing.size(), 1U);
}

TEST(Quantised, RefusesAModelThatIsQuantised) {
    onnx::Model m = small_net();
    onnx::Model q = quantised(m, calibrated(m));
    EXPECT_FALSE(is_quantised(m));
    EXPECT_TRUE(is_quantised(q));
    EXPECT_EQ(message([&] { quantised(q, cache_of(m)); }),
              "the model contains quantisation: it already has its scales and takes no "
              "calibration cache");
}

// TensorRT's entry for a tensor that was zero throughout.
TEST(Quantised, AScaleOfZeroIsNoScale) {
    Builder b;
    std::string x = b.input("x", {1, 16});
    std::string y = b.node("Tanh", {b.node("MatMul", {x, b.weights({16, 32})})});
    b.output(b.node("MatMul", {y, b.weights({32, 16})}));
    CalibrationCache c = parse_calibration_cache(
        "TRT-8601-EntropyCalibration2\nx: 3c010a14\n" + y + ": 00000000\n", "c");
    QuantizeReport report;
    Products p = products_of(quantised(b.model(), c, &report));
    EXPECT_EQ(p.integer, 1);
    EXPECT_EQ(p.floating, 1);
    EXPECT_EQ(report.missing, (std::vector<std::string>{y}));
}

TEST(Quantised, RefusesTheCacheOfAnotherModel) {
    CalibrationCache c;
    c.scales = {{"a", 1.0F}, {"b", 1.0F}};
    EXPECT_EQ(message([&] { quantised(small_net(), c); }),
              "none of the 2 tensors of the calibration cache is in the model (the first is 'a'): "
              "it belongs to another model");
}

// A network that was never ONNX gets the same products, and nearly the same numbers.
TEST(QuantisedGraph, DoesAsTheModelDoes) {
    onnx::Model m = small_net();
    CalibrationCache cache = calibrated(m);
    onnx::ImportOptions names;
    names.keep_names = true;
    Graph g = onnx::import_or_throw(m, names);
    QuantizeReport report;
    Graph q = quantised_graph(g, cache, &report);
    EXPECT_EQ(report.products.size(), 6U);
    EXPECT_TRUE(report.missing.empty());
    Products p = products_of(run_aot_passes(q));
    EXPECT_EQ(p.integer, 6);
    EXPECT_EQ(p.floating, 0);
    Tensor x = random_tensor(DType::F32, {2, 3, 12, 12}, 5, "x");
    Tensor own = evaluate(q, std::array{x})[0];
    Tensor as_model = evaluate(onnx::import_or_throw(quantised(m, cache)), std::array{x})[0];
    EXPECT_EQ(slim_test::difference({own}, {as_model}, 0.01), "");
    EXPECT_EQ(message([&] { quantised_graph(q, cache); }).find("node '"), 0U);
    cache.scales = {{"nothing", 1.0F}};
    EXPECT_EQ(message([&] { quantised_graph(g, cache); }),
              "none of the 1 tensors of the calibration cache is in the network: it belongs to "
              "another one");
}

class Int8Build : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "quantize_test.onnx";
        onnx::write_model_file(small_net(), path_);
    }
    std::string path_;
};

TEST_F(Int8Build, IsRefusedWithoutCalibration) {
    BuildConfig config;
    config.calibration.emplace();
    EXPECT_EQ(message([&] { build_engine(path_, config); }),
              path_ +
                  ": INT8 needs the ranges of tensors: give a calibration cache (--calib; ingot "
                  "calibrate makes one from sample inputs) or a model with QuantizeLinear nodes, "
                  "or use --int8WithoutCalibration to measure speed with unreliable results");
}

TEST_F(Int8Build, GuessesRangesWhenAskedTo) {
    BuildConfig config;
    config.calibration.emplace();
    config.calibration->guess_ranges = true;
    Graph g = plan::after(plan::quantized_products, build_engine(path_, config)->graph());
    EXPECT_TRUE(std::any_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) {
        return n.is(ops::conv_def) && g.type(n.outputs[0]).dtype == DType::I32;
    }));
}

TEST_F(Int8Build, UsesTheCacheAndHalvesTogether) {
    BuildConfig config;
    config.calibration.emplace();
    config.calibration->cache = calibrated(small_net());
    config.precision = DType::F16;
    auto engine = build_engine(path_, config);
    EXPECT_EQ(products_of(engine->graph()).integer, 6);
    Tensor x = random_tensor(DType::F32, {2, 3, 12, 12}, 5, "x");
    Tensor halves = Context(engine, cpu_backend()).run(std::array{x})[0];
    Tensor floats = Context(build_engine(path_, {}), cpu_backend()).run(std::array{x})[0];
    EXPECT_EQ(slim_test::difference({halves}, {floats}, 0.05), "");
}

} // namespace
} // namespace ingot
