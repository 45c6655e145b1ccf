// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/call.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/plugin/quick_plugin.h"
#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace ingot::api {

using nv::DimsExprs;
using nv::DynamicPluginTensorDesc;
using nv::PluginTensorDesc;

namespace {

/// The part of that kind, or null.
template <class Part>
Part* part_of(nv::IPluginV3& plugin, nv::PluginCapabilityType type, std::string_view kind,
              std::string_view name) {
    nv::IPluginCapability* part = plugin.getCapabilityInterface(type);
    if (part == nullptr) {
        return nullptr;
    }
    const char* got = part->getInterfaceInfo().kind;
    require(got != nullptr && got == kind, ErrorCode::Unsupported,
            "IPluginV3::getCapabilityInterface(", name, ") gave a '", got == nullptr ? "" : got,
            "', expected a '", kind, "'");
    return static_cast<Part*>(part);
}

void check_status(int32_t status, std::string_view method) {
    require(status == 0, ErrorCode::InvalidArgument, method, "() returned ", status,
            ", expected 0");
}

nv::DataType plugin_type(DType t, const std::string& what) {
    nv::DataType type = data_type_of(t);
    require(dtype_of(type) == t, ErrorCode::Unsupported, what, " has element type ", name(t),
            ", which plugins do not take");
    return type;
}

DimsExprs exprs_of(const Dims& dims, SizeExprs& sizes, const std::string& what) {
    require(dims.size() <= nv::Dims::MAX_DIMS, ErrorCode::Unsupported, what, " has ", dims.size(),
            " dimensions, plugins take ", nv::Dims::MAX_DIMS);
    DimsExprs e{};
    e.nbDims = static_cast<int32_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
        e.d[i] = sizes.make(dims[i]);
    }
    return e;
}

size_t result_count(const nv::IPluginV3OneBuild& build) {
    int32_t count = build.getNbOutputs();
    require(count >= 1 && count <= 1024, ErrorCode::InvalidArgument,
            "IPluginV3OneBuild::getNbOutputs() returned ", count, ", expected 1 to 1024");
    return static_cast<size_t>(count);
}

int32_t count_of_list(size_t n) {
    return static_cast<int32_t>(n);
}

std::string_view format_word(const PluginTensorDesc& d) {
    return name_of(d.type);
}

} // namespace

PluginParts parts_of(nv::IPluginV3& plugin, bool needs_build) {
    using Type = nv::PluginCapabilityType;
    PluginParts p;
    p.core = part_of<nv::IPluginV3OneCore>(plugin, Type::kCORE, "PLUGIN_V3ONE_CORE", "kCORE");
    require(p.core != nullptr, ErrorCode::InvalidArgument,
            "IPluginV3::getCapabilityInterface(kCORE) gave nullptr");
    p.build = part_of<nv::IPluginV3OneBuild>(plugin, Type::kBUILD, "PLUGIN_V3ONE_BUILD", "kBUILD");
    require(p.build != nullptr || !needs_build, ErrorCode::InvalidArgument, plugin_text(*p.core),
            ": IPluginV3::getCapabilityInterface(kBUILD) gave nullptr, which a network needs");
    p.runtime = part_of<nv::IPluginV3OneRuntime>(plugin, Type::kRUNTIME, "PLUGIN_V3ONE_RUNTIME",
                                                 "kRUNTIME");
    require(p.runtime != nullptr, ErrorCode::InvalidArgument, plugin_text(*p.core),
            ": IPluginV3::getCapabilityInterface(kRUNTIME) gave nullptr");
    return p;
}

std::string plugin_text(std::string_view name, std::string_view version, std::string_view space) {
    return str("plugin '", name, "' version '", version, "'",
               space.empty() ? std::string() : str(" of namespace '", space, "'"));
}

std::string plugin_text(const nv::IPluginV3OneCore& core) {
    auto text = [](const char* t) { return std::string_view(t == nullptr ? "" : t); };
    return plugin_text(text(core.getPluginName()), text(core.getPluginVersion()),
                       text(core.getPluginNamespace()));
}

