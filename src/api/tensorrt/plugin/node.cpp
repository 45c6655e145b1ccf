// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/node.h"

#include "api/tensorrt/layers/plugin.h"
#include "api/tensorrt/plugin/quick_plugin.h"
#include "api/tensorrt/plugin/sources.h"
#include "base/log.h"
#include "onnx/import_node.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>

namespace ingot::api {

namespace {

using Kind = nv::PluginFieldType;
using onnx::AttributeType;

constexpr std::string_view version_attribute = "plugin_version";
constexpr std::string_view namespace_attribute = "plugin_namespace";
constexpr std::string_view shapes_attribute = "tensorrt_plugin_shape_input_indices";

const onnx::Attribute* find(const onnx::Node& n, std::string_view name) {
    auto it = std::find_if(n.attributes.begin(), n.attributes.end(),
                           [name](const onnx::Attribute& a) { return a.name == name; });
    return it == n.attributes.end() ? nullptr : &*it;
}

std::string text_attribute(const onnx::Node& n, std::string_view name, const char* otherwise) {
    const onnx::Attribute* a = find(n, name);
    return a == nullptr || a->type != AttributeType::String ? otherwise : a->s;
}

bool is_old(const nv::IPluginCreatorInterface& creator) {
    return std::string_view(creator.getInterfaceInfo().kind) == "PLUGIN CREATOR_V1";
}

// --- attributes to fields ------------------------------------------------------------------------

/// Plugin fields, with the memory that they point to.
class Fields {
public:
    /// `wanted`: the type in the creator's list, kUNKNOWN for any.
    void add(const onnx::Attribute& a, Kind wanted) {
        switch (a.type) {
        case AttributeType::Int:
            return integers(a, {a.i}, wanted);
        case AttributeType::Ints:
            return integers(a, a.ints, wanted);
        case AttributeType::Float:
            return reals(a, {a.f}, wanted);
        case AttributeType::Floats:
            return reals(a, a.floats, wanted);
        case AttributeType::String:
            require(wanted == Kind::kCHAR || wanted == Kind::kUNKNOWN, ErrorCode::InvalidModel,
                    mismatch(a, wanted));
            return put(a, Kind::kCHAR, a.s.data(), a.s.size(), 1);
        case AttributeType::Tensor:
            return tensor(a, wanted);
        default:
            fail(ErrorCode::Unsupported, "attribute '", a.name, "' is of type ", name(a.type),
                 ", which no field of a plugin can hold");
        }
    }
    nv::PluginFieldCollection all() const {
        return {static_cast<int32_t>(fields_.size()), fields_.data()};
    }

private:
    static std::string_view text_of(Kind kind) {
        static constexpr std::string_view names[] = {
            "kFLOAT16", "kFLOAT32", "kFLOAT64", "kINT8",  "kINT16", "kINT32", "kCHAR",
            "kDIMS",    "kUNKNOWN", "kBF16",    "kINT64", "kFP8",   "kINT4",  "kFP4"};
        auto i = static_cast<size_t>(kind);
        return i < std::size(names) ? names[i] : "of no known type";
    }
    static std::string mismatch(const onnx::Attribute& a, Kind wanted) {
        return str("attribute '", a.name, "' is of type ", name(a.type),
                   ", the plugin's creator lists it as ", text_of(wanted));
    }

    void put(const onnx::Attribute& a, Kind kind, const void* data, size_t count, size_t size) {
        require(count <= INT32_MAX, ErrorCode::Unsupported, "attribute '", a.name, "' has ", count,
                " elements");
        const auto* bytes = static_cast<const std::byte*>(data);
        Tensor& copy = memory_.emplace_back(
            // texts are zero-terminated
            Tensor::zeros(DType::U8, {static_cast<int64_t>(count * size + 1)}));
        std::copy(bytes, bytes + count * size, copy.mutable_bytes().begin());
        fields_.emplace_back(a.name.c_str(), copy.bytes().data(), kind,
                             static_cast<int32_t>(count));
    }

