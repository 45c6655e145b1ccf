// SPDX-License-Identifier: Apache-2.0
// Refits: an engine with other weights equals, byte for byte, the engine built from these weights;
// engines without weights are small and do not run.
#include "backends/backends.h"
#include "base/error.h"
#include "engine/engine.h"
#include "ir/value_reads.h"
#include "onnx/data_type.h"
#include "onnx/import_node.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "source_dir.h"
#include "workflow/build.h"
#include "workflow/refit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ingot::test {

namespace {

const std::string source_folder = source_dir();

/// The model with every float initializer scaled and moved, so that signs stay where sums of
/// squares want them.
onnx::Model with_other_weights(onnx::Model m) {
    for (onnx::Tensor& t : m.graph.initializers) {
        if (t.data_type != onnx::data_type_number(DType::F32) &&
            t.data_type != onnx::data_type_number(DType::F16)) {
            continue;
        }
        Tensor values = onnx::initializer(t).clone();
        for (int64_t i = 0; i < values.count(); ++i) {
            values.set_f64(i, values.get_f64(i) * 1.25 + 1e-3 * static_cast<double>(i % 7));
        }
        auto kept = std::make_shared<const Tensor>(values);
        t.bytes = kept->bytes();
        t.owner = kept;
    }
    return m;
}

std::shared_ptr<const Engine> built(const onnx::Model& m, RefitRequest request,
                                    DType precision = DType::F32) {
    ValueReads reads;
    Graph g = onnx::import_or_throw(m);
    BuildConfig config;
    config.precision = precision;
    request.read = reads.names();
    config.refit = std::move(request);
    return build_engine_from_graph(std::move(g), model_properties(m), config);
}

std::shared_ptr<const Engine> reloaded(const Engine& engine, const WriteOptions& options = {}) {
    auto bytes = std::make_shared<AlignedBytes>(engine_bytes(engine, options));
    return Engine::load(*bytes, bytes);
}

const WriteOptions plain = {true, false};

std::string message(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.message();
    }
    return "no error";
}

std::vector<std::string> small_models() {
    std::vector<std::string> out = {source_folder + "/examples/digits/digits.onnx"};
    std::vector<std::string> others;
    for (const auto& entry :
         std::filesystem::directory_iterator(source_folder + "/tests/data/contrib")) {
        if (std::filesystem::exists(entry.path() / "model.onnx")) {
            others.push_back((entry.path() / "model.onnx").string());
        }
    }
    std::sort(others.begin(), others.end());
    constexpr size_t every = 8; // seconds, not minutes
    for (size_t i = 0; i < others.size(); i += every) {
        out.push_back(others[i]);
    }
    return out;
}

/// The number of replaced weights.
size_t expect_refit(const std::string& path, DType precision) {
    SCOPED_TRACE(path);
    onnx::Model first = onnx::read_model_file(path);
    onnx::Model second = with_other_weights(first);
    std::shared_ptr<const Engine> a = built(first, {}, precision);
    std::shared_ptr<const Engine> b = built(second, {}, precision);
    std::shared_ptr<const Engine> loaded = reloaded(*a);
    EXPECT_NE(loaded->source(), nullptr);
    NamedTensors weights;
    std::string refused = message([&] { weights = weights_of_model(*loaded, second); });
    if (refused.find("differs from that of the build") != std::string::npos) {
        return 0; // a weight shaped the graph: refused, as it must be
    }
    EXPECT_EQ(refused, "no error");
    EXPECT_EQ(engine_bytes(*refitted(*loaded, weights), plain), engine_bytes(*b, plain));
    std::shared_ptr<const Engine> bare = reloaded(*a, {false, true});
    EXPECT_TRUE(bare->weights_missing());
    EXPECT_EQ(engine_bytes(*refitted(*bare, weights_of_model(*bare, first))), engine_bytes(*a));
    return weights.size();
}

} // namespace

TEST(Refit, EqualsABuildFromTheNewWeights) {
    size_t weights = 0;
    for (const std::string& path : small_models()) {
        weights += expect_refit(path, DType::F32);
    }
    EXPECT_GT(weights, 10U);
}

TEST(Refit, EqualsABuildInHalfPrecision) {
    EXPECT_GT(expect_refit(source_folder + "/examples/digits/digits.onnx", DType::F16), 2U);
    EXPECT_GT(expect_refit(source_folder + "/examples/digits/digits.onnx", DType::BF16), 2U);
}

