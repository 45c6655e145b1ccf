// SPDX-License-Identifier: Apache-2.0
// GraphProto, NodeProto, AttributeProto, ValueInfoProto.
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {
namespace {

// A graph of `depth` graphs, one in the other.
Pb nested(int depth) {
    Pb g = Pb().s(2, "innermost");
    for (int i = 1; i < depth; ++i) {
        g = Pb().s(2, "g").m(1, node("If", {"c"}, {"y"}).m(5, attribute("body", 5).m(6, g)));
    }
    return g;
}

std::string nesting_error() {
    std::string text;
    for (int i = 0; i < 64; ++i) {
        text += "graph 'g': node #0 (If): attribute 'body': ";
    }
    return text + "graph 'innermost': graphs are nested deeper than 64";
}

Pb many_dims(int count) {
    Pb shape;
    for (int i = 0; i < count; ++i) {
        shape.m(1, Pb().i(1, 1));
    }
    return shape;
}

std::vector<MalformedCase> attribute_cases() {
    const Pb bad_tensor = tensor("", {2}, 1, "1234");
    const Pb scalar = tensor("k", {}, 2, "1");
    return {
        {"AttributeWithoutName", model_with_attribute(Pb().i(20, 2).i(3, 1)).bytes(),
         "graph 'g': node 'n' (Op): attribute #0: has no name"},
        {"AttributeTwice",
         model_with_node(
             node("Op", {}, {"z"}).m(5, attribute("a", 2).i(3, 1)).m(5, attribute("a", 2).i(3, 2)))
             .bytes(),
         "graph 'g': node #1 (Op): two attributes are called 'a'"},
        {"AttributeWithoutTypeAndValue", model_with_attribute(Pb().s(1, "a")).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has neither a type nor a "
         "value"},
        {"AttributeTypeUnknown", model_with_attribute(attribute("a", 99)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 81: field 'type' is 99, "
         "which is no attribute type of ONNX"},
        {"AttributeTypeNegative", model_with_attribute(attribute("a", -1)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 81: field 'type' is -1, "
         "which is no attribute type of ONNX"},
        {"AttributeOfOtherType", model_with_attribute(attribute("a", 2).f(2, 1)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has type int, but holds a "
         "value of type float"},
        {"AttributeOfTwoTypes", model_with_attribute(attribute("a", 2).i(3, 1).s(4, "x")).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has type int, but holds a "
         "value of type string"},
        {"UntypedAttributeOfTwoTypes", model_with_attribute(Pb().s(1, "a").i(3, 1).f(2, 1)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has type float, but holds a "
         "value of type int"},
        {"TensorAttributeWithoutTensor", model_with_attribute(attribute("a", 4)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has type tensor, but no value"},
        {"GraphAttributeWithoutGraph", model_with_attribute(attribute("a", 5)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': has type graph, but no value"},
        {"ReferenceOutsideFunction", model_with_attribute(attribute("a", 2).s(21, "alpha")).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': refers to attribute 'alpha' "
         "of a function, but stands in none"},
        {"AttributeTensorShort", model_with_attribute(attribute("a", 4).m(5, bad_tensor)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': raw data has 4 bytes, "
         "expected 8 (f32 [2])"},
        {"AttributeTensorsShort",
         model_with_attribute(attribute("a", 9).m(10, scalar).m(10, bad_tensor)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': tensor #1: raw data has 4 "
         "bytes, expected 8 (f32 [2])"},
        {"SubgraphInitializerShort",
         model_with_attribute(
             attribute("a", 5).m(6, Pb().s(2, "then").m(5, tensor("w", {2}, 1, "1234"))))
             .bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': graph 'then': initializer "
         "'w': raw data has 4 bytes, expected 8 (f32 [2])"},
        {"SubgraphsInitializerTwice",
         model_with_attribute(attribute("a", 10).m(11, Pb().s(2, "sub").m(5, scalar).m(5, scalar)))
             .bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': graph 'sub': two "
         "initializers are called 'k'"},
    };
}

std::vector<MalformedCase> value_cases() {
    const auto with_type = [](const Pb& type) {
        return model(graph().m(12, Pb().s(1, "z").m(2, type))).bytes();
    };
    const auto with_shape = [&](const Pb& shape) {
        return with_type(Pb().m(1, Pb().i(1, 1).m(2, shape)));
    };
    return {
        {"DimValueNegative", with_shape(Pb().m(1, Pb().i(1, -7))),
         "graph 'g': output 'z': byte 76: field 'dim_value' is -7"},
        {"ShapeOfRank65", with_shape(many_dims(65)),
         "graph 'g': output 'z': byte 335: field 'dim' has more than 64 entries"},
        {"ElemTypeAbove32Bits", with_type(Pb().m(1, Pb().i(1, int64_t{1} << 40))),
         "graph 'g': output 'z': byte 70: field 'elem_type' is 1099511627776, "
         "outside 32 bits"},
        {"TwoKindsOfType", with_type(Pb().m(1, Pb().i(1, 1)).m(4, Pb())),
         "graph 'g': output 'z': byte 72: field 'type' is a second kind of type "
         "for one value"},
        {"TypeTwice", model(graph().m(12, value("z", {}).m(2, Pb()))).bytes(),
         "graph 'g': output 'z': byte 74: field 'type' occurs twice"},
    };
}

} // namespace

std::vector<MalformedCase> malformed_graph() {
    const Pb scalar = tensor("w", {}, 2, "1");
    const Pb sparse =
        Pb().m(1, tensor("w", {1}, 2, "1")).m(2, tensor("", {1}, 7).packed(7, {0})).i(3, 4);
    std::string long_name(300, 'n');
    std::vector<MalformedCase> cases = {
        {"InitializerTwice", model(graph().m(5, scalar).m(5, scalar)).bytes(),
         "graph 'g': two initializers are called 'w'"},
        {"InitializerDenseAndSparse", model(graph().m(5, scalar).m(15, sparse)).bytes(),
         "graph 'g': two initializers are called 'w'"},
        {"InitializerWithoutName", model(graph().m(5, tensor("", {}, 2, "1"))).bytes(),
         "graph 'g': an initializer has no name"},
        {"InputTwice", model(graph().m(11, value("x", {2}))).bytes(),
         "graph 'g': two inputs are called 'x'"},
        {"InputWithoutName", model(graph().m(11, Pb())).bytes(), "graph 'g': an input has no name"},
        {"NodeWithoutOp", model_with_node(Pb().s(1, "x").s(3, "n1")).bytes(),
         "graph 'g': node 'n1': has no op_type"},
        {"NodeEmpty", model_with_node(Pb()).bytes(), "graph 'g': node #1: has no op_type"},
        {"GraphsNested65Deep", model(nested(65)).bytes(), nesting_error()},
        {"ControlCharactersInName",
         model_with_initializer(tensor("a\n\x01z", {1}, 1, "12")).bytes(),
         "graph 'g': initializer 'a\\x0a\\x01z': raw data has 2 bytes, expected "
         "4 (f32 [1])"},
        {"LongName", model_with_initializer(tensor(long_name, {1}, 1, "12")).bytes(),
         "graph 'g': initializer "
         "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn... (300 bytes)': raw data has 2 "
         "bytes, expected 4 (f32 [1])"},
    };
    for (const auto& group : {attribute_cases(), value_cases()}) {
        cases.insert(cases.end(), group.begin(), group.end());
    }
    return cases;
}

} // namespace ingot::onnx::test