    template <class T>
    void integers_as(const onnx::Attribute& a, const std::vector<int64_t>& values, Kind kind) {
        std::vector<T> list;
        for (int64_t v : values) {
            require(v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max(),
                    ErrorCode::InvalidModel, "attribute '", a.name, "' is ", v,
                    ", which does not fit the field's type ", text_of(kind));
            list.push_back(static_cast<T>(v));
        }
        put(a, kind, list.data(), list.size(), sizeof(T));
    }

    void integers(const onnx::Attribute& a, const std::vector<int64_t>& values, Kind wanted) {
        switch (wanted) {
        case Kind::kINT8:
            return integers_as<int8_t>(a, values, wanted);
        case Kind::kINT16:
            return integers_as<int16_t>(a, values, wanted);
        case Kind::kINT32:
        case Kind::kUNKNOWN:
            return integers_as<int32_t>(a, values, Kind::kINT32);
        case Kind::kINT64:
            return put(a, wanted, values.data(), values.size(), sizeof(int64_t));
        case Kind::kDIMS: {
            require(values.size() <= nv::Dims::MAX_DIMS, ErrorCode::InvalidModel, "attribute '",
                    a.name, "' has ", values.size(), " elements, a kDIMS field at most ",
                    nv::Dims::MAX_DIMS);
            nv::Dims d = api_dims(Shape(values));
            return put(a, wanted, &d, 1, sizeof d);
        }
        default:
            fail(ErrorCode::InvalidModel, mismatch(a, wanted));
        }
    }

    void reals(const onnx::Attribute& a, const std::vector<float>& values, Kind wanted) {
        if (wanted == Kind::kFLOAT64) {
            std::vector<double> list(values.begin(), values.end());
            return put(a, wanted, list.data(), list.size(), sizeof(double));
        }
        require(wanted == Kind::kFLOAT32 || wanted == Kind::kUNKNOWN, ErrorCode::InvalidModel,
                mismatch(a, wanted));
        put(a, Kind::kFLOAT32, values.data(), values.size(), sizeof(float));
    }

    void tensor(const onnx::Attribute& a, Kind wanted) {
        static constexpr std::pair<DType, Kind> kinds[] = {
            {DType::F16, Kind::kFLOAT16}, {DType::F32, Kind::kFLOAT32},
            {DType::F64, Kind::kFLOAT64}, {DType::I8, Kind::kINT8},
            {DType::I16, Kind::kINT16},   {DType::I32, Kind::kINT32},
            {DType::BF16, Kind::kBF16},   {DType::I64, Kind::kINT64},
            {DType::F8E4M3, Kind::kFP8},
        };
        Tensor t = onnx::initializer(a.t);
        const auto* it = std::find_if(std::begin(kinds), std::end(kinds),
                                      [&t](const auto& row) { return row.first == t.dtype(); });
        require(it != std::end(kinds), ErrorCode::Unsupported, "attribute '", a.name,
                "' holds elements of type ", name(t.dtype()), ", which no field can hold");
        require(wanted == Kind::kUNKNOWN || wanted == it->second, ErrorCode::InvalidModel,
                mismatch(a, wanted));
        put(a, it->second, t.bytes().data(), static_cast<size_t>(t.count()),
            static_cast<size_t>(bit_width(t.dtype())) / 8);
    }

