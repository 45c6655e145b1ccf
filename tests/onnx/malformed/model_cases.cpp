// SPDX-License-Identifier: Apache-2.0
// ModelProto and FunctionProto.
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {
namespace {

Pb function(std::string_view name) {
    return Pb().s(1, name).s(10, "d").s(4, "a").s(5, "b").m(7, node("Neg", {"a"}, {"b"}));
}

std::string with_function(const Pb& f) {
    return model(graph()).m(25, f).bytes();
}

} // namespace

std::vector<MalformedCase> malformed_model() {
    const Pb g = graph();
    return {
        {"NoIrVersion", Pb().m(8, opset("", 17)).m(7, g).bytes(),
         "not an ONNX model: ir_version is 0, expected 1 or more"},
        {"NegativeIrVersion", Pb().i(1, -8).m(8, opset("", 17)).m(7, g).bytes(),
         "not an ONNX model: ir_version is -8, expected 1 or more"},
        {"NoGraph", model_head().bytes(), "the model has no graph"},
        {"EmptyGraph", model(Pb()).bytes(), "the graph has no outputs"},
        {"GraphWithoutOutputs", model(Pb().s(2, "g").m(1, node("Relu", {"x"}, {"y"}))).bytes(),
         "the graph has no outputs"},
        {"NoOpset", Pb().i(1, 8).m(7, g).bytes(), "the model has no opset_import"},
        {"OpsetZero", model(g).m(8, opset("custom", 0)).bytes(),
         "opset_import of domain 'custom' has version 0, expected 1 or more"},
        {"OpsetNegative", model(g).m(8, opset("custom", -1)).bytes(),
         "opset_import of domain 'custom' has version -1, expected 1 or more"},
        {"OpsetWithoutVersion", model(g).m(8, Pb().s(1, "custom")).bytes(),
         "opset_import of domain 'custom' has version 0, expected 1 or more"},
        {"OpsetTwoVersions", model(g).m(8, opset("ai.onnx", 13)).bytes(),
         "opset_import of domain '' has two versions, 17 and 13"},
        {"FunctionWithoutName", with_function(Pb().s(10, "d")), "function #0: has no name"},
        {"FunctionTwice", model(g).m(25, function("f")).m(25, function("f")).bytes(),
         "function 'f': is defined twice with the same domain, name and overload"},
        {"FunctionInputTwice", with_function(function("f").s(4, "a")),
         "function 'f': two inputs are called 'a'"},
        {"FunctionOutputTwice", with_function(function("f").s(5, "b")),
         "function 'f': two outputs are called 'b'"},
        {"FunctionAttributeTwice",
         with_function(function("f").s(6, "k").m(11, attribute("k", 2).i(3, 1))),
         "function 'f': two attributes are called 'k'"},
        {"FunctionNodeWithoutOp", with_function(function("f").m(7, Pb().s(1, "a"))),
         "function 'f': node #1: has no op_type"},
        {"FunctionOpsetZero", with_function(function("f").m(9, opset("", 0))),
         "function 'f': opset_import of domain '' has version 0, expected 1 or "
         "more"},
        {"ReferenceWithValue",
         with_function(function("f").m(
             7, node("Op", {}, {"c"}).m(5, attribute("k", 2).i(3, 1).s(21, "alpha")))),
         "function 'f': node #1 (Op): attribute 'k': refers to attribute "
         "'alpha' and holds a value too"},
    };
}

} // namespace ingot::onnx::test
