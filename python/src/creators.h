// SPDX-License-Identifier: Apache-2.0
// Creators of plugins that Python code implements: what those of both interfaces share.
#pragma once

#include "plugins.h"

#include <string>
#include <utility>
#include <vector>

namespace ingot::python {

/// The attributes of a creator of an interface; `field_names_call` names it in errors. A class that
/// derives from it adds createPlugin().
template <class Interface, const char* field_names_call>
class CreatorAttributes : public Interface {
public:
    NB_TRAMPOLINE(Interface);

    const trt::PluginFieldCollection* getFieldNames() noexcept override {
        return callback<const trt::PluginFieldCollection*>(field_names_call, nullptr, [this] {
            list_ = fields_of(field_names);
            all_ = {static_cast<int32_t>(list_.size()), list_.data()};
            return &all_;
        });
    }
    const char* getPluginName() const noexcept override { return name.c_str(); }
    const char* getPluginVersion() const noexcept override { return version.c_str(); }
    const char* getPluginNamespace() const noexcept override { return space.c_str(); }

    std::string name;
    std::string version = "1";
    std::string space;
    PyFields field_names;

private:
    std::vector<trt::PluginField> list_;
    trt::PluginFieldCollection all_;
};

/// Errors: AttributeError for a creator of a library.
template <class PythonCreator, class Interface>
PythonCreator& python_creator(Interface& c) {
    auto* own = dynamic_cast<PythonCreator*>(&c);
    if (own == nullptr) {
        throw nb::attribute_error(
            "attributes of a creator that is not written in Python are fixed");
    }
    return *own;
}

/// Binds the constructor and the attributes to the class of an interface.
template <class PythonCreator, class Interface, class... Bases>
nb::class_<Interface, Bases...>& bind_attributes(nb::class_<Interface, Bases...>& creator) {
    using Text = std::string;
    return creator.def(nb::init<>())
        .def_prop_rw(
            "name", &Interface::getPluginName,
            [](Interface& c, Text v) { python_creator<PythonCreator>(c).name = std::move(v); },
            "Of the plugins that it makes.")
        .def_prop_rw(
            "plugin_version", &Interface::getPluginVersion,
            [](Interface& c, Text v) { python_creator<PythonCreator>(c).version = std::move(v); },
            "Version of the plugins that it makes.")
        .def_prop_rw(
            "plugin_namespace", &Interface::getPluginNamespace,
            [](Interface& c, Text v) { python_creator<PythonCreator>(c).space = std::move(v); },
            "Namespace of the plugins that it makes.")
        .def_prop_rw(
            "field_names", [](Interface& c) { return fields_from(c.getFieldNames()); },
            [](Interface& c, PyFields v) {
                python_creator<PythonCreator>(c).field_names = std::move(v);
            },
            "The fields that create_plugin() understands, a PluginFieldCollection.");
}

} // namespace ingot::python
