// SPDX-License-Identifier: Apache-2.0
// Optional inputs: setOptionalInputs() and getInputDefault().
#include "api/parsed_layers.h"
#include "ingot.h"

namespace ingot::test {

namespace {

/// y = x * w + v, where w and v are inputs and initializers. Without elements w has none.
std::string scaled(const std::vector<float>& w = {3, 5}) {
    auto floats = [](const std::vector<float>& v) {
        return Tensor::of<float>(DType::F32, {static_cast<int64_t>(v.size())}, v);
    };
    Made m;
    m.nodes = {op("Mul", {"x", "w"}, {"t"}), op("Add", {"t", "v"}, {"y"})};
    m.inputs = {{"x", floats({0, 0})}, {"w", floats({0, 0})}, {"v", floats({0, 0})}};
    m.initializers = {{"v", floats({1, 1})}};
    if (!w.empty()) {
        m.initializers.push_back({"w", floats(w)});
    }
    return m.bytes();
}

class OptionalInputs : public NetworkTest {
protected:
    OptionalInputs() { parser.reset(nvonnxparser::createParser(*network, logger)); }
    bool parse() { return parser->parse(model.data(), model.size()); }
    std::unique_ptr<nvonnxparser::IParser> parser;
    std::string model = scaled();
};

TEST_F(OptionalInputs, HaveADefaultThatTheEngineTells) {
    const char* names[] = {"w"};
    ASSERT_TRUE(setOptionalInputs(*parser, names, 1));
    ASSERT_TRUE(parse()) << logger.errors.back();
    ASSERT_EQ(network->getNbInputs(), 2); // v is a constant
    std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(bytes, nullptr) << logger.errors.back();
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger));
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    ASSERT_NE(engine, nullptr);
    HostTensor value{};
    ASSERT_TRUE(getInputDefault(*engine, "w", value));
    EXPECT_EQ(value.type, nv::DataType::kFLOAT);
    ASSERT_EQ(value.dims.nbDims, 1);
    ASSERT_EQ(value.dims.d[0], 2);
    EXPECT_EQ(static_cast<const float*>(value.data)[0], 3);
    EXPECT_EQ(static_cast<const float*>(value.data)[1], 5);
    for (const char* name : {"x", "v", "y", "z"}) {
        value.data = nullptr;
        EXPECT_FALSE(getInputDefault(*engine, name, value)) << name;
        EXPECT_EQ(value.data, nullptr) << name;
    }
}

/// A refittable engine in which w has a default and v is a constant.
class RefittedDefaults : public NetworkTest {
protected:
    std::unique_ptr<nv::ICudaEngine> built(const std::string& model,
                                           nv::BuilderFlag flag = nv::BuilderFlag::kREFIT) {
        network.reset(builder->createNetworkV2(0));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        const char* names[] = {"w"};
        EXPECT_TRUE(setOptionalInputs(*parser, names, 1));
        EXPECT_TRUE(parser->parse(model.data(), model.size()));
        config->setFlag(flag);
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        config->clearFlag(flag);
        EXPECT_NE(bytes, nullptr) << logger.errors.back();
        return std::unique_ptr<nv::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    }
    static std::vector<float> default_of(const nv::ICudaEngine& engine) {
        HostTensor value{};
        EXPECT_TRUE(getInputDefault(engine, "w", value));
        const auto* data = static_cast<const float*>(value.data);
        return {data, data + value.dims.d[0]};
    }
    static std::string bytes_of(const nv::ICudaEngine& engine) {
        std::unique_ptr<nv::IHostMemory> bytes(engine.serialize());
        return {static_cast<const char*>(bytes->data()), bytes->size()};
    }
    /// The parser refitter's complaint, or "".
    std::string refit(nv::ICudaEngine& engine, const std::string& model) {
        std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(engine, logger));
        std::unique_ptr<nvonnxparser::IParserRefitter> parser(
            nvonnxparser::createParserRefitter(*refitter, logger));
        bool done = parser->refitFromBytes(model.data(), model.size());
        EXPECT_EQ(done, parser->getNbErrors() == 0);
        return done ? "" : parser->getError(0)->desc();
    }
    std::unique_ptr<nv::IRuntime> runtime{nv::createInferRuntime(logger)};
};

