// SPDX-License-Identifier: Apache-2.0
// TensorProto: sizes that lie, data in the wrong field, values that do not fit.
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {
namespace {

constexpr int64_t huge = int64_t{1} << 62;

MalformedCase tensor_case(const char* name, const Pb& t, const std::string& error) {
    return {name, model_with_initializer(t).bytes(), "graph 'g': initializer 'w': " + error};
}

Pb rank_65() {
    Pb t = tensor("w", {}, 1);
    for (int i = 0; i < 65; ++i) {
        t.i(1, 1);
    }
    return t;
}

std::vector<MalformedCase> size_cases() {
    return {
        tensor_case("RawDataShort", tensor("w", {2, 2}, 1, "123456789012"),
                    "raw data has 12 bytes, expected 16 (f32 [2,2])"),
        tensor_case("RawDataLong", tensor("w", {2}, 10, "12345"),
                    "raw data has 5 bytes, expected 4 (f16 [2])"),
        tensor_case("RawDataForEmptyTensor", tensor("w", {0}, 1, "1234"),
                    "raw data has 4 bytes, expected 0 (f32 [0])"),
        tensor_case("NoData", tensor("w", {2}, 1), "has no data, expected 8 bytes (f32 [2])"),
        tensor_case("ScalarWithoutData", tensor("w", {}, 1),
                    "has no data, expected 4 bytes (f32 [])"),
        tensor_case("RawNibblesLong", tensor("w", {3}, 22, "123"),
                    "raw data has 3 bytes, expected 2 (i4 [3])"),
        tensor_case("RawSixBitShort", tensor("w", {5}, 27, "123"),
                    "raw data has 3 bytes, expected 4 (f6e2m3 [5])"),
        tensor_case("DimNegative", tensor("w", {2, -1}, 1, "1234"),
                    "dim 1 is negative (f32 [2,-1])"),
        tensor_case("ProductOverflows", tensor("w", {huge, 4}, 1, "1234"),
                    "the size of f32 [4611686018427387904,4] does not fit in 64 bits"),
        tensor_case("ProductWrapsToFour", tensor("w", {huge, 4, 4, 1}, 2, "1234"),
                    "the size of u8 [4611686018427387904,4,4,1] does not fit in 64 bits"),
        tensor_case("BytesOverflow", tensor("w", {huge}, 1, "1234"),
                    "the size of f32 [4611686018427387904] does not fit in 64 bits"),
        tensor_case("OverflowBesideZero", tensor("w", {huge, huge, 0}, 1),
                    "the size of f32 [4611686018427387904,4611686018427387904,0] does not "
                    "fit in 64 bits"),
        tensor_case("DeclaresTerabytes", tensor("w", {int64_t{1} << 40}, 1, "1234"),
                    "raw data has 4 bytes, expected 4398046511104 (f32 [1099511627776])"),
        tensor_case("DeclaresTerabytesTyped", tensor("w", {int64_t{1} << 40}, 7).packed(7, {1}),
                    "int64_data has 1 values, expected 1099511627776 (i64 [1099511627776])"),
        tensor_case("Rank65", rank_65(), "byte 198: field 'dims' has more than 64 entries"),
        tensor_case("FloatDataShort", tensor("w", {2, 2}, 1).packed_f(4, {1, 2, 3}),
                    "float_data has 3 values, expected 4 (f32 [2,2])"),
        tensor_case("FloatDataLong", tensor("w", {1}, 1).f(4, 1).f(4, 2),
                    "float_data has 2 values, expected 1 (f32 [1])"),
        tensor_case("Int32DataShort", tensor("w", {3}, 2).packed(5, {1, 2}),
                    "int32_data has 2 values, expected 3 (u8 [3])"),
        tensor_case("BoolDataShort", tensor("w", {3}, 9).packed(5, {1, 0}),
                    "int32_data has 2 values, expected 3 (bool [3])"),
        tensor_case("NibbleDataLong", tensor("w", {3}, 21).packed(5, {1, 2, 3}),
                    "int32_data has 3 values, expected 2 (u4 [3])"),
        tensor_case("ComplexDataOdd", tensor("w", {2}, 14).packed_f(4, {1, 2, 3}),
                    "float_data has 3 values, expected 4 (complex64 [2])"),
        tensor_case("StringDataShort", tensor("w", {3}, 8).s(6, "a").s(6, "b"),
                    "string_data has 2 values, expected 3 (string [3])"),
        tensor_case("FloatDataOfSixBytes", tensor("w", {1}, 1).s(4, "123456"),
                    "byte 70: field 'float_data' has 6 bytes, not a multiple of 4"),
        tensor_case("DoubleDataOfNineBytes", tensor("w", {1}, 11).s(10, "123456789"),
                    "byte 70: field 'double_data' has 9 bytes, not a multiple of 8"),
        tensor_case("PackedVarintCut", tensor("w", {2}, 7).s(7, "\x01\x02\x80"),
                    "byte 74: the data ends inside a number in field 'int64_data'"),
        tensor_case("PackedVarintTooLong",
                    tensor("w", {1}, 7).s(7, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                    "byte 72: a number in field 'int64_data' is longer than 10 bytes"),
    };
}

std::vector<MalformedCase> type_cases() {
    return {
        tensor_case("NoDataType", Pb().i(1, 1).s(8, "w").s(9, "1234"), "has no data_type"),
        tensor_case("DataTypeUndefined", tensor("w", {1}, 0, "1234"), "has no data_type"),
        tensor_case("DataTypeUnknown", tensor("w", {1}, 99, "1234"),
                    "data_type is 99, which is no element type of ONNX"),
        tensor_case("DataTypeNegative", tensor("w", {1}, -1, "1234"),
                    "data_type is -1, which is no element type of ONNX"),
        tensor_case("DataTypeAbove32Bits", tensor("w", {1}, (int64_t{1} << 32) + 1, "1234"),
                    "byte 65: field 'data_type' is 4294967297, outside 32 bits"),
        tensor_case("DataTypeTwice", tensor("w", {1}, 1).i(2, 6),
                    "byte 70: field 'data_type' occurs twice"),
        tensor_case("HalfInFloatData", tensor("w", {1}, 10).f(4, 1),
                    "has 1 values in float_data, but f16 belongs in int32_data"),
        tensor_case("FloatInDoubleData", tensor("w", {1}, 1).d(10, 1),
                    "has 1 values in double_data, but f32 belongs in float_data"),
        tensor_case("I64InInt32Data", tensor("w", {1}, 7).packed(5, {1}),
                    "has 1 values in int32_data, but i64 belongs in int64_data"),
        tensor_case("RawAndFloatData", tensor("w", {1}, 1, "1234").f(4, 1),
                    "has both raw_data and float_data"),
        tensor_case("RawDataTwice", tensor("w", {1}, 1, "1234").s(9, "1234"),
                    "byte 76: field 'raw_data' occurs twice"),
        tensor_case("FloatDataIsVarint", tensor("w", {1}, 1).i(4, 1),
                    "byte 70: field 'float_data' has wire type 0, expected 2"),
        tensor_case("Int64DataIsFixed", tensor("w", {1}, 7).d(7, 1),
                    "byte 70: field 'int64_data' has wire type 1, expected 2"),
        tensor_case("StringInRawData", tensor("w", {1}, 8, "a"),
                    "a string tensor keeps its data in string_data, not in raw_data"),
        tensor_case("U8Is300", tensor("w", {2}, 2).packed(5, {1, 300}),
                    "byte 70: field 'int32_data' has 300 at index 1, which does not fit in "
                    "8 bits (u8)"),
        tensor_case("I8IsMinus129", tensor("w", {1}, 3).packed(5, {-129}),
                    "byte 70: field 'int32_data' has -129 at index 0, which does not fit "
                    "in 8 bits (i8)"),
        tensor_case("HalfIsNegative", tensor("w", {1}, 10).packed(5, {-40000}),
                    "byte 70: field 'int32_data' has -40000 at index 0, which does not fit "
                    "in 16 bits (f16)"),
        tensor_case("I32Is33Bits", tensor("w", {1}, 6).packed(5, {int64_t{1} << 32}),
                    "byte 70: field 'int32_data' has 4294967296 at index 0, which does not "
                    "fit in 32 bits (i32)"),
        tensor_case("NibblesAre256", tensor("w", {2}, 22).packed(5, {256}),
                    "byte 70: field 'int32_data' has 256 at index 0, which does not fit in "
                    "8 bits (i4)"),
        tensor_case("SixBitIs64", tensor("w", {1}, 28).packed(5, {64}),
                    "byte 70: field 'int32_data' has 64 at index 0, which does not fit in "
                    "6 bits (f6e3m2)"),
        tensor_case("U32Is33Bits", tensor("w", {1}, 12).packed(11, {int64_t{1} << 32}),
                    "byte 70: field 'uint64_data' has 4294967296 at index 0, which does "
                    "not fit in 32 bits (u32)"),
        tensor_case("Segment", tensor("w", {1}, 1, "1234").m(3, Pb().i(1, 0).i(2, 1)),
                    "byte 76: field 'segment' is set: tensors in segments are not supported"),
        tensor_case("DataLocationTwo", tensor("w", {1}, 1, "1234").i(14, 2),
                    "byte 76: field 'data_location' is 2, expected 0 (default) or 1 "
                    "(external)"),
    };
}

} // namespace

std::vector<MalformedCase> malformed_tensor() {
    std::vector<MalformedCase> cases = size_cases();
    const std::vector<MalformedCase> types = type_cases();
    cases.insert(cases.end(), types.begin(), types.end());
    return cases;
}

} // namespace ingot::onnx::test