    std::vector<nv::PluginField> fields_;
    std::deque<Tensor> memory_;
};

/// Converts the node's attributes to the creator's fields; unlisted attributes are left out.
void take_attributes(const onnx::Node& n, const nv::PluginFieldCollection* listed, Fields& fields) {
    for (const onnx::Attribute& a : n.attributes) {
        if (a.name == version_attribute || a.name == namespace_attribute ||
            a.name == shapes_attribute) {
            continue;
        }
        bool any = listed == nullptr || listed->nbFields == 0;
        Kind wanted = Kind::kUNKNOWN;
        bool found = any;
        for (int32_t i = 0; !any && i < listed->nbFields; ++i) {
            const nv::PluginField& f = listed->fields[i];
            if (f.name != nullptr && a.name == f.name) {
                found = true;
                wanted = f.type;
            }
        }
        if (found) {
            fields.add(a, wanted);
        } else {
            log(LogLevel::Warning, "node '", n.name, "' (", n.op_type, "): attribute '", a.name,
                "' is none that the plugin's creator lists");
        }
    }
}

// --- layers --------------------------------------------------------------------------------------

/// Moves shape inputs to the end. Returns their number.
size_t sort_inputs(const onnx::Node& n, std::vector<NetworkTensor*>& inputs) {
    const onnx::Attribute* a = find(n, shapes_attribute);
    if (a == nullptr) {
        return 0;
    }
    std::vector<NetworkTensor*> shapes;
    std::vector<NetworkTensor*> others;
    for (int64_t i : a->ints) {
        require(i >= 0 && i < static_cast<int64_t>(inputs.size()), ErrorCode::InvalidModel,
                "attribute '", shapes_attribute, "' names input ", i, " of ", inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        bool is_shape = std::count(a->ints.begin(), a->ints.end(), static_cast<int64_t>(i)) > 0;
        (is_shape ? shapes : others).push_back(inputs[i]);
    }
    inputs = std::move(others);
    inputs.insert(inputs.end(), shapes.begin(), shapes.end());
    return shapes.size();
}

SourceKernel with_attributes(SourceKernel k, const onnx::Node& n) {
    for (const onnx::Attribute& a : n.attributes) {
        if (a.type == AttributeType::Int) {
            k.int_names.push_back(a.name);
            k.int_values.push_back(a.i);
        } else if (a.type == AttributeType::Float) {
            k.float_names.push_back(a.name);
            k.float_values.push_back(static_cast<double>(a.f));
        }
    }
    return k;
}

} // namespace

std::optional<CustomNode> find_custom(const onnx::Node& n, nv::IPluginRegistry& registry) {
    std::string version = text_attribute(n, version_attribute, "1");
    std::string space = text_attribute(n, namespace_attribute, "");
    if (auto* creator = registry.getCreator(n.op_type.c_str(), version.c_str(), space.c_str())) {
        return CustomNode{creator, std::nullopt};
    }
    if (auto source = find_source(n.domain, n.op_type)) {
        return CustomNode{nullptr, std::move(source)};
    }
    return std::nullopt;
}

LayerBase& append_custom(Network& network, const onnx::Node& n, const CustomNode& custom,
                         std::vector<NetworkTensor*> inputs, const std::string& name) {
    if (custom.creator == nullptr) {
        append_source(network, inputs, with_attributes(*custom.source, n), name);
        return *network.layers().back();
    }
    size_t shapes = sort_inputs(n, inputs);
    Fields fields;
    if (is_old(*custom.creator)) {
        auto& creator = static_cast<nv::IPluginCreator&>(*custom.creator);
        take_attributes(n, creator.getFieldNames(), fields);
        nv::PluginFieldCollection all = fields.all();
        nv::IPluginV2* plugin = creator.createPlugin(name.c_str(), &all);
        require(plugin != nullptr && shapes == 0, ErrorCode::InvalidArgument,
                shapes == 0 ? "IPluginCreator::createPlugin() gave nullptr"
                            : "an IPluginV2 takes no shape inputs");
        struct Destroy {
            void operator()(nv::IPluginV2* p) const { p->destroy(); }
        };
        std::unique_ptr<nv::IPluginV2, Destroy> owner(plugin);
        append_plugin(network, inputs, *plugin, name);
        return *network.layers().back();
    }
    take_attributes(n, field_names(*custom.creator), fields);
    nv::PluginFieldCollection all = fields.all();
    std::unique_ptr<nv::IPluginV3> plugin =
        create_plugin(*custom.creator, name.c_str(), all, nv::TensorRTPhase::kBUILD);
    require(plugin != nullptr, ErrorCode::InvalidArgument,
            "IPluginCreatorV3One::createPlugin() gave nullptr for the ", all.nbFields,
            " attributes of the node");
    append_plugin(network, inputs, shapes, *plugin, name);
    return *network.layers().back();
}

} // namespace ingot::api