TEST(Refit, EqualsABuildOfAPretrainedModel) {
    const char* shared = std::getenv("INGOT_SHARED");
    if (shared == nullptr) {
        GTEST_SKIP() << "INGOT_SHARED is not set";
    }
    std::string folder = std::string(shared) + "/models/pretrained/";
    EXPECT_GT(expect_refit(folder + "ultraface_rfb_320.onnx", DType::F32), 50U);
    EXPECT_GT(expect_refit(folder + "mobilenetv2_qdq.onnx", DType::F32), 50U);
}

TEST(Refit, EnginesWithoutWeightsAreSmallAndDoNotRun) {
    onnx::Model m = onnx::read_model_file(source_folder + "/examples/digits/digits.onnx");
    std::shared_ptr<const Engine> a = built(m, {});
    AlignedBytes whole = engine_bytes(*a);
    AlignedBytes bare = engine_bytes(*a, {false, true});
    EXPECT_LT(bare.size() + a->weight_bytes() / 2, whole.size());
    std::shared_ptr<const Engine> loaded = reloaded(*a, {false, true});
    EXPECT_EQ(loaded->weight_bytes(), a->weight_bytes());
    EXPECT_EQ(message([&] { Context(loaded, cpu_backend()); }),
              "the engine was written without its weights: refit it first");
    EXPECT_EQ(engine_bytes(*loaded), bare);
    NamedTensors some = weights_of_model(*loaded, m);
    ASSERT_GT(some.size(), 1U);
    std::string left = some.begin()->first;
    some.erase(some.begin());
    EXPECT_EQ(message([&] { refitted(*loaded, some); }),
              "weights '" + left + "' are missing: set them too");
}

TEST(Refit, IdenticalWeightsAreChecked) {
    onnx::Model m = onnx::read_model_file(source_folder + "/examples/digits/digits.onnx");
    RefitRequest request;
    request.identical = true;
    std::shared_ptr<const Engine> a = built(m, request);
    NamedTensors same = weights_of_model(*a, m);
    NamedTensors others = weights_of_model(*a, with_other_weights(m));
    EXPECT_EQ(engine_bytes(*refitted(*a, same)), engine_bytes(*a));
    EXPECT_NE(message([&] { refitted(*a, others); }).find("differ from those of the build"),
              std::string::npos);
    EXPECT_NE(engine_bytes(*refitted(*a, others, false)), engine_bytes(*a));
}

TEST(Refit, TheNumberOfThreadsChangesNothing) {
    onnx::Model m = onnx::read_model_file(source_folder + "/examples/digits/digits.onnx");
    RefitRequest request;
    request.identical = true;
    std::shared_ptr<const Engine> a = built(m, request);
    NamedTensors same = weights_of_model(*a, m);
    NamedTensors others = weights_of_model(*a, with_other_weights(m));
    AlignedBytes expected = engine_bytes(*refitted(*a, others, false, 1));
    std::string refusal = message([&] { refitted(*a, others, true, 1); });
    for (int threads : {2, 3, 1000}) {
        EXPECT_EQ(engine_bytes(*refitted(*a, others, false, threads)), expected);
        EXPECT_EQ(engine_bytes(*refitted(*a, same, true, threads)), engine_bytes(*a));
        EXPECT_EQ(message([&] { refitted(*a, others, true, threads); }), refusal);
    }
}

/// A weight of several pieces, the last of which is short, and one without elements.
TEST(Refit, LargeWeightsAreCopiedWhole) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[700001]"));
    auto named = [&](const char* name, const Tensor& t) {
        Value v = ops::constant(g, t);
        g.set_value_name(v, name);
        return v;
    };
    Value y = ops::add(g, x, named("w", Tensor::zeros(DType::F32, {700001})));
    Values parts = {y, named("none", Tensor::zeros(DType::F32, {0}))};
    g.add_output("y", ops::concat(g, parts, 0));
    BuildConfig config;
    config.refit = RefitRequest();
    auto engine = build_engine_from_graph(std::move(g), {}, config);
    Tensor w = Tensor::empty(DType::F32, {700001});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, static_cast<double>(i));
    }
    NamedTensors given{{"w", w}};
    auto made = refitted(*engine, given, true, 4);
    EXPECT_EQ(named_constants(*made->source()->graph).at("w"), w);
    EXPECT_NE(named_constants(*made->source()->graph).at("w").bytes().data(), w.bytes().data());
}

