// SPDX-License-Identifier: Apache-2.0
// The ONNX parser: the same engine as `ingot build`, layers as in the model, errors by node.
#include "NvOnnxParser.h"
#include "api/network_fixture.h"
#include "backends/backends.h"
#include "base/file.h"
#include "ir/text.h"
#include "onnx/data_type.h"
#include "onnx/model.h"
#include "onnx/writer.h"
#include "source_dir.h"
#include "workflow/build.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ingot::test {

namespace {

const std::string source = source_dir();

std::string file_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

class ParserTest : public NetworkTest {
protected:
    ParserTest() { parser.reset(nvonnxparser::createParser(*network, logger)); }
    bool parse(const std::string& bytes) { return parser->parse(bytes.data(), bytes.size()); }
    std::unique_ptr<nvonnxparser::IParser> parser;
};

// --- models made here ----------------------------------------------------------------------------

onnx::Node node(std::string op, std::string name, std::vector<std::string> in,
                std::vector<std::string> out) {
    onnx::Node n;
    n.op_type = std::move(op);
    n.name = std::move(name);
    n.inputs = std::move(in);
    n.outputs = std::move(out);
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

onnx::Model model_of(std::vector<onnx::Node> nodes) {
    onnx::Model m;
    m.ir_version = 9;
    m.opset_imports[""] = 17;
    m.graph.name = "made";
    m.graph.nodes = std::move(nodes);
    m.graph.inputs = {floats("x", {{-1, "n"}, {4, ""}})};
    m.graph.outputs = {floats("y", {{-1, "n"}, {4, ""}})};
    return m;
}

std::string written(const onnx::Model& m) {
    return onnx::write_model(m);
}

// --- the same engine -----------------------------------------------------------------------------

std::vector<std::string> small_models() {
    std::vector<std::string> out = {source + "/examples/digits/digits.onnx"};
    for (const auto& entry : std::filesystem::directory_iterator(source + "/tests/data/contrib")) {
        if (std::filesystem::exists(entry.path() / "model.onnx")) {
            out.push_back((entry.path() / "model.onnx").string());
        }
    }
    std::sort(out.begin() + 1, out.end());
    constexpr size_t step = 8; // all of them agree; these are enough for every day
    std::vector<std::string> some;
    for (size_t i = 0; i < out.size(); i += step) {
        some.push_back(out[i]);
    }
    return some;
}

TEST_F(ParserTest, gives_the_graph_that_ingot_build_gives) {
    size_t compared = 0;
    for (const std::string& path : small_models()) {
        SCOPED_TRACE(path);
        network.reset(builder->createNetworkV2(0));
        parser.reset(nvonnxparser::createParser(*network, logger));
        ASSERT_TRUE(parser->parseFromFile(path.c_str(), 0)) << logger.errors.back();
        std::shared_ptr<const Engine> mine = build();
        ASSERT_NE(mine, nullptr);
        std::shared_ptr<const Engine> other = build_engine(path, {});
        EXPECT_EQ(print(mine->graph()), print(other->graph()));
        EXPECT_EQ(mine->metadata().at("producer"), other->metadata().at("producer"));
        EXPECT_EQ(mine->metadata().at("model"), other->metadata().at("model"));
        ++compared;
    }
    EXPECT_GE(compared, 10U);
}

TEST_F(ParserTest, runs_digits_from_memory_that_is_gone) {
    {
        std::string bytes = file_bytes(source + "/examples/digits/digits.onnx");
        ASSERT_TRUE(parse(bytes));
        std::memset(bytes.data(), 0, bytes.size());
    }
    parser.reset();
    Shape shape = list(network->getInput(0)->getDimensions());
    shape[0] = 1;
    std::vector<Tensor> y = run({numbers(shape, 0, 1)});
    std::shared_ptr<const Engine> other = build_engine(source + "/examples/digits/digits.onnx", {});
    Tensor expected = Context(other, cpu_backend()).run(std::vector{numbers(shape, 0, 1)})[0];
    EXPECT_TRUE(y[0] == expected);
}

// --- layers --------------------------------------------------------------------------------------

TEST_F(ParserTest, layers_are_the_nodes_with_their_names) {
    ASSERT_TRUE(parse(written(
        model_of({node("Relu", "first", {"x"}, {"h"}), node("Sigmoid", "", {"h"}, {"y"})}))));
    ASSERT_EQ(network->getNbLayers(), 2);
    nv::ILayer* first = network->getLayer(0);
    EXPECT_STREQ(first->getName(), "first");
    EXPECT_EQ(first->getType(), nv::LayerType::kACTIVATION);
    EXPECT_STREQ(first->getInput(0)->getName(), "x");
    EXPECT_STREQ(first->getOutput(0)->getName(), "h");
    EXPECT_STREQ(network->getLayer(1)->getName(), "Sigmoid_1");
    EXPECT_EQ(list(first->getOutput(0)->getDimensions()), (std::vector<int64_t>{-1, 4}));
    EXPECT_STREQ(network->getInput(0)->getDimensionName(0), "n");
    EXPECT_STREQ(network->getOutput(0)->getName(), "y");
    EXPECT_EQ(parser->getLayerOutputTensor("first", 0), first->getOutput(0));
    EXPECT_EQ(parser->getLayerOutputTensor("first", 1), nullptr);
    EXPECT_EQ(parser->getLayerOutputTensor("none", 0), nullptr);
}

TEST_F(ParserTest, layers_can_be_added_to_a_parsed_network) {
    ASSERT_TRUE(parse(written(model_of({node("Relu", "", {"x"}, {"y"})}))));
    nv::ITensor* y = network->getOutput(0);
    network->unmarkOutput(*y);
    auto* twice = network->addElementWise(*y, *y, nv::ElementWiseOperation::kSUM);
    Tensor x = numbers({3, 4});
    auto r = run(twice, {x});
    expect_elements(r, 0, {3, 4}, [&](int64_t i) { return 2 * std::max(0.0, x.get_f64(i)); });
}

// --- errors --------------------------------------------------------------------------------------

TEST_F(ParserTest, lists_every_node_that_is_not_supported) {
    EXPECT_FALSE(parse(written(
        model_of({node("Relu", "fine", {"x"}, {"a"}), node("Frobnicate", "odd", {"a"}, {"b"}),
                  node("Relu", "after", {"b"}, {"c"}), node("Quux", "", {"x"}, {"y"})}))));
    ASSERT_EQ(parser->getNbErrors(), 2);
    const nvonnxparser::IParserError* e = parser->getError(0);
    EXPECT_EQ(e->code(), nvonnxparser::ErrorCode::kUNSUPPORTED_NODE);
    EXPECT_STREQ(
        e->desc(),
        "node 'odd' (Frobnicate, opset 17): there is no such operator at opset 17, or Ingot "
        "does not know it");
    EXPECT_EQ(e->node(), 1);
    EXPECT_STREQ(e->nodeName(), "odd");
    EXPECT_STREQ(e->nodeOperator(), "Frobnicate");
    EXPECT_EQ(e->localFunctionStackSize(), 0);
    EXPECT_STREQ(
        parser->getError(1)->desc(),
        "node #3 (Quux, opset 17): there is no such operator at opset 17, or Ingot does not "
        "know it");
    EXPECT_EQ(parser->getError(2), nullptr);
    EXPECT_EQ(network->getNbLayers(), 0);
    EXPECT_EQ(network->getNbInputs(), 0);
    parser->clearErrors();
    EXPECT_EQ(parser->getNbErrors(), 0);
}

TEST_F(ParserTest, divides_a_model_by_support) {
    std::string bytes =
        written(model_of({node("Relu", "a", {"x"}, {"a"}), node("Frobnicate", "b", {"a"}, {"b"}),
                          node("Relu", "c", {"x"}, {"c"}), node("Relu", "d", {"c"}, {"y"})}));
    EXPECT_FALSE(parser->supportsModelV2(bytes.data(), bytes.size()));
    ASSERT_EQ(parser->getNbSubgraphs(), 3);
    EXPECT_TRUE(parser->isSubgraphSupported(0));
    EXPECT_FALSE(parser->isSubgraphSupported(1));
    int64_t length = 0;
    int64_t* nodes = parser->getSubgraphNodes(2, length);
    EXPECT_EQ(std::vector<int64_t>(nodes, nodes + length), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(parser->getSubgraphNodes(3, length), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "IParser::getSubgraphNodes: index 3 is out of range: there are 3");
    EXPECT_EQ(length, 0);
    EXPECT_EQ(network->getNbLayers(), 0);
}

TEST_F(ParserTest, refuses_what_is_no_model) {
    EXPECT_FALSE(parse("certainly not protobuf"));
    ASSERT_GE(parser->getNbErrors(), 1);
    EXPECT_EQ(parser->getError(0)->code(), nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED);
    EXPECT_EQ(parser->getError(0)->node(), -1);
    EXPECT_FALSE(parser->parseFromFile("/nowhere/model.onnx", 0));
    EXPECT_FALSE(parser->parse(nullptr, 4));
}

TEST_F(ParserTest, operators_and_flags) {
    EXPECT_TRUE(parser->supportsOperator("Conv"));
    EXPECT_FALSE(parser->supportsOperator("Frobnicate"));
    using Flag = nvonnxparser::OnnxParserFlag;
    EXPECT_TRUE(parser->getFlag(Flag::kNATIVE_INSTANCENORM));
    parser->setFlag(Flag::kENABLE_PLUGIN_OVERRIDE);
    EXPECT_EQ(parser->getFlags(), 9U);
    parser->clearFlag(Flag::kNATIVE_INSTANCENORM);
    EXPECT_EQ(parser->getFlags(), 8U);
    parser->setFlags(1U << 20U);
    EXPECT_EQ(logger.errors.back(), "IParser::setFlags: the flags 1048576 have bits above 4");
}

// --- weights from the application ----------------------------------------------------------------

TEST_F(ParserTest, takes_initializers_from_memory) {
    onnx::Model m = model_of({node("Add", "", {"x", "w"}, {"y"})});
    std::vector<float> zeros(4, 0);
    onnx::Tensor w;
    w.name = "w";
    w.dims = {4};
    w.data_type = onnx::data_type_number(DType::F32);
    w.bytes = std::as_bytes(std::span(zeros));
    m.graph.initializers.push_back(w);
    std::string bytes = written(m);
    std::vector<float> mine = {1, 2, 3, 4};
    EXPECT_FALSE(parser->parseModelProto());
    ASSERT_TRUE(parser->loadModelProto(bytes.data(), bytes.size()));
    EXPECT_FALSE(parser->loadInitializer("v", mine.data(), 16));
    EXPECT_FALSE(parser->loadInitializer("w", mine.data(), 12));
    EXPECT_EQ(logger.errors.back(),
              "IParser::loadInitializer: initializer 'w' has 16 bytes, but size is 12");
    ASSERT_TRUE(parser->loadInitializer("w", mine.data(), 16));
    ASSERT_TRUE(parser->parseModelProto());
    Tensor x = numbers({2, 4});
    auto y = run({x});
    expect_elements(y, 0, {2, 4}, [&](int64_t i) {
        return x.get_f64(i) + static_cast<double>(mine[static_cast<size_t>(i % 4)]);
    });
}

} // namespace

} // namespace ingot::test
