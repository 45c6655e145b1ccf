// SPDX-License-Identifier: Apache-2.0
// Narrow weights without calibration data, and their required opsets.
#include "error_message.h"
#include "slim/opset.h"
#include "slim/slim_models.h"
#include "workflow/inputs/inputs.h"
#include "workflow/quantization/quantize_weights.h"
#include "workflow/quantization/quantized_weight.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ingot {
namespace {

using slim_test::Builder;

// --- weights

TEST(QuantizedWeight, Int8HasAScaleForEachChannel) {
    Tensor w = Tensor::of<float>(DType::F32, {2, 2}, std::vector<float>{127, -63.5F, 0, 0});
    QuantizedWeight q = quantized_weight(w, DType::I8, 0);
    EXPECT_EQ(q.scale, Tensor::of<float>(DType::F32, {2}, std::vector<float>{1, 1}));
    EXPECT_EQ(q.q, Tensor::of<int64_t>(DType::I8, {2, 2}, std::vector<int64_t>{127, -64, 0, 0}));
    EXPECT_NEAR(q.error, 0.25 / (127 * 127 + 63.5 * 63.5), 1e-12);
}

TEST(QuantizedWeight, Int4UsesBothEndsOfItsRange) {
    Tensor w = Tensor::of<float>(DType::F32, {4, 1}, std::vector<float>{-8, 7, 14, -4});
    QuantizedWeight q = quantized_weight(w, DType::I4, 0, 2);
    EXPECT_EQ(q.scale, Tensor::of<float>(DType::F32, {2, 1}, std::vector<float>{1, 2}));
    EXPECT_EQ(q.q, Tensor::of<int64_t>(DType::I4, {4, 1}, std::vector<int64_t>{-8, 7, 7, -2}));
    EXPECT_EQ(q.error, 0);
}

TEST(QuantizedWeight, ScalesOfBlocksLieAsTheWeightsDo) {
    Tensor w = random_tensor(DType::F32, {64, 3}, 1, "w");
    QuantizedWeight q = quantized_weight(w, DType::I4, 0, 32);
    ASSERT_EQ(q.scale.shape(), (Shape{2, 3}));
    for (int64_t i = 0; i < w.count(); ++i) {
        double s = q.scale.get_f64((i / 3 / 32) * 3 + i % 3);
        EXPECT_LE(std::fabs(q.q.get_f64(i) * s - w.get_f64(i)), s * 0.5001);
    }
}

TEST(QuantizedWeight, Fp8IsWithinItsRounding) {
    Tensor w = random_tensor(DType::F32, {16, 50}, 2, "w");
    QuantizedWeight q = quantized_weight(w, DType::F8E4M3, 0);
    EXPECT_LT(q.error, 1e-3);
    EXPECT_GT(q.error, 0);
    Tensor bad = w.clone();
    bad.set_f64(3, NAN);
    EXPECT_TRUE(std::isinf(quantized_weight(bad, DType::F8E4M3, 0).error));
}

/// A Conv and two matrix products with weights above the least size, and one below.
onnx::Model weights_net(int64_t opset = 17) {
    Builder b(opset);
    std::string x = b.input("x", {"n", 8, 6, 6});
    std::string y = b.node("Conv", {x, b.weights({32, 8, 3, 3})});
    std::string flat = b.node("Flatten", {y});
    std::string h =
        b.node("Gemm", {flat, b.weights({64, 512}), b.weights({64})}, {{"transB", int64_t{1}}});
    std::string m = b.node("MatMul", {b.node("Relu", {h}), b.weights({64, 48})});
    b.output(b.node("MatMul", {m, b.weights({48, 4})}));
    return b.model();
}

struct WeightCase {
    WeightFormat format;
    int64_t opset;
    double tolerance;
    std::vector<std::string> types; // of Conv, Gemm, MatMul
};

TEST(QuantisedWeights, AgreeWithTheModelWithinBounds) {
    const WeightCase cases[] = {{WeightFormat::Int8, 17, 0.01, {"i8", "i8", "i8"}},
                                {WeightFormat::Int8, 11, 0.01, {"i8", "i8", "i8"}},
                                {WeightFormat::Fp8, 17, 0.06, {"f8e4m3", "f8e4m3", "f8e4m3"}},
                                {WeightFormat::Int4, 17, 0.15, {"i8", "i4", "i4"}}};
    for (const WeightCase& c : cases) {
        onnx::Model m = weights_net(c.opset);
        std::vector<QuantizedTensorReport> report;
        QuantizeWeightsOptions options;
        options.format = c.format;
        onnx::Model q = quantised_weights(m, options, &report);
        ASSERT_EQ(report.size(), 4U);
        for (size_t i = 0; i < 3; ++i) {
            EXPECT_EQ(report[i].kept, "");
            EXPECT_EQ(report[i].type, c.types[i]);
        }
        EXPECT_EQ(report[3].kept, "fewer than 1024 elements");
        EXPECT_EQ(slim_test::difference(slim_test::run(q), slim_test::run(m), c.tolerance), "");
        EXPECT_NE(slim_test::difference(slim_test::run(q), slim_test::run(m), 1e-6), "");
    }
}

/// A product with the transpose of an embedding's weight, as exporters write tied weights; or of a
/// weight that nothing else reads.
onnx::Model tied_net(bool tied) {
    Builder b;
    std::string w = b.weights({80, 64});
    std::string x = b.input("x", {3, 64});
    if (tied) {
        std::string at = b.constant(Tensor::i64({5, 0, 79}));
        x = b.node("Add", {x, b.node("Gather", {w, at})});
    }
    b.output(
        b.node("MatMul", {x, b.node("Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}})}));
    return b.model();
}

TEST(QuantisedWeights, TransposedWeightsAreQuantisedAsTheProductReadsThem) {
    for (bool tied : {false, true}) {
        for (WeightFormat format : {WeightFormat::Int8, WeightFormat::Fp8, WeightFormat::Int4}) {
            onnx::Model m = tied_net(tied);
            QuantizeWeightsOptions options;
            options.format = format;
            options.min_elements = 1;
            std::vector<QuantizedTensorReport> report;
            onnx::Model q = quantised_weights(m, options, &report);
            ASSERT_EQ(report.size(), 1U);
            EXPECT_EQ(report[0].kept, "");
            auto is_transpose = [](const onnx::Node& n) { return n.op_type == "Transpose"; };
            EXPECT_TRUE(std::none_of(q.graph.nodes.begin(), q.graph.nodes.end(), is_transpose));
            std::vector<std::string> floats;
            for (const onnx::Tensor& t : q.graph.initializers) {
                if (t.dims == std::vector<int64_t>{80, 64}) {
                    floats.push_back(t.name);
                }
            }
            EXPECT_EQ(floats.size(), tied ? 1U : 0U) << "the weight stays for the embedding alone";
            double most = format == WeightFormat::Int4  ? 0.15
                          : format == WeightFormat::Fp8 ? 0.06
                                                        : 0.01;
            EXPECT_EQ(slim_test::difference(slim_test::run(q), slim_test::run(m), most), "");
        }
    }
}

// Beside 1000, all others of a channel round to 0: 511 * 2.2^2 of 1000^2 is lost.
TEST(QuantisedWeights, SensitiveTensorsStay) {
    Tensor w = Tensor::zeros(DType::F32, {512, 8});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, i < 8 ? 1000.0 : 2.2);
    }
    Builder b;
    b.output(b.node("MatMul", {b.input("x", {1, 512}), b.constant(w)}));
    EXPECT_EQ(message([&] { quantised_weights(b.model(), {}); }),
              "there is no weight to quantise among 1 f32 constants that products read; "
              "'t0': sensitive: i8 would change it by 0.24671383 %");
}

TEST(QuantisedWeights, RefusesWhereNothingIsToBeDone) {
    Builder b;
    b.output(b.node("Relu", {b.input("x", {4})}));
    EXPECT_EQ(message([&] { quantised_weights(b.model(), {}); }),
              "there is no weight to quantise among 0 f32 constants that products read");
}

// --- opsets

TEST(RaisedOpset, RewritesReductionsAndSplits) {
    Builder b(13);
    std::string x = b.input("x", {2, 6, 4});
    std::string mean = b.node("ReduceMean", {x}, {{"axes", std::vector<int64_t>{1}}});
    std::vector<std::string> parts = b.nodes("Split", {x}, 3, {{"axis", int64_t{1}}});
    b.outputs({mean, parts[0], parts[2]});
    onnx::Model m = b.model();
    onnx::Model r = raised_opset(m, 21);
    EXPECT_EQ(r.opset_imports.at(""), 21);
    EXPECT_GE(r.ir_version, 10);
    EXPECT_EQ(r.graph.nodes[0].inputs.size(), 2U);
    EXPECT_EQ(slim_test::difference(slim_test::run(r), slim_test::run(m), 0), "");
}

TEST(RaisedOpset, RefusesWhatChanged) {
    Builder b(12);
    b.output(b.node("Relu", {b.input("x", {4})}));
    EXPECT_EQ(message([&] { raised_opset(b.model(), 19); }),
              "the model has opset 12, this needs opset 19: raise it with onnx.version_converter");
    Builder c(18);
    std::string x = c.input("x", {1, 4, 3});
    c.output(c.node("GroupNormalization", {x, c.weights({2}), c.weights({2})},
                    {{"num_groups", int64_t{2}}}));
    EXPECT_EQ(message([&] { raised_opset(c.model(), 21); }),
              "node '" + c.model().graph.nodes[0].name +
                  "' (GroupNormalization, opset 18): the operator changed in opset 21; raise the "
                  "model to opset 21 with onnx.version_converter");
}

} // namespace
} // namespace ingot