TEST(Refit, SaysWhatIsWrong) {
    onnx::Model m = onnx::read_model_file(source_folder + "/examples/digits/digits.onnx");
    std::shared_ptr<const Engine> a = built(m, {});
    const Weight& w = a->source()->weights.front();
    EXPECT_EQ(message([&] {
                  refitted(*a, {{"nothing", Tensor::zeros(w.dtype, w.shape)}});
              }),
              "the engine has no weights 'nothing'");
    EXPECT_EQ(
        message([&] {
            refitted(*a, {{w.name, Tensor::zeros(DType::F32, {1, 1, 1})}});
        }),
        str("weights '", w.name, "' are f32[1,1,1], expected ", Type{w.dtype, to_dims(w.shape)}));
    EXPECT_EQ(message([&] { refitted(*a->with_source(nullptr), {}); }),
              "the engine cannot be refitted: build it with a refit flag");
    EXPECT_NE(message([&] {
                  engine_bytes(*a->with_source(nullptr), {false, true});
              }).find("must be refittable"),
              std::string::npos);
    m.graph.initializers.clear();
    EXPECT_NE(message([&] { weights_of_model(*a, m); }).find("the model has no weights"),
              std::string::npos);
}

namespace {

onnx::Tensor initializer_of(std::string name, const Tensor& t) {
    auto kept = std::make_shared<const Tensor>(t);
    onnx::Tensor out;
    out.name = std::move(name);
    out.dims = kept->shape();
    out.data_type = onnx::data_type_number(t.dtype());
    out.bytes = kept->bytes();
    out.owner = kept;
    return out;
}

onnx::Node node(std::string op, std::vector<std::string> in, std::string out) {
    onnx::Node n;
    n.op_type = std::move(op);
    n.name = out;
    n.inputs = std::move(in);
    n.outputs = {std::move(out)};
    return n;
}

onnx::ValueInfo floats(std::string name, std::vector<onnx::ShapeDim> dims) {
    onnx::ValueInfo v;
    v.name = std::move(name);
    v.kind = onnx::ValueKind::Tensor;
    v.elem_type = onnx::data_type_number(DType::F32);
    v.has_shape = true;
    v.dims = std::move(dims);
    return v;
}

/// y = resize(x + w, scales), with an initializer that is a shape and one that nobody uses.
onnx::Model with_shapes(const std::vector<float>& scales) {
    onnx::Model m;
    m.ir_version = 9;
    m.opset_imports[""] = 17;
    m.graph.inputs = {floats("x", {{4, ""}})};
    m.graph.outputs = {floats("y", {{1, ""}, {1, ""}, {2, ""}, {4, ""}})};
    m.graph.initializers = {
        initializer_of("w", Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 2, 3, 4})),
        initializer_of("shape", Tensor::i64({1, 1, 2, 2})),
        initializer_of("unused", Tensor::zeros(DType::F32, {3})),
        initializer_of("scales", Tensor::of<float>(DType::F32, {4}, scales))};
    m.graph.nodes = {node("Add", {"x", "w"}, "sum"), node("Reshape", {"sum", "shape"}, "image"),
                     node("Resize", {"image", "", "scales"}, "y")};
    return m;
}

} // namespace

TEST(Refit, WhatShapesTheGraphIsNoWeight) {
    onnx::Model m = with_shapes({1, 1, 1, 2});
    std::shared_ptr<const Engine> a = built(m, {});
    ASSERT_EQ(a->source()->weights.size(), 1U);
    EXPECT_EQ(a->source()->weights[0].name, "w");
    EXPECT_EQ(a->source()->fixed.count("scales"), 1U);
    EXPECT_EQ(a->source()->fixed.count("shape"), 1U);
    EXPECT_EQ(message([&] {
                  weights_of_model(*a, with_shapes({1, 1, 2, 1}));
              }),
              "constant 'scales' of the model differs from that of the build, but cannot be "
              "refitted; build the engine anew");
    RefitRequest request;
    request.only_named = true;
    request.named = {"scales"};
    EXPECT_NE(message([&] { built(m, request); }).find("was built from their values"),
              std::string::npos);
    request.named = {"w"};
    EXPECT_EQ(built(m, request)->source()->weights.size(), 1U);
    request.named = {"absent"};
    EXPECT_NE(message([&] { built(m, request); }).find("does not have them"), std::string::npos);
}

} // namespace ingot::test
