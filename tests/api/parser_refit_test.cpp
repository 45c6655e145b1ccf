// SPDX-License-Identifier: Apache-2.0
// IParserRefitter: new weights from a model's bytes, file and pieces.
#include "NvOnnxParser.h"
#include "api/refit_fixture.h"
#include "onnx/data_type.h"
#include "onnx/model.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "source_dir.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ingot::test {

namespace {

namespace nv = nvinfer1;
using Flag = nv::BuilderFlag;

std::string digits() {
    std::ifstream in(source_dir() + "/examples/digits/digits.onnx", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

onnx::Model model_in(const std::string& bytes) {
    return onnx::read_model(std::as_bytes(std::span(bytes)), "", nullptr);
}

/// The same model with every float twice as large.
std::string doubled(const std::string& bytes) {
    onnx::Model m = model_in(bytes);
    for (onnx::Tensor& t : m.graph.initializers) {
        if (t.data_type == onnx::data_type_number(DType::F32)) {
            auto values = std::make_shared<std::vector<float>>(t.bytes.size() / sizeof(float));
            std::memcpy(values->data(), t.bytes.data(), t.bytes.size());
            for (float& v : *values) {
                v *= 2;
            }
            t.bytes = std::as_bytes(std::span(*values));
            t.owner = values;
        }
    }
    return onnx::write_model(m);
}

class ParserRefitTest : public RefitFixture {
protected:
    std::unique_ptr<nv::ICudaEngine> parsed(const std::string& model, std::vector<Flag> flags) {
        std::unique_ptr<nv::INetworkDefinition> n(builder->createNetworkV2(0));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        for (Flag f : flags) {
            config->setFlag(f);
        }
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*n, logger));
        EXPECT_TRUE(parser->parse(model.data(), model.size()));
        nv::ITensor* in = n->getInput(0);
        nv::Dims d = in->getDimensions();
        std::replace(d.d, d.d + d.nbDims, int64_t{-1}, int64_t{1});
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        for (auto s : {nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT,
                       nv::OptProfileSelector::kMAX}) {
            p->setDimensions(in->getName(), s, d);
        }
        config->addOptimizationProfile(p);
        return engine_of(
            *std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*n, *config)));
    }
    std::vector<float> classify(nv::ICudaEngine& e) {
        auto c = context(e);
        if (c == nullptr) {
            return {};
        }
        nv::Dims d = e.getProfileShape(e.getIOTensorName(0), 0, nv::OptProfileSelector::kOPT);
        int64_t count = 1;
        for (int32_t i = 0; i < d.nbDims; ++i) {
            count *= d.d[i];
        }
        std::vector<float> x(static_cast<size_t>(count));
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 9) / 9;
        }
        EXPECT_TRUE(c->setInputShape(e.getIOTensorName(0), d));
        nv::Dims out = c->getTensorShape(e.getIOTensorName(1));
        int64_t results = 1;
        for (int32_t i = 0; i < out.nbDims; ++i) {
            results *= out.d[i];
        }
        void* bindings[] = {memory->floats(x), memory->allocate(results * 4)};
        EXPECT_TRUE(c->executeV2(bindings)) << logger.take_error();
        return values_at(bindings[1], static_cast<size_t>(results));
    }
    std::string first_model = digits();
    std::string second_model = doubled(first_model);
};

} // namespace

TEST_P(ParserRefitTest, FromBytesFileAndPieces) {
    std::vector<float> expected = classify(*parsed(second_model, {}));
    auto engine = parsed(first_model, {Flag::kREFIT});
    EXPECT_NE(classify(*engine), expected);
    auto refitter = refitter_of(*engine);
    std::unique_ptr<nvonnxparser::IParserRefitter> p(
        nvonnxparser::createParserRefitter(*refitter, logger));
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(p->refitFromBytes(second_model.data(), second_model.size())) << logger.take_error();
    EXPECT_EQ(classify(*engine), expected);
    std::string path = source_dir() + "/examples/digits/digits.onnx";
    EXPECT_TRUE(p->refitFromFile(path.c_str())) << logger.take_error();
    EXPECT_EQ(classify(*engine), classify(*parsed(first_model, {})));
    // One initializer after another, from memory of the application.
    onnx::Model other = model_in(second_model);
    EXPECT_TRUE(p->loadModelProto(first_model.data(), first_model.size()));
    for (const onnx::Tensor& t : other.graph.initializers) {
        EXPECT_TRUE(p->loadInitializer(t.name.c_str(), t.bytes.data(), t.bytes.size()));
    }
    EXPECT_TRUE(p->refitModelProto());
    EXPECT_EQ(classify(*engine), expected);
    EXPECT_EQ(p->getNbErrors(), 0);
}

