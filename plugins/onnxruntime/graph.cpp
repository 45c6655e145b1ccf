// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/graph.h"

namespace ingot::ort {

ValueType type_of(const Host& host, const OrtValueInfo* value) {
    ValueType out;
    const auto* info = host.get_from<const OrtTypeInfo*>(host.api->GetValueInfoTypeInfo, value);
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    if (info != nullptr) {
        host.check(host.api->CastTypeInfoToTensorInfo(info, &tensor));
    }
    if (tensor == nullptr) {
        return out;
    }
    out.element = host.get_from<ONNXTensorElementDataType>(host.api->GetTensorElementType, tensor);
    out.is_tensor = out.element != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    out.has_shape = host.api->TensorTypeAndShape_HasShape(tensor);
    if (!out.has_shape) {
        return out;
    }
    auto rank = host.get_from<size_t>(host.api->GetDimensionsCount, tensor);
    out.dims.resize(rank);
    std::vector<const char*> params(rank, nullptr);
    if (rank != 0) {
        host.check(host.api->GetDimensions(tensor, out.dims.data(), rank));
        host.check(host.api->GetSymbolicDimensions(tensor, params.data(), rank));
    }
    for (const char* p : params) {
        out.params.emplace_back(p == nullptr ? "" : p);
    }
    return out;
}

std::string name_of(const Host& host, const OrtValueInfo* value) {
    if (value == nullptr) {
        return {};
    }
    const char* name = host.get_from<const char*>(host.api->GetValueInfoName, value);
    return name == nullptr ? "" : name;
}

std::vector<std::string> names_of(const Host& host,
                                  const std::vector<const OrtValueInfo*>& values) {
    std::vector<std::string> out;
    for (const OrtValueInfo* v : values) {
        out.push_back(name_of(host, v));
    }
    return out;
}

std::vector<const OrtNode*> nodes_of(const Host& host, const OrtGraph* graph) {
    return host.list(host.api->Graph_GetNumNodes, host.api->Graph_GetNodes, graph);
}

std::vector<const OrtValueInfo*> inputs_of(const Host& host, const OrtGraph* graph) {
    return host.list(host.api->Graph_GetNumInputs, host.api->Graph_GetInputs, graph);
}

std::vector<const OrtValueInfo*> outputs_of(const Host& host, const OrtGraph* graph) {
    return host.list(host.api->Graph_GetNumOutputs, host.api->Graph_GetOutputs, graph);
}

std::vector<const OrtValueInfo*> initializers_of(const Host& host, const OrtGraph* graph) {
    return host.list(host.api->Graph_GetNumInitializers, host.api->Graph_GetInitializers, graph);
}

std::vector<const OrtValueInfo*> inputs_of(const Host& host, const OrtNode* node) {
    return host.list(host.api->Node_GetNumInputs, host.api->Node_GetInputs, node);
}

std::vector<const OrtValueInfo*> outputs_of(const Host& host, const OrtNode* node) {
    return host.list(host.api->Node_GetNumOutputs, host.api->Node_GetOutputs, node);
}

std::vector<const OrtValueInfo*> implicit_inputs_of(const Host& host, const OrtNode* node) {
    return host.list(host.api->Node_GetNumImplicitInputs, host.api->Node_GetImplicitInputs, node);
}

NodeText text_of(const Host& host, const OrtNode* node) {
    auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
    NodeText out{text(host.get_from<const char*>(host.api->Node_GetName, node)),
                 text(host.get_from<const char*>(host.api->Node_GetOperatorType, node)),
                 text(host.get_from<const char*>(host.api->Node_GetDomain, node))};
    if (out.domain == "ai.onnx") {
        out.domain.clear();
    }
    return out;
}

std::string described(const Host& host, const OrtNode* node) {
    NodeText t = text_of(host, node);
    if (t.name.empty()) {
        for (const OrtValueInfo* out : outputs_of(host, node)) {
            t.name = t.name.empty() ? name_of(host, out) : t.name;
        }
    }
    return str("node '", t.name, "' (", t.domain, t.domain.empty() ? "" : ".", t.type, ")");
}

std::vector<Subgraph> subgraphs_of(const Host& host, const OrtNode* node) {
    std::vector<const OrtGraph*> graphs(
        host.get_from<size_t>(host.api->Node_GetNumSubgraphs, node));
    std::vector<const char*> names(graphs.size(), nullptr);
    std::vector<Subgraph> out;
    if (!graphs.empty()) {
        host.check(host.api->Node_GetSubgraphs(node, graphs.data(), graphs.size(), names.data()));
    }
    for (size_t i = 0; i < graphs.size(); ++i) {
        out.push_back({names[i], graphs[i]});
    }
    return out;
}

namespace {

/// Size of a text attribute as ReadOpAttr tells it. A call without a buffer fails, and tells it
/// too.
size_t size_of(const Host& host, const OrtOpAttr* attribute, OrtOpAttrType type) {
    size_t bytes = 0;
    if (OrtStatus* status = host.api->ReadOpAttr(attribute, type, nullptr, 0, &bytes)) {
        host.api->ReleaseStatus(status);
    }
    return bytes;
}

/// Whether this release counts a zero behind a text, which may end with zeros of its own.
bool counts_terminator(const Host& host) {
    OrtOpAttr* probe = nullptr;
    host.check(host.api->CreateOpAttr("probe", "x", 1, ORT_OP_ATTR_STRING, &probe));
    size_t bytes = size_of(host, probe, ORT_OP_ATTR_STRING);
    host.api->ReleaseOpAttr(probe);
    return bytes > 1;
}

} // namespace

std::string attribute_bytes(const Host& host, const OrtOpAttr* attribute, OrtOpAttrType type) {
    size_t bytes = size_of(host, attribute, type);
    std::string out(bytes, '\0');
    if (bytes != 0) {
        host.check(host.api->ReadOpAttr(attribute, type, out.data(), bytes, &bytes));
        out.resize(bytes);
    }
    if (type == ORT_OP_ATTR_STRING && !out.empty() && counts_terminator(host)) {
        out.pop_back();
    }
    return out;
}

const OrtOpAttr* find_attribute(const Host& host, const OrtNode* node, const char* name) {
    const OrtOpAttr* found = nullptr;
    if (OrtStatus* status = host.api->Node_GetAttributeByName(node, name, &found)) {
        host.api->ReleaseStatus(status);
        return nullptr;
    }
    return found;
}

std::optional<std::string> string_attribute(const Host& host, const OrtNode* node,
                                            const char* name) {
    const OrtOpAttr* a = find_attribute(host, node, name);
    if (a == nullptr ||
        host.get_from<OrtOpAttrType>(host.api->OpAttr_GetType, a) != ORT_OP_ATTR_STRING) {
        return std::nullopt;
    }
    return attribute_bytes(host, a, ORT_OP_ATTR_STRING);
}

std::optional<int64_t> int_attribute(const Host& host, const OrtNode* node, const char* name) {
    const OrtOpAttr* a = find_attribute(host, node, name);
    if (a == nullptr ||
        host.get_from<OrtOpAttrType>(host.api->OpAttr_GetType, a) != ORT_OP_ATTR_INT) {
        return std::nullopt;
    }
    int64_t v = 0;
    size_t bytes = 0;
    host.check(host.api->ReadOpAttr(a, ORT_OP_ATTR_INT, &v, sizeof(v), &bytes));
    return v;
}

TensorView view_of(const Host& host, const OrtValue* value) {
    TensorView out;
    read_tensor(host, value, out);
    return out;
}

void read_tensor(const Host& host, const OrtValue* value, TensorView& out) {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    host.check(host.api->GetTensorTypeAndShape(value, &info));
    std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(host.api->ReleaseTensorTypeAndShapeInfo)>
        owned(info, host.api->ReleaseTensorTypeAndShapeInfo);
    out.element = host.get_from<ONNXTensorElementDataType>(host.api->GetTensorElementType, info);
    out.dims.resize(host.get_from<size_t>(host.api->GetDimensionsCount, info));
    if (!out.dims.empty()) {
        host.check(host.api->GetDimensions(info, out.dims.data(), out.dims.size()));
    }
    if (out.element != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        host.check(host.api->GetTensorSizeInBytes(value, &out.bytes));
        host.check(host.api->GetTensorData(value, &out.data));
    } else {
        out.bytes = 0;
        out.data = nullptr;
    }
}

} // namespace ingot::ort
