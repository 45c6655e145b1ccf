// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of onnx.proto.
#include "plugins/onnxruntime/onnx_model.h"

#include "plugins/onnxruntime/files_beside.h"
#include "plugins/onnxruntime/proto.h"

#include <cstring>
#include <functional>
#include <numeric>

namespace ingot::ort {

namespace {

/// Constants up to this size are copied into the model, because importers read small ones.
constexpr size_t inline_bytes = 1024;

Proto type_proto(const ValueType& t) {
    Proto tensor;
    tensor.integer(1, t.element);
    if (t.has_shape) {
        Proto shape;
        for (size_t i = 0; i < t.dims.size(); ++i) {
            Proto dim;
            if (t.dims[i] >= 0) {
                dim.integer(1, t.dims[i]);
            } else if (!t.params[i].empty()) {
                dim.text(2, t.params[i]);
            }
            shape.message(1, dim);
        }
        tensor.message(2, shape);
    }
    return Proto().message(1, tensor);
}

Proto value_info(const Host& host, const OrtValueInfo* value) {
    Proto out;
    out.text(1, name_of(host, value));
    if (ValueType t = type_of(host, value); t.is_tensor) {
        out.message(2, type_proto(t));
    }
    return out;
}

Proto tensor_head(const TensorView& t) {
    Proto out;
    for (int64_t d : t.dims) {
        out.integer(1, d);
    }
    return out.integer(2, t.element);
}

/// Data in a file beside the source model.
Proto& put_place(Proto& tensor, const ExternalPlace& place, size_t bytes) {
    auto entry = [&](const char* key, const std::string& value) {
        tensor.message(13, Proto().text(1, key).text(2, value));
    };
    entry("location", place.file);
    entry("offset", std::to_string(place.offset));
    entry("length", std::to_string(bytes));
    return tensor.integer(14, 1);
}

Proto tensor_proto(const TensorView& t, const std::string& name, bool with_data) {
    Proto out = tensor_head(t);
    out.text(8, name);
    if (t.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        // Empty ones: no node that reads strings is claimed, but others of the model are.
        int64_t count =
            std::accumulate(t.dims.begin(), t.dims.end(), int64_t{1}, std::multiplies<>());
        for (int64_t i = 0; i < count; ++i) {
            out.text(6, "");
        }
        return out;
    }
    if (with_data) {
        return out.text(9, {static_cast<const char*>(t.data), t.bytes});
    }
    return out; // the data is passed beside the model
}

std::optional<ExternalPlace> external_place(const Host& host, const OrtValueInfo* v) {
    auto* info = host.get_from<OrtExternalInitializerInfo*>(
        host.api->ValueInfo_GetExternalInitializerInfo, v);
    if (info == nullptr) {
        return std::nullopt;
    }
    std::unique_ptr<OrtExternalInitializerInfo, decltype(host.api->ReleaseExternalInitializerInfo)>
        owned(info, host.api->ReleaseExternalInitializerInfo);
    const char* file = host.api->ExternalInitializerInfo_GetFilePath(info);
    int64_t offset = host.api->ExternalInitializerInfo_GetFileOffset(info);
    if (file == nullptr || *file == '\0' || offset < 0) {
        return std::nullopt;
    }
    return ExternalPlace{file, static_cast<uint64_t>(offset)};
}

class Writer {
public:
    Writer(const Host& host, bool self_contained) : host_(host), self_contained_(self_contained) {}

    Proto node(const OrtNode* n) {
        NodeText t = text_of(host_, n);
        Proto out;
        for (const OrtValueInfo* v : inputs_of(host_, n)) {
            out.text(1, name_of(host_, v));
        }
        for (const OrtValueInfo* v : outputs_of(host_, n)) {
            out.text(2, name_of(host_, v));
        }
        out.text(3, t.name).text(4, t.type);
        with_place([&] { return described(host_, n); }, [&] { attributes(n, out); });
        return out.text(7, t.domain);
    }

