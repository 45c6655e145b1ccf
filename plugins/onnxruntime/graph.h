// SPDX-License-Identifier: Apache-2.0
// Values, nodes and attributes of an ONNX Runtime graph in our types.
#pragma once

#include "plugins/onnxruntime/host.h"

#include <memory>
#include <optional>

namespace ingot::ort {

/// The type of a value as far as known before a run.
struct ValueType {
    bool is_tensor = false;
    int32_t element = 0; // TensorProto.DataType
    bool has_shape = false;
    std::vector<int64_t> dims; // -1: open
    std::vector<std::string> params;
};
ValueType type_of(const Host& host, const OrtValueInfo* value);
/// "" for null, which is an omitted input or output.
std::string name_of(const Host& host, const OrtValueInfo* value);
std::vector<std::string> names_of(const Host& host, const std::vector<const OrtValueInfo*>& values);

std::vector<const OrtNode*> nodes_of(const Host& host, const OrtGraph* graph);
std::vector<const OrtValueInfo*> inputs_of(const Host& host, const OrtGraph* graph);
std::vector<const OrtValueInfo*> outputs_of(const Host& host, const OrtGraph* graph);
std::vector<const OrtValueInfo*> initializers_of(const Host& host, const OrtGraph* graph);
std::vector<const OrtValueInfo*> inputs_of(const Host& host, const OrtNode* node);
std::vector<const OrtValueInfo*> outputs_of(const Host& host, const OrtNode* node);
std::vector<const OrtValueInfo*> implicit_inputs_of(const Host& host, const OrtNode* node);

struct NodeText {
    std::string name;
    std::string type;
    std::string domain;
};
NodeText text_of(const Host& host, const OrtNode* node);
/// "node 'conv1' (Conv)"; the first output replaces a missing name.
std::string described(const Host& host, const OrtNode* node);

struct Subgraph {
    std::string attribute;
    const OrtGraph* graph;
};
std::vector<Subgraph> subgraphs_of(const Host& host, const OrtNode* node);

/// The bytes of an attribute, read as `type`; strings without their terminator.
std::string attribute_bytes(const Host& host, const OrtOpAttr* attribute, OrtOpAttrType type);
/// An attribute by name; null when the node lacks it.
const OrtOpAttr* find_attribute(const Host& host, const OrtNode* node, const char* name);
std::optional<std::string> string_attribute(const Host& host, const OrtNode* node,
                                            const char* name);
std::optional<int64_t> int_attribute(const Host& host, const OrtNode* node, const char* name);

/// A tensor in the host's own memory; one of strings has no data.
struct TensorView {
    int32_t element = 0;
    std::vector<int64_t> dims;
    const void* data = nullptr;
    size_t bytes = 0;
};
/// Errors: Internal for other kinds of values.
TensorView view_of(const Host& host, const OrtValue* value);
/// The same into `out`, whose memory is used again.
void read_tensor(const Host& host, const OrtValue* value, TensorView& out);

} // namespace ingot::ort
