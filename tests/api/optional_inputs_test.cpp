// SPDX-License-Identifier: Apache-2.0
// Optional inputs: setOptionalInputs() and getInputDefault().
#include "api/parsed_layers.h"
#include "ingot.h"

namespace ingot::test {

namespace {

/// y = x * w + v, where w and v are inputs and initializers.
std::string scaled() {
    auto floats = [](const std::vector<float>& v) { return Tensor::of<float>(DType::F32, {2}, v); };
    Made m;
    m.nodes = {op("Mul", {"x", "w"}, {"t"}), op("Add", {"t", "v"}, {"y"})};
    m.inputs = {{"x", floats({0, 0})}, {"w", floats({0, 0})}, {"v", floats({0, 0})}};
    m.initializers = {{"w", floats({3, 5})}, {"v", floats({1, 1})}};
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
