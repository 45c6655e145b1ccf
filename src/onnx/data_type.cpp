// SPDX-License-Identifier: Apache-2.0
#include "onnx/data_type.h"

#include "base/error.h"

#include <algorithm>
#include <array>

namespace ingot::onnx {
namespace {

constexpr std::array<DataTypeInfo, 28> data_types = {{
    {1, "f32", 32, DataField::Float, DType::F32},
    {2, "u8", 8, DataField::Int32, DType::U8},
    {3, "i8", 8, DataField::Int32, DType::I8},
    {4, "u16", 16, DataField::Int32, DType::U16},
    {5, "i16", 16, DataField::Int32, DType::I16},
    {6, "i32", 32, DataField::Int32, DType::I32},
    {7, "i64", 64, DataField::Int64, DType::I64},
    {8, "string", 0, DataField::String, std::nullopt},
    {9, "bool", 8, DataField::Int32, DType::Bool},
    {10, "f16", 16, DataField::Int32, DType::F16},
    {11, "f64", 64, DataField::Double, DType::F64},
    {12, "u32", 32, DataField::Uint64, DType::U32},
    {13, "u64", 64, DataField::Uint64, DType::U64},
    {14, "complex64", 64, DataField::Float, std::nullopt},
    {15, "complex128", 128, DataField::Double, std::nullopt},
    {16, "bf16", 16, DataField::Int32, DType::BF16},
    {17, "f8e4m3", 8, DataField::Int32, DType::F8E4M3},
    {18, "f8e4m3fnuz", 8, DataField::Int32, std::nullopt},
    {19, "f8e5m2", 8, DataField::Int32, DType::F8E5M2},
    {20, "f8e5m2fnuz", 8, DataField::Int32, std::nullopt},
    {21, "u4", 4, DataField::Int32, DType::U4},
    {22, "i4", 4, DataField::Int32, DType::I4},
    {23, "f4e2m1", 4, DataField::Int32, DType::F4E2M1},
    {24, "f8e8m0", 8, DataField::Int32, std::nullopt},
    {25, "u2", 2, DataField::Int32, std::nullopt},
    {26, "i2", 2, DataField::Int32, std::nullopt},
    {27, "f6e2m3", 6, DataField::Int32, std::nullopt},
    {28, "f6e3m2", 6, DataField::Int32, std::nullopt},
}};

} // namespace

std::string_view name(DataField f) {
    switch (f) {
    case DataField::Float:
        return "float_data";
    case DataField::Int32:
        return "int32_data";
    case DataField::String:
        return "string_data";
    case DataField::Int64:
        return "int64_data";
    case DataField::Double:
        return "double_data";
    case DataField::Uint64:
        return "uint64_data";
    case DataField::None:
        break;
    }
    return "none";
}

const DataTypeInfo* find_data_type(int number) {
    const auto found = std::find_if(data_types.begin(), data_types.end(),
                                    [&](const DataTypeInfo& d) { return d.number == number; });
    return found == data_types.end() ? nullptr : &*found;
}

std::string data_type_name(int number) {
    const DataTypeInfo* info = find_data_type(number);
    if (info != nullptr) {
        return std::string(info->name);
    }
    return number == 0 ? "undefined" : str("data type ", number);
}

std::optional<DType> dtype_of(int number) {
    const DataTypeInfo* info = find_data_type(number);
    return info == nullptr ? std::nullopt : info->dtype;
}

int data_type_number(DType t) {
    const auto found = std::find_if(data_types.begin(), data_types.end(),
                                    [&](const DataTypeInfo& d) { return d.dtype == t; });
    CHECK(found != data_types.end(), "every dtype has a number in ONNX");
    return found->number;
}

} // namespace ingot::onnx
