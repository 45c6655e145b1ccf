// SPDX-License-Identifier: Apache-2.0
// The importer's refusals, by text and by kind; the parser's error codes come from the kinds
// (tests/api/parser_codes_test.cpp).
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

using Inputs = std::vector<std::string>;

std::string why_refused(Inputs inputs, Node n, std::vector<Tensor> constants = {}) {
    return refusal(model(graph(std::move(inputs), n.outputs, {n}, std::move(constants))));
}

std::string refused_whole(const Model& m) {
    try {
        import_or_throw(m);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

TEST(Refusals, SayWhatIsMissing) {
    EXPECT_EQ(why_refused({"x:f32[4]", "s:i64[K]"}, node("Reshape", {"x", "s"}, {"y"})),
              "the number of elements of input 1, i64[K], is not known before the run, so the rank "
              "of the result "
              "is not");
    EXPECT_EQ(why_refused({"x:f32[2]"}, node("SequenceConstruct", {"x"}, {"y"})),
              "sequences are not supported; a model with a fixed number of tensors needs none");
    EXPECT_EQ(why_refused({"x:f32[2]"}, node("Cast", {"x"}, {"y"}, {int_of("to", 8)})),
              "element type string is not supported");
    EXPECT_EQ(why_refused({"x:f32[2]", "i:i64[2]"}, node("Add", {"x", "i"}, {"y"})),
              "add of f32[2] and i64[2]: the element types differ");
    EXPECT_EQ(why_refused({"x:f32[5]"}, node("Split", {"x"}, {"a"}, {int_of("num_outputs", 0)})),
              "the number of parts is 0 for 1 outputs");
    EXPECT_EQ(why_refused({"x:f32[2,3]"}, node("Reshape", {"x", "s"}, {"y"}),
                          {i64_initializer("s", {-1, -1})}),
              "the shape has -1 more than once");
}

TEST(Refusals, ClassicalMachineLearningSaysWhatToDo) {
    Node n = node("Scaler", {"x"}, {"y"});
    n.domain = "ai.onnx.ml";
    n.name = "scale";
    Model m = model(graph({"x:f32[2]"}, {"y"}, {n}));
    m.opset_imports["ai.onnx.ml"] = 3;
    EXPECT_EQ(refused_whole(m),
              "1 node of the model cannot be imported:\n"
              "  scale (ai.onnx.ml.Scaler, opset 3): Ingot does not know this operator: tree "
              "ensembles, scalers and all others of ai.onnx.ml (classical machine learning) are "
              "not covered; convert the model to tensor operators before (Hummingbird does so), "
              "or run it in ONNX Runtime");
}

TEST(Refusals, TooManyOfThemEndTheImport) {
    Model m = model(graph({"x:f32[2]"}, {"y"}, {}));
    m.graph.nodes.assign(20'000, node("Nothing", {"x"}, {"y"}));
    EXPECT_EQ(refused_whole(m),
              "more than 10000 nodes of the model cannot be imported; the first is #0 (Nothing): "
              "there is no such operator at opset 21, or Ingot does not know it");
}

struct Kind {
    ErrorCode code;
    RefusalKind kind;
};

Kind kind_of(Inputs inputs, Node n, std::vector<Tensor> constants = {}, int64_t opset = 21) {
    std::vector<Refusal> all =
        import_model(model(graph(std::move(inputs), n.outputs, {n}, std::move(constants)), opset))
            .refusals;
    EXPECT_EQ(all.size(), 1U) << n.op_type;
    return all.empty() ? Kind{ErrorCode::Internal, RefusalKind::None}
                       : Kind{all[0].code, all[0].kind};
}

void expect_kind(RefusalKind kind, Inputs inputs, const Node& n, std::vector<Tensor> constants = {},
                 int64_t opset = 21) {
    Kind got = kind_of(std::move(inputs), n, std::move(constants), opset);
    EXPECT_EQ(got.code, ErrorCode::Unsupported) << n.op_type;
    EXPECT_EQ(name(got.kind), name(kind)) << n.op_type;
}

TEST(Refusals, HaveKinds) {
    Attribute half = float_of("alpha", 0.5F);
    expect_kind(RefusalKind::Operator, {"x:f32[2]"}, node("SequenceConstruct", {"x"}, {"y"}));
    expect_kind(RefusalKind::Operator, {"x:f32[2]"}, node("Frobnicate", {"x"}, {"y"}));
    expect_kind(RefusalKind::Attribute, {"a:i32[2,2]", "b:i32[2,2]"},
                node("Gemm", {"a", "b"}, {"y"}, {half}));
    expect_kind(RefusalKind::Input, {"x:f32[2]"},
                node("Dropout", {"x", "ratio", "training"}, {"y"}),
                {initializer("ratio", floats({}, {0.5})), initializer("training", boolean(true))});
    expect_kind(RefusalKind::DataType, {"x:f32[2]"}, node("Cast", {"x"}, {"y"}, {int_of("to", 8)}));
    expect_kind(RefusalKind::Size, {"x:f32[4,6]", "s:f32[2,3]"},
                node("QuantizeLinear", {"x", "s"}, {"y"}));
    expect_kind(RefusalKind::Dynamic, {"x:f32[4]", "s:i64[K]"}, node("Reshape", {"x", "s"}, {"y"}));
    expect_kind(RefusalKind::Dynamic, {"x:f32[1,1,8,8]", "w:f32[1,1,K,K]"},
                node("Conv", {"x", "w"}, {"y"}));
}

TEST(Refusals, OfWhatBreaksTheRulesOfOnnxAreNoRefusals) {
    Kind got = kind_of({"x:f32[2]", "i:i64[2]"}, node("Add", {"x", "i"}, {"y"}));
    EXPECT_EQ(got.code, ErrorCode::InvalidModel);
    EXPECT_EQ(got.kind, RefusalKind::None);
}

/// The report on a node with a body is about the first refused node in it.
TEST(Refusals, OfBodiesPassOutwards) {
    auto branch = [](std::string name, Node n) {
        return graph_of(std::move(name), graph({}, {"y"}, {std::move(n)}));
    };
    Node n = node("If", {"c"}, {"y"},
                  {branch("then_branch", node("Cast", {"x"}, {"y"}, {int_of("to", 8)})),
                   branch("else_branch", node("NoSuchOperator", {"x"}, {"y"}))});
    std::vector<Refusal> all =
        import_model(model(graph({"c:bool[]", "x:f32[]"}, {"y"}, {n}))).refusals;
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].type, "Cast");
    EXPECT_EQ(all[1].type, "If");
    EXPECT_EQ(all[1].code, ErrorCode::Unsupported);
    EXPECT_EQ(all[1].kind, RefusalKind::DataType);
}

} // namespace

} // namespace ingot::onnx::test
