// SPDX-License-Identifier: Apache-2.0
// The registry of plugins, fields, and plugins that libraries bring.
#include "NvInferPlugin.h"
#include "layers.h"

#include <string>

namespace ingot::python {

namespace {

using Registry = trt::IPluginRegistry;
using Creator = trt::IPluginCreatorV3One;

/// A field whose elements are a numpy array, or bytes for CHAR and UNKNOWN.
struct PyField {
    std::string name;
    nb::object data;
    trt::PluginFieldType type;
};

trt::PluginFieldType field_type(const nb::object& data) {
    using T = trt::PluginFieldType;
    if (nb::isinstance<nb::bytes>(data)) {
        return T::kCHAR;
    }
    static constexpr std::pair<const char*, T> names[] = {
        {"float16", T::kFLOAT16}, {"float32", T::kFLOAT32}, {"float64", T::kFLOAT64},
        {"int8", T::kINT8},       {"int16", T::kINT16},     {"int32", T::kINT32},
        {"int64", T::kINT64},     {"uint8", T::kCHAR},
    };
    const auto name = nb::cast<std::string>(nb::str(data.attr("dtype").attr("name")));
    for (const auto& [text, type] : names) {
        if (name == text) {
            return type;
        }
    }
    return T::kUNKNOWN;
}

void bind_fields(nb::module_& m) {
    nb::class_<PyField>(m, "PluginField", "A named attribute of a plugin.")
        .def(
            "__init__",
            [](PyField* at, const std::string& name, const nb::object& data,
               std::optional<trt::PluginFieldType> type) {
                const nb::object dense =
                    nb::isinstance<nb::bytes>(data)
                        ? nb::object(
                              nb::module_::import_("numpy").attr("frombuffer")(data, "uint8"))
                        : nb::object(nb::module_::import_("numpy").attr("ascontiguousarray")(data));
                new (at) PyField{name, dense, type ? *type : field_type(data)};
            },
            "name"_a, "data"_a, "type"_a.none() = nb::none())
        .def_ro("name", &PyField::name)
        .def_ro("data", &PyField::data)
        .def_ro("type", &PyField::type)
        .def_prop_ro("size", [](const PyField& f) { return nb::len(f.data); });
}

Owned<trt::IPluginV3> create_plugin(nb::pointer_and_handle<Creator> self, const char* name,
                                    const std::vector<PyField>& fields, trt::TensorRTPhase phase) {
    std::vector<trt::PluginField> list;
    for (const PyField& field : fields) {
        const auto data = nb::cast<uintptr_t>(field.data.attr("ctypes").attr("data"));
        list.emplace_back(field.name.c_str(), reinterpret_cast<const void*>(data), field.type,
                          nb::cast<int32_t>(field.data.attr("size")));
    }
    const trt::PluginFieldCollection all{static_cast<int32_t>(list.size()), list.data()};
    auto plugin = unlocked(
        [&] { return std::unique_ptr<trt::IPluginV3>(self.p->createPlugin(name, &all, phase)); });
    return {std::move(plugin), nb::borrow(self.h), {}};
}

void bind_creators(nb::module_& m) {
    nb::class_<trt::IPluginCreatorInterface>(m, "IPluginCreatorInterface", "Makes plugins.");
    nb::class_<trt::IPluginV3>(m, "IPluginV3", "A layer of the application.");
    nb::class_<Creator, trt::IPluginCreatorInterface>(m, "IPluginCreatorV3One", "Makes IPluginV3.")
        .def_prop_ro("name", &Creator::getPluginName)
        .def_prop_ro("plugin_version", &Creator::getPluginVersion)
        .def_prop_ro("plugin_namespace", &Creator::getPluginNamespace)
        .def_prop_ro("field_names",
                     [](Creator& self) {
                         std::vector<std::string> names;
                         const trt::PluginFieldCollection* const all = self.getFieldNames();
                         for (int32_t i = 0; all != nullptr && i < all->nbFields; ++i) {
                             names.emplace_back(all->fields[i].name);
                         }
                         return names;
                     })
        .def("create_plugin", &create_plugin, "name"_a, "field_collection"_a, "phase"_a);
    layer<trt::IPluginV2Layer>(m, "IPluginV2Layer", "A layer of a plugin, older generation.");
    layer<trt::IPluginV3Layer>(m, "IPluginV3Layer", "A layer of a plugin.");
}

/// Creators of IPluginV3 as what they are.
nb::object creator_of(trt::IPluginCreatorInterface* creator) {
    if (creator == nullptr) {
        return nb::none();
    }
    if (std::string(creator->getInterfaceInfo().kind) == "PLUGIN CREATOR_V3ONE") {
        return nb::cast(static_cast<Creator*>(creator), nb::rv_policy::reference);
    }
    return nb::cast(creator, nb::rv_policy::reference);
}

nb::list creators_of(trt::IPluginCreatorInterface* const* creators, int32_t count) {
    nb::list list;
    for (int32_t i = 0; creators != nullptr && i < count; ++i) {
        list.append(creator_of(creators[i]));
    }
    return list;
}

void bind_registry(nb::module_& m) {
    nb::class_<Registry>(m, "IPluginRegistry", "Where creators of plugins are found.")
        .def_prop_ro("all_creators",
                     [](const Registry& self) {
                         int32_t count = 0;
                         trt::IPluginCreatorInterface* const* const all =
                             self.getAllCreators(&count);
                         return creators_of(all, count);
                     })
        .def_prop_ro("all_creators_recursive",
                     [](Registry& self) {
                         int32_t count = 0;
                         trt::IPluginCreatorInterface* const* const all =
                             self.getAllCreatorsRecursive(&count);
                         return creators_of(all, count);
                     })
        .def(
            "get_creator",
            [](Registry& self, const char* type, const char* version, const char* space) {
                return creator_of(self.getCreator(type, version, space));
            },
            "type"_a, "version"_a, "plugin_namespace"_a = "", "None when there is none.")
        .def(
            "load_library",
            [](Registry& self, const char* path) {
                return reinterpret_cast<uintptr_t>(self.loadLibrary(path));
            },
            "plugin_path"_a, "A handle; 0 when it cannot be loaded.")
        .def(
            "deregister_library",
            [](Registry& self, uintptr_t handle) {
                self.deregisterLibrary(reinterpret_cast<void*>(handle));
            },
            "handle"_a)
        .def_prop_rw("parent_search_enabled", &Registry::isParentSearchEnabled,
                     &Registry::setParentSearchEnabled);
}

} // namespace

void bind_plugins(nb::module_& m) {
    bind_fields(m);
    bind_creators(m);
    bind_registry(m);
    m.def(
        "get_plugin_registry", [] { return getPluginRegistry(); }, nb::rv_policy::reference);
    m.def(
        "get_builder_plugin_registry",
        [](trt::EngineCapability capability) { return getBuilderPluginRegistry(capability); },
        "capability"_a, nb::rv_policy::reference);
    m.def(
        "init_libnvinfer_plugins",
        [](trt::ILogger* logger, const char* space) {
            return initLibNvInferPlugins(logger, space);
        },
        "logger"_a.none(), "namespace"_a,
        "Registers the plugins that come with the library: there are none. True.");
}

} // namespace ingot::python
