// SPDX-License-Identifier: Apache-2.0
// The parser's code for each kind of reason why a node is not imported, as in NvOnnxParser.h.
#include "NvOnnxParser.h"
#include "api/network_fixture.h"
#include "onnx/model_builder.h"
#include "onnx/writer.h"

namespace ingot::test {

namespace {

using nvonnxparser::ErrorCode;
using onnx::test::graph;
using onnx::test::int_of;
using onnx::test::model;
using onnx::test::node;

class ParserCodesTest : public NetworkTest {
protected:
    /// The code of the only error of a model of this node.
    ErrorCode code_of(std::vector<std::string> inputs, const onnx::Node& n,
                      std::vector<onnx::Tensor> constants = {}) {
        std::string bytes = onnx::write_model(
            model(graph(std::move(inputs), n.outputs, {n}, std::move(constants))));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        EXPECT_FALSE(parser->parse(bytes.data(), bytes.size())) << n.op_type;
        EXPECT_EQ(parser->getNbErrors(), 1) << n.op_type;
        if (parser->getNbErrors() != 1) {
            return ErrorCode::kSUCCESS;
        }
        EXPECT_EQ(parser->getError(0)->node(), 0) << parser->getError(0)->desc();
        return parser->getError(0)->code();
    }
};

TEST_F(ParserCodesTest, of_operators) {
    EXPECT_EQ(code_of({"x:f32[2]"}, node("Frobnicate", {"x"}, {"y"})),
              ErrorCode::kUNSUPPORTED_NODE);
    EXPECT_EQ(code_of({"x:f32[2]"}, node("SequenceConstruct", {"x"}, {"y"})),
              ErrorCode::kUNSUPPORTED_NODE);
}

TEST_F(ParserCodesTest, of_attributes) {
    onnx::Attribute half = onnx::test::attribute("alpha", onnx::AttributeType::Float);
    half.f = 0.5F;
    EXPECT_EQ(code_of({"a:i32[2,2]", "b:i32[2,2]"}, node("Gemm", {"a", "b"}, {"y"}, {half})),
              ErrorCode::kUNSUPPORTED_NODE_ATTR);
}

TEST_F(ParserCodesTest, of_inputs) {
    EXPECT_EQ(code_of({"x:f32[2]"}, node("Dropout", {"x", "ratio", "training"}, {"y"}),
                      {onnx::test::initializer("ratio", onnx::test::floats({}, {0.5})),
                       onnx::test::initializer("training", onnx::test::boolean(true))}),
              ErrorCode::kUNSUPPORTED_NODE_INPUT);
}

TEST_F(ParserCodesTest, of_element_types) {
    EXPECT_EQ(code_of({"x:f32[2]"}, node("Cast", {"x"}, {"y"}, {int_of("to", 8)})),
              ErrorCode::kUNSUPPORTED_NODE_DATATYPE);
}

// Kinds decide, not words of the message.
TEST_F(ParserCodesTest, of_sizes_that_only_the_run_knows) {
    EXPECT_EQ(code_of({"x:f32[4]", "s:i64[K]"}, node("Reshape", {"x", "s"}, {"y"})),
              ErrorCode::kUNSUPPORTED_NODE_DYNAMIC);
    EXPECT_EQ(code_of({"x:f32[1,1,8,8]", "w:f32[1,1,K,K]"}, node("Conv", {"x", "w"}, {"y"})),
              ErrorCode::kUNSUPPORTED_NODE_DYNAMIC);
}

TEST_F(ParserCodesTest, of_shapes) {
    EXPECT_EQ(code_of({"x:f32[4,6]", "s:f32[2,3]"}, node("QuantizeLinear", {"x", "s"}, {"y"})),
              ErrorCode::kUNSUPPORTED_NODE_SHAPE);
}

TEST_F(ParserCodesTest, of_nodes_that_break_the_rules_of_onnx) {
    EXPECT_EQ(code_of({"x:f32[2]", "i:i64[2]"}, node("Add", {"x", "i"}, {"y"})),
              ErrorCode::kINVALID_NODE);
    EXPECT_EQ(code_of({"x:f32[4]"}, node("Split", {"x"}, {"y"}, {int_of("num_outputs", 0)})),
              ErrorCode::kINVALID_NODE);
}

} // namespace

} // namespace ingot::test