    /// A constant of the main graph. With `files`, those that they find are named only.
    void initializer(const OrtValueInfo* v, TensorView t, FilesBeside* files, Proto& graph,
                     OnnxModel& model) {
        const std::string name = name_of(host_, v);
        std::optional<ExternalPlace> place = external_place(host_, v);
        if (place) {
            model.external.emplace(name, *place);
        }
        bool with_data = self_contained_ || t.bytes <= inline_bytes;
        if (place && !with_data && files != nullptr && (place = files->find(*place, t))) {
            Proto tensor = tensor_head(t);
            tensor.text(8, name);
            graph.message(5, put_place(tensor, *place, t.bytes));
            model.in_files.insert(name);
            model.weights.emplace(name, std::move(t));
            return;
        }
        graph.message(5, tensor_proto(t, name, with_data));
        if (!with_data) {
            model.weights.emplace(name, std::move(t));
        }
    }

private:
    void attributes(const OrtNode* n, Proto& out) {
        std::vector<Subgraph> bodies = subgraphs_of(host_, n);
        for (const Subgraph& s : bodies) {
            Proto a;
            a.text(1, s.attribute).message(6, body(s.graph)).integer(20, 5);
            out.message(5, a);
        }
        for (const OrtOpAttr* a :
             host_.list(host_.api->Node_GetNumAttributes, host_.api->Node_GetAttributes, n)) {
            auto type = host_.get_from<OrtOpAttrType>(host_.api->OpAttr_GetType, a);
            if (type != ORT_OP_ATTR_GRAPH) {
                std::string name = host_.get_from<const char*>(host_.api->OpAttr_GetName, a);
                out.message(5, attribute(a, name, type));
            }
        }
    }

    Proto attribute(const OrtOpAttr* a, const std::string& name, OrtOpAttrType type) {
        Proto out;
        out.text(1, name);
        if (type == ORT_OP_ATTR_TENSOR) {
            auto* value =
                host_.get_from<OrtValue*>(host_.api->OpAttr_GetTensorAttributeAsOrtValue, a);
            std::unique_ptr<OrtValue, decltype(host_.api->ReleaseValue)> owned(
                value, host_.api->ReleaseValue);
            return out.message(5, tensor_proto(view_of(host_, value), "", true)).integer(20, 4);
        }
        const std::string bytes = attribute_bytes(host_, a, type);
        switch (type) {
        case ORT_OP_ATTR_FLOAT:
        case ORT_OP_ATTR_FLOATS:
            for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
                float v = 0;
                std::memcpy(&v, bytes.data() + i, sizeof(v));
                out.real(type == ORT_OP_ATTR_FLOAT ? 2 : 7, v);
            }
            return out.integer(20, type == ORT_OP_ATTR_FLOAT ? 1 : 6);
        case ORT_OP_ATTR_INT:
        case ORT_OP_ATTR_INTS:
            for (size_t i = 0; i < bytes.size(); i += sizeof(int64_t)) {
                int64_t v = 0;
                std::memcpy(&v, bytes.data() + i, sizeof(v));
                out.integer(type == ORT_OP_ATTR_INT ? 3 : 8, v);
            }
            return out.integer(20, type == ORT_OP_ATTR_INT ? 2 : 7);
        case ORT_OP_ATTR_STRING:
            return out.text(4, bytes).integer(20, 3);
        case ORT_OP_ATTR_STRINGS: // each with a terminating zero
            for (size_t at = 0; at < bytes.size();) {
                std::string part = bytes.c_str() + at;
                at += part.size() + 1;
                out.text(9, part);
            }
            return out.integer(20, 8);
        default:
            fail(ErrorCode::Unsupported, "attribute '", name, "' is of type ",
                 static_cast<int32_t>(type), ", which ONNX Runtime does not hand to providers");
        }
    }

    Proto body(const OrtGraph* graph) {
        Proto out;
        for (const OrtNode* n : nodes_of(host_, graph)) {
            out.message(1, node(n));
        }
        const char* name = host_.get_from<const char*>(host_.api->Graph_GetName, graph);
        out.text(2, name == nullptr || *name == '\0' ? "body" : name);
        for (const OrtValueInfo* v : initializers_of(host_, graph)) {
            TensorView t = view_of(host_, host_.get_from<const OrtValue*>(
                                              host_.api->ValueInfo_GetInitializerValue, v));
            out.message(5, tensor_proto(t, name_of(host_, v), true));
        }
        for (const OrtValueInfo* v : inputs_of(host_, graph)) {
            out.message(11, value_info(host_, v));
        }
        for (const OrtValueInfo* v : outputs_of(host_, graph)) {
            out.message(12, value_info(host_, v));
        }
        return out;
    }