std::unique_ptr<nv::IPluginV3> clone_of(nv::IPluginV3& plugin) {
    std::unique_ptr<nv::IPluginV3> clone(plugin.clone());
    require(clone != nullptr, ErrorCode::InvalidArgument, "IPluginV3::clone() gave nullptr");
    return clone;
}

std::vector<Type> plugin_results(const nv::IPluginV3OneBuild& build, std::span<const Type> in,
                                 std::span<const Dims> shape_inputs, SizeExprs& sizes) {
    // getOutputShapes() is not const but leaves the plugin unchanged.
    auto& rule = const_cast<nv::IPluginV3OneBuild&>(build);
    std::vector<nv::DataType> types;
    std::vector<DimsExprs> dims;
    for (size_t i = 0; i < in.size(); ++i) {
        types.push_back(plugin_type(in[i].dtype, str("input ", i)));
        dims.push_back(exprs_of(in[i].dims, sizes, str("input ", i)));
    }
    std::vector<DimsExprs> shapes;
    for (size_t i = 0; i < shape_inputs.size(); ++i) {
        shapes.push_back(exprs_of(shape_inputs[i], sizes, str("shape input ", i)));
    }
    size_t count = result_count(build);
    tell_ranks(build, in);
    std::vector<nv::DataType> out_types(count, nv::DataType::kFLOAT);
    check_status(build.getOutputDataTypes(out_types.data(), count_of_list(count), types.data(),
                                          count_of_list(types.size())),
                 "IPluginV3OneBuild::getOutputDataTypes");
    std::vector<DimsExprs> out(count);
    check_status(rule.getOutputShapes(dims.data(), count_of_list(dims.size()), shapes.data(),
                                      count_of_list(shapes.size()), out.data(),
                                      count_of_list(count), sizes),
                 "IPluginV3OneBuild::getOutputShapes");
    std::vector<Type> results(count);
    for (size_t i = 0; i < count; ++i) {
        results[i].dtype = dtype_of(out_types[i]);
        require(out[i].nbDims >= 0 && out[i].nbDims <= nv::Dims::MAX_DIMS,
                ErrorCode::InvalidArgument, "IPluginV3OneBuild::getOutputShapes() gave output ", i,
                " ", out[i].nbDims, " dimensions, expected 0 to ", nv::Dims::MAX_DIMS);
        for (int32_t d = 0; d < out[i].nbDims; ++d) {
            results[i].dims.push_back(
                sizes.value(out[i].d[d], str("IPluginV3OneBuild::getOutputShapes(): dimension ", d,
                                             " of output ", i)));
        }
    }
    return results;
}

PluginTensorDesc plugin_desc(DType dtype, const Shape& shape) {
    PluginTensorDesc d{};
    d.dims = api_dims(shape);
    d.type = data_type_of(dtype);
    d.format = nv::TensorFormat::kLINEAR;
    d.scale = -1;
    return d;
}

DynamicPluginTensorDesc fixed_desc(const PluginTensorDesc& desc) {
    return {desc, desc.dims, desc.dims, desc.dims};
}

void check_formats(nv::IPluginV3OneBuild& build, std::span<const DynamicPluginTensorDesc> all,
                   size_t inputs) {
    size_t outputs = all.size() - inputs;
    int32_t limit = build.getFormatCombinationLimit();
    require(limit >= 1, ErrorCode::InvalidArgument,
            "IPluginV3OneBuild::getFormatCombinationLimit() returned ", limit,
            ", expected at least 1: there is one combination of formats");
    for (size_t i = 0; i < all.size(); ++i) {
        bool is_input = i < inputs;
        require(build.supportsFormatCombination(count_of_list(i), all.data(), count_of_list(inputs),
                                                count_of_list(outputs)),
                ErrorCode::Unsupported, "IPluginV3OneBuild::supportsFormatCombination() refuses ",
                is_input ? "input " : "output ", is_input ? i : i - inputs, " as ",
                format_word(all[i].desc), " in LINEAR format, the only one here; cast the tensor");
    }
}