TEST_F(RefittedDefaults, AreTheModelsAsThoseOfABuild) {
    std::unique_ptr<nv::ICudaEngine> engine = built(scaled());
    EXPECT_EQ(refit(*engine, scaled({7, 9})), "");
    EXPECT_EQ(default_of(*engine), (std::vector<float>{7, 9}));
    EXPECT_EQ(bytes_of(*engine), bytes_of(*built(scaled({7, 9}))));
}

TEST_F(RefittedDefaults, AreSetByNameAndListed) {
    std::unique_ptr<nv::ICudaEngine> engine = built(scaled());
    std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine, logger));
    const char* names[4] = {};
    ASSERT_EQ(refitter->getAllWeights(4, names), 2);
    EXPECT_EQ(std::string(names[0]), "v");
    EXPECT_EQ(std::string(names[1]), "w");
    EXPECT_EQ(refitter->getMissingWeights(0, nullptr), 0);
    EXPECT_EQ(refitter->getWeightsPrototype("w").count, 2);
    const std::vector<float> values = {2, 4};
    ASSERT_TRUE(refitter->setNamedWeights("w", {nv::DataType::kFLOAT, values.data(), 2}));
    ASSERT_TRUE(refitter->refitCudaEngine()) << logger.errors.back();
    EXPECT_EQ(default_of(*engine), values);
}

TEST_F(RefittedDefaults, OfAnotherShapeOrAbsentAreRefused) {
    std::unique_ptr<nv::ICudaEngine> engine = built(scaled());
    EXPECT_EQ(refit(*engine, scaled({1})), "weights 'w' are f32[1], expected f32[2]");
    EXPECT_EQ(refit(*engine, scaled({})),
              "the model has no weights 'w'; it is not the one that the "
              "engine was built from");
    EXPECT_EQ(default_of(*engine), (std::vector<float>{3, 5}));
}

TEST_F(RefittedDefaults, OfEnginesForIdenticalWeightsStay) {
    std::unique_ptr<nv::ICudaEngine> engine = built(scaled(), nv::BuilderFlag::kREFIT_IDENTICAL);
    EXPECT_EQ(refit(*engine, scaled()), "");
    EXPECT_NE(refit(*engine, scaled({7, 9})), "");
    auto told = [](const std::string& line) {
        return line.find("weights 'w' differ from those of the build") != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(logger.errors.begin(), logger.errors.end(), told));
    EXPECT_EQ(default_of(*engine), (std::vector<float>{3, 5}));
}

TEST_F(RefittedDefaults, StayInEnginesWithoutWeights) {
    std::unique_ptr<nv::ICudaEngine> engine = built(scaled(), nv::BuilderFlag::kSTRIP_PLAN);
    EXPECT_EQ(default_of(*engine), (std::vector<float>{3, 5}));
    std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine, logger));
    const char* names[4] = {};
    ASSERT_EQ(refitter->getMissingWeights(4, names), 1);
    EXPECT_EQ(std::string(names[0]), "v");
}

TEST_F(OptionalInputs, AreConstantsUnlessTheParserIsAsked) {
    ASSERT_TRUE(parse()) << logger.errors.back();
    EXPECT_EQ(network->getNbInputs(), 1);
}

TEST_F(OptionalInputs, WithoutADefaultAreRefused) {
    const char* names[] = {"x"};
    ASSERT_TRUE(setOptionalInputs(*parser, names, 1));
    EXPECT_FALSE(parse());
    ASSERT_GT(parser->getNbErrors(), 0);
    EXPECT_EQ(std::string(parser->getError(0)->desc()),
              "optional input 'x': it has no default: the model has no initializer of this name; "
              "add one, or let every run bring the input");
    const char* none[] = {nullptr};
    EXPECT_FALSE(setOptionalInputs(*parser, none, 1));
    EXPECT_FALSE(setOptionalInputs(*parser, nullptr, 1));
    ASSERT_TRUE(setOptionalInputs(*parser, nullptr, 0)); // takes them back
    EXPECT_TRUE(parse());
}

} // namespace
} // namespace ingot::test
