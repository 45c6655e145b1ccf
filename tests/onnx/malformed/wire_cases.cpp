// SPDX-License-Identifier: Apache-2.0
// Damage below the level of ONNX: keys, lengths, varints, wire types, and files of another kind.
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {

namespace {

using namespace std::string_literals;

std::vector<MalformedCase> byte_cases() {
    const std::string good = model(graph()).bytes();
    return {
        {"EmptyFile", "", "the file is empty"},
        {"GitLfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
         "this is a Git LFS pointer, not the file it stands for; fetch it with 'git lfs pull'"},
        {"JsonText", "{\"graph\": 1}",
         "not an ONNX model: byte 0: invalid wire type 3 of field 15"},
        {"PngFile", "\x89PNG\r\n\x1a\n"s,
         "not an ONNX model: byte 0: field 1281 declares 8 bytes, but 6 are left"},
        {"ZipFile", "PK\x03\x04\x14\x00"s, "not an ONNX model: byte 2: invalid field number 0"},
        {"FieldNumberZero", "\x02\x00"s, "not an ONNX model: byte 0: invalid field number 0"},
        {"KeyAbove32Bits", "\x80\x80\x80\x80\x80\x01\x00"s,
         "not an ONNX model: byte 0: invalid field number 4294967296"},
        {"WireTypeGroup", "\x0b"s, "not an ONNX model: byte 0: invalid wire type 3 of field 1"},
        {"WireTypeSix", good + "\x0e", "byte 61: invalid wire type 6 of field 1"},
        {"WireTypeSeven", good + "\x0f", "byte 61: invalid wire type 7 of field 1"},
        {"VarintTooLong", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,
         "byte 1: a number in field 'ir_version' is longer than 10 bytes"},
        {"VarintCut", "\x08\x80"s, "byte 1: the data ends inside a number in field 'ir_version'"},
        {"KeyCut", good + "\x80", "byte 61: the data ends inside a number in a field key"},
        {"LengthCut", model_head().bytes() + "\x3a",
         "byte 9: the data ends inside a number in field 'graph'"},
        {"LengthPastEnd", "\x08\x08\x3a\x10\x0a\x00"s,
         "byte 2: field 'graph' declares 16 bytes, but 2 are left"},
        {"LengthWrapsIn32Bits", "\x08\x08\x3a\x82\x80\x80\x80\x10\x12\x00"s,
         "byte 2: field 'graph' declares 4294967298 bytes, but 2 are left"},
        {"LengthWrapsIn64Bits", "\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x00"s,
         "byte 2: field 'graph' declares 18446744073709551615 bytes, but 2 are "
         "left"},
        {"Fixed32Cut", good + "\x9d\x06\x01\x02",
         "byte 61: field 99 declares 4 bytes, but 2 are left"},
        {"Fixed64Cut", good + "\x99\x06\x01\x02\x03\x04",
         "byte 61: field 99 declares 8 bytes, but 4 are left"},
        {"UnknownFieldPastEnd", good + "\x9a\x06\x05zz",
         "byte 61: field 99 declares 5 bytes, but 2 are left"},
        {"TrailingGarbage", good + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         "byte 61: a number in a field key is longer than 10 bytes"},
    };
}

std::vector<MalformedCase> field_cases() {
    return {
        {"GraphIsANumber", model_head().i(7, 1).bytes(),
         "byte 8: field 'graph' has wire type 0, expected 2"},
        {"GraphIsAFloat", model_head().f(7, 1).bytes(),
         "byte 8: field 'graph' has wire type 5, expected 2"},
        {"IrVersionIsText", Pb().s(1, "8").bytes(),
         "byte 0: field 'ir_version' has wire type 2, expected 0"},
        {"GraphTwice", model(graph()).m(7, graph()).bytes(), "byte 61: field 'graph' occurs twice"},
        {"NodeLargerThanGraph", model(Pb().s(2, "g").raw("\x0a\x40\x12")).bytes(),
         "graph 'g': byte 13: field 'node' declares 64 bytes, but 1 are left"},
        {"NodeNameLargerThanNode",
         model(graph().m(1, node("Op", {"x"}, {"z"}).raw("\x1a\x09zz"))).bytes(),
         "graph 'g': node #1 (Op): byte 73: field 'name' declares 9 bytes, but "
         "2 are left"},
        {"InputIsANumber", model_with_node(node("Op", {"x"}, {"z"}).i(1, 5)).bytes(),
         "graph 'g': node #1 (Op): byte 73: field 'input' has wire type 0, "
         "expected 2"},
        {"PackedFloatsOfSevenBytes",
         model_with_attribute(attribute("a", 6).s(7, "1234567")).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 84: field 'floats' has "
         "7 bytes, not a multiple of 4"},
        {"FloatAttributeIsDouble", model_with_attribute(attribute("a", 1).d(2, 1)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 84: field 'f' has wire "
         "type 1, expected 5"},
        {"PackedIntsCut", model_with_attribute(attribute("a", 7).s(8, "\x01\x80")).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 87: the data ends "
         "inside a number in field 'ints'"},
        {"IntsAreDoubles", model_with_attribute(attribute("a", 7).d(8, 1)).bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': byte 84: field 'ints' has "
         "wire type 1, expected 2"},
    };
}

} // namespace

std::vector<MalformedCase> malformed_wire() {
    std::vector<MalformedCase> cases = byte_cases();
    const std::vector<MalformedCase> fields = field_cases();
    cases.insert(cases.end(), fields.begin(), fields.end());
    return cases;
}

} // namespace ingot::onnx::test