void configure(nv::IPluginV3OneBuild& build, std::span<const DynamicPluginTensorDesc> all,
               size_t inputs) {
    check_status(build.configurePlugin(all.data(), count_of_list(inputs), all.data() + inputs,
                                       count_of_list(all.size() - inputs)),
                 "IPluginV3OneBuild::configurePlugin");
}

int64_t workspace_of(const nv::IPluginV3OneBuild& build,
                     std::span<const DynamicPluginTensorDesc> all, size_t inputs) {
    size_t bytes = build.getWorkspaceSize(all.data(), count_of_list(inputs), all.data() + inputs,
                                          count_of_list(all.size() - inputs));
    require(bytes <= (size_t{1} << 46), ErrorCode::InvalidArgument,
            "IPluginV3OneBuild::getWorkspaceSize() returned ", bytes);
    return static_cast<int64_t>(bytes);
}

std::vector<int32_t> tactics_of(nv::IPluginV3OneBuild& build) {
    int32_t count = build.getNbTactics();
    require(count >= 0 && count <= 1 << 20, ErrorCode::InvalidArgument,
            "IPluginV3OneBuild::getNbTactics() returned ", count);
    std::vector<int32_t> tactics(static_cast<size_t>(count), 0);
    if (count == 0) {
        return tactics;
    }
    check_status(build.getValidTactics(tactics.data(), count),
                 "IPluginV3OneBuild::getValidTactics");
    for (auto t = tactics.begin(); t != tactics.end(); ++t) {
        require(*t != 0 && std::find(tactics.begin(), t, *t) == t, ErrorCode::InvalidArgument,
                "IPluginV3OneBuild::getValidTactics() gave ", *t,
                *t == 0 ? ", which stands for the tactic of a plugin that names none" : " twice");
    }
    return tactics;
}

void serialize_fields(nv::IPluginV3OneRuntime& runtime, Plugin& to) {
    const nv::PluginFieldCollection* all = runtime.getFieldsToSerialize();
    constexpr const char* method = "IPluginV3OneRuntime::getFieldsToSerialize()";
    require(all != nullptr, ErrorCode::InvalidArgument, method, " gave nullptr");
    require(all->nbFields >= 0 && (all->nbFields == 0 || all->fields != nullptr),
            ErrorCode::InvalidArgument, method, " gave ", all->nbFields, " fields at ",
            all->fields == nullptr ? "nullptr" : "an address");
    std::vector<PluginFieldView> fields;
    std::vector<nv::Dims> shapes; // without the padding bytes
    shapes.reserve(static_cast<size_t>(all->nbFields));
    for (int32_t i = 0; i < all->nbFields; ++i) {
        const nv::PluginField& f = all->fields[i];
        std::string name = f.name == nullptr ? "" : f.name;
        require(!name.empty(), ErrorCode::InvalidArgument, method, ": field ", i, " has no name");
        with_place(
            [&] { return str(method, ": field '", name, "'"); },
            [&] {
                size_t bytes = field_size(static_cast<int64_t>(f.type), f.length);
                require(bytes == 0 || f.data != nullptr, ErrorCode::InvalidArgument, "has ",
                        f.length, " elements at nullptr");
                const auto* data = static_cast<const std::byte*>(f.data);
                if (f.type == nv::PluginFieldType::kDIMS && f.length == 1) {
                    nv::Dims& d = shapes.emplace_back();
                    std::memset(&d, 0, sizeof d);
                    std::memcpy(&d.nbDims, data, sizeof d.nbDims);
                    int32_t rank = std::clamp(d.nbDims, 0, nv::Dims::MAX_DIMS);
                    std::memcpy(d.d, data + offsetof(nv::Dims, d),
                                static_cast<size_t>(rank) * sizeof(int64_t));
                    data = reinterpret_cast<const std::byte*>(&d);
                }
                fields.push_back({f.name, static_cast<int64_t>(f.type), f.length, {data, bytes}});
            });
    }
    set_plugin_fields(to, fields);
}

} // namespace ingot::api
