// SPDX-License-Identifier: Apache-2.0
// TensorProto.DataType: the name, width, TensorProto field and DType of each number.
#pragma once

#include "base/dtype.h"

#include <optional>
#include <string>
#include <string_view>

namespace ingot::onnx {

/// The fields of TensorProto that hold typed elements, by field number.
enum class DataField : uint8_t {
    None = 0,
    Float = 4,
    Int32 = 5,
    String = 6,
    Int64 = 7,
    Double = 10,
    Uint64 = 11,
};
std::string_view name(DataField f);

struct DataTypeInfo {
    int number = 0;
    std::string_view name; // Ingot's name if it has a DType
    int bits = 0;          // width of one element; 0 for string
    DataField field = DataField::None;
    std::optional<DType> dtype; // nullopt: Ingot has no such type
};

/// Null for a number that onnx.proto does not define, and for 0 (undefined).
const DataTypeInfo* find_data_type(int number);
/// "f32", "string", ... or "undefined", "data type 99".
std::string data_type_name(int number);
std::optional<DType> dtype_of(int number);
int data_type_number(DType t);

} // namespace ingot::onnx