TEST_P(ParserRefitTest, StrippedEnginesTakeTheModel) {
    auto engine = parsed(first_model, {Flag::kSTRIP_PLAN});
    auto refitter = refitter_of(*engine);
    std::unique_ptr<nvonnxparser::IParserRefitter> p(
        nvonnxparser::createParserRefitter(*refitter, logger));
    EXPECT_FALSE(p->refitFromBytes(second_model.data(), second_model.size()));
    EXPECT_EQ(p->getNbErrors(), 1);
    EXPECT_EQ(p->getError(0)->code(), nvonnxparser::ErrorCode::kREFIT_FAILED);
    p->clearErrors();
    EXPECT_EQ(p->getNbErrors(), 0);
    logger.take_error();
    EXPECT_TRUE(p->refitFromBytes(first_model.data(), first_model.size())) << logger.take_error();
    EXPECT_EQ(classify(*engine), classify(*parsed(first_model, {})));
}

TEST_P(ParserRefitTest, ObserverIsToldWhereWeightsComeFrom) {
    struct Observer : nvonnxparser::IRefitterObserver {
        void onRefittableWeight(const nvonnxparser::RefitRecord& r) noexcept override {
            names.emplace_back(r.trtName);
            EXPECT_EQ(r.nbSources, 1);
            EXPECT_EQ(std::string(r.sourceOnnxNames[0]), r.trtName);
            EXPECT_GT(r.count, 0);
        }
        std::vector<std::string> names;
    } observer;
    auto engine = parsed(first_model, {Flag::kREFIT});
    auto refitter = refitter_of(*engine);
    std::unique_ptr<nvonnxparser::IParserRefitter> p(
        nvonnxparser::createParserRefitter(*refitter, logger));
    p->setRefitObserver(&observer);
    EXPECT_TRUE(p->refitFromBytes(first_model.data(), first_model.size()));
    EXPECT_EQ(static_cast<int32_t>(observer.names.size()), refitter->getAllWeights(0, nullptr));
}

TEST_P(ParserRefitTest, AModelWithoutItsDataGetsItLater) {
    // Missing external data: the application has it in memory.
    onnx::Model m = model_in(first_model);
    auto folder = std::filesystem::temp_directory_path() /
                  str("ingot_refit_", ::getpid(), GetParam() ? "_gpu" : "_cpu");
    std::filesystem::create_directories(folder);
    onnx::WriteOptions options;
    options.external_threshold = 16;
    std::string path = (folder / "model.onnx").string();
    onnx::write_model_file(m, path, options);
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove_all(folder);
    std::unique_ptr<nv::INetworkDefinition> n(builder->createNetworkV2(0));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*n, logger));
    EXPECT_FALSE(parser->parse(bytes.data(), bytes.size()));
    logger.take_error();
    ASSERT_TRUE(parser->loadModelProto(bytes.data(), bytes.size())) << logger.take_error();
    EXPECT_FALSE(parser->parseModelProto());
    EXPECT_NE(logger.take_error().find("loadInitializer()"), std::string::npos);
    for (const onnx::Tensor& t : m.graph.initializers) {
        EXPECT_FALSE(parser->loadInitializer(t.name.c_str(), t.bytes.data(), t.bytes.size() + 1));
        EXPECT_TRUE(parser->loadInitializer(t.name.c_str(), t.bytes.data(), t.bytes.size()));
    }
    logger.take_error();
    EXPECT_TRUE(parser->parseModelProto()) << logger.take_error();
}

INSTANTIATE_TEST_SUITE_P(Devices, ParserRefitTest, testing::Values(false, true),
                         [](const auto& i) { return i.param ? "Gpu" : "Cpu"; });

} // namespace ingot::test
