// SPDX-License-Identifier: Apache-2.0
// An ONNX model as the reader decodes it: plain structs, close to onnx.proto, before operators are
// interpreted. Bulk data stays in the mapped files. The reader has checked sizes and structure; the
// importer checks operators and the connection of names.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::onnx {

struct Graph;

/// A dense tensor. `bytes` holds exactly the elements given by `dims` and `data_type`: row-major,
/// little-endian, without gaps; 4-bit types two per byte, low nibble first; 2- and 6-bit types as
/// one bit stream, low bits first; bool as 0 or 1. `bytes` may be unaligned: copy with memcpy,
/// never cast. `dims` has at most 64 entries, none negative, and the product of the non-zero ones
/// times the element width fits in int64.
struct Tensor {
    std::string name;
    std::vector<int64_t> dims;
    int data_type = 0; // number of TensorProto.DataType; see data_type.h
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner; // keeps `bytes` alive; null when the caller does
    int64_t string_count = 0; // number of strings for data_type string; the strings are not kept
    std::string missing = {}; // why the bytes are missing; read_model may allow it
};

/// Coordinate form: `values` is [n]; `indices` is i64 and [n] (linear) or [n, rank]. Indices are in
/// range of `dims` and strictly ascending. The dense size may be far above the bytes present.
struct SparseTensor {
    Tensor values; // its name is the sparse initializer's name
    Tensor indices;
    std::vector<int64_t> dims;
};

/// The numbers of AttributeProto.AttributeType.
enum class AttributeType : uint8_t {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12, // recognised, content not kept
    TypeProto = 13,     // recognised, content not kept
    TypeProtos = 14,    // recognised, content not kept
};
/// "float", "int", ... as the type's name in onnx.proto, in lower case.
std::string_view name(AttributeType t);

/// Only the member named by `type` holds a value. A reference (non-empty `ref_attr_name`, inside
/// functions only) holds none.
struct Attribute {
    std::string name;
    AttributeType type = AttributeType::Undefined;
    float f = 0;
    int64_t i = 0;
    std::string s;
    Tensor t;
    std::shared_ptr<Graph> g;
    std::shared_ptr<SparseTensor> sparse_tensor;
    std::vector<float> floats;
    std::vector<int64_t> ints;
    std::vector<std::string> strings;
    std::vector<Tensor> tensors;
    std::vector<std::shared_ptr<Graph>> graphs;
    std::string ref_attr_name;
};

struct Node {
    std::string op_type; // never empty
    std::string domain;  // "" is the default domain, also spelled "ai.onnx" in files
    std::string overload;
    std::string name;
    std::vector<std::string> inputs; // "": omitted
    std::vector<std::string> outputs;
    std::vector<Attribute> attributes; // names are unique
};

/// A number (`value` >= 0), else a named dimension, else unknown (`param` empty).
struct ShapeDim {
    int64_t value = -1;
    std::string param;
    bool operator==(const ShapeDim&) const = default;
};

enum class ValueKind : uint8_t { None, Tensor, Sequence, Map, Opaque, SparseTensor, Optional };
std::string_view name(ValueKind k);

struct ValueInfo {
    std::string name;
    ValueKind kind = ValueKind::None;
    int elem_type = 0; // tensors: number of TensorProto.DataType, 0 when not given
    bool has_shape = false;
    std::vector<ShapeDim> dims;
    std::string type_message; // other kinds: the TypeProto's bytes, unchanged, for writing back
};

struct QuantizationAnnotation {
    std::string tensor_name;
    std::vector<std::pair<std::string, std::string>> parameters;
};

/// Initializer names (sparse ones included) are unique and not empty, and so are input names.
struct Graph {
    std::string name;
    std::vector<Node> nodes;
    std::vector<Tensor> initializers;
    std::vector<SparseTensor> sparse_initializers;
    std::vector<ValueInfo> inputs;
    std::vector<ValueInfo> outputs;
    std::vector<ValueInfo> value_info;
    std::vector<QuantizationAnnotation> quantization_annotation;
};

using OpsetImports = std::map<std::string, int64_t, std::less<>>; // domain -> version, above 0

struct FunctionKey {
    std::string domain;
    std::string name;
    std::string overload;
    auto operator<=>(const FunctionKey&) const = default; // NOLINT(modernize-use-nullptr)
};

/// A model-local function. Recursion between functions is not checked here.
struct FunctionProto {
    FunctionKey key;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> attributes;     // without a default
    std::vector<Attribute> attribute_protos; // with one
    std::vector<Node> nodes;
    OpsetImports opset_imports;
    std::vector<ValueInfo> value_info;
};

struct Model {
    int64_t ir_version = 0;
    std::string producer_name;
    std::string producer_version;
    std::string domain;
    int64_t model_version = 0;
    OpsetImports opset_imports;
    Graph graph;
    std::map<FunctionKey, FunctionProto> functions;
    std::vector<Tensor> input_defaults; // of inputs that a run may leave out (input_defaults.h)
    std::vector<std::pair<std::string, std::string>> metadata_props;
    std::string folder;                // where external data is searched; "" for models in memory
    std::shared_ptr<const void> owner; // keeps the file mapped
};

} // namespace ingot::onnx