    Host host_;
    bool self_contained_;
};

void put_opsets(const Host& host, const OrtGraph* graph, Proto& model) {
    std::vector<const char*> domains(
        host.get_from<size_t>(host.api->Graph_GetNumOperatorSets, graph));
    std::vector<int64_t> versions(domains.size());
    host.check(
        host.api->Graph_GetOperatorSets(graph, domains.data(), versions.data(), domains.size()));
    for (size_t i = 0; i < domains.size(); ++i) {
        model.message(8, Proto().text(1, domains[i]).integer(2, versions[i]));
    }
}

} // namespace

OnnxModel onnx_model(const Host& host, const OrtGraph* graph, const OnnxModelRequest& request) {
    OnnxModel out;
    Writer writer(host, request.self_contained);
    std::vector<const OrtValueInfo*> constants;
    Proto g;
    std::set<std::string> known = {""};
    for (const OrtNode* n : request.nodes) {
        for (const OrtValueInfo* v : outputs_of(host, n)) {
            known.insert(name_of(host, v));
        }
    }
    for (const OrtNode* n : request.nodes) {
        std::vector<const OrtValueInfo*> read = inputs_of(host, n);
        for (const OrtValueInfo* v : implicit_inputs_of(host, n)) {
            read.push_back(v);
        }
        for (const OrtValueInfo* v : read) {
            if (v == nullptr || !known.insert(name_of(host, v)).second) {
                continue;
            }
            if (host.get_from<bool>(host.api->ValueInfo_IsConstantInitializer, v)) {
                constants.push_back(v);
            } else {
                out.inputs.push_back(name_of(host, v));
                g.message(11, value_info(host, v));
            }
        }
    }
    std::vector<TensorView> tensors;
    for (const OrtValueInfo* v : constants) { // the host maps them when they are asked for
        tensors.push_back(view_of(
            host, host.get_from<const OrtValue*>(host.api->ValueInfo_GetInitializerValue, v)));
    }
    const char* path = host.get_from<const char*>(host.api->Graph_GetModelPath, graph);
    std::optional<FilesBeside> files;
    if (request.name_files && path != nullptr && *path != '\0') {
        files.emplace(out.path = path);
    }
    for (size_t i = 0; i < constants.size(); ++i) {
        writer.initializer(constants[i], std::move(tensors[i]), files ? &*files : nullptr, g, out);
    }
    for (const OrtNode* n : request.nodes) {
        g.message(1, writer.node(n));
        if (request.value_types) {
            for (const OrtValueInfo* v : outputs_of(host, n)) {
                if (v != nullptr && !name_of(host, v).empty()) {
                    g.message(13, value_info(host, v));
                }
            }
        }
    }
    const char* name = host.get_from<const char*>(host.api->Graph_GetName, graph);
    g.text(2, name == nullptr || *name == '\0' ? "main" : name);
    for (const OrtValueInfo* v : request.outputs) {
        g.message(12, value_info(host, v));
    }
    Proto model;
    model.integer(1, host.get_from<int64_t>(host.api->Graph_GetOnnxIRVersion, graph));
    model.text(2, "ingot");
    model.message(7, g);
    put_opsets(host, graph, model);
    out.bytes = model.bytes();
    return out;
}

OnnxModel model_of_tensors(const std::map<std::string, TensorView, std::less<>>& tensors) {
    OnnxModel out;
    Proto g;
    for (const auto& [name, t] : tensors) {
        bool with_data = t.bytes <= inline_bytes;
        g.message(5, tensor_proto(t, name, with_data));
        if (!with_data) {
            out.weights.emplace(name, t);
        }
    }
    g.text(2, "weights");
    if (!tensors.empty()) { // a graph has outputs
        g.message(12, Proto().text(1, tensors.begin()->first));
    }
    constexpr int64_t ir_version = 13; // it has all element types
    Proto model;
    model.integer(1, ir_version);
    model.message(7, g).message(8, Proto().text(1, "").integer(2, 1));
    out.bytes = model.bytes();
    return out;
}

} // namespace ingot::ort
