// SPDX-License-Identifier: Apache-2.0
// Resources that plugins share, those that a context gives them, and versions of interfaces.
#include "plugin_calls.h"

namespace ingot::python {

namespace {

/// A resource that Python code implements. Its clones are the library's: they live until release().
class PyResource : public trt::IPluginResource {
public:
    NB_TRAMPOLINE(trt::IPluginResource);

    trt::IPluginResource* clone() noexcept override {
        return callback<trt::IPluginResource*>("IPluginResource.clone", nullptr, [this] {
            nb::object copy = call_python(nb_trampoline, "clone");
            auto* const made = nb::cast<trt::IPluginResource*>(copy);
            static_cast<void>(copy.release());
            return made;
        });
    }
    int32_t release() noexcept override {
        return callback("IPluginResource.release", -1, [this] {
            // The last that is known of this object is Python's.
            const nb::object self = nb::steal(nb_trampoline.base());
            return status_of(self.attr("release")());
        });
    }
};

} // namespace

void bind_plugin_resources(nb::module_& m) {
    nb::class_<trt::IPluginResource, PyResource>(
        m, "IPluginResource",
        "Something that plugins share by a key (IPluginRegistry.acquire_plugin_resource()): "
        "subclass "
        "it, call super().__init__(), and define clone(self) -> IPluginResource, which makes what "
        "the "
        "registry keeps, and release(self), which frees it.")
        .def(nb::init<>())
        .def(
            "clone", [](trt::IPluginResource& self) { return self.clone(); },
            nb::rv_policy::reference, "The object that the registry keeps.")
        .def(
            "release", [](trt::IPluginResource& self) { static_cast<void>(self.release()); },
            "Frees what clone() made.");
    using Context = trt::IPluginResourceContext;
    nb::class_<Context>(m, "IPluginResourceContext",
                        "What a context gives to IPluginV3OneRuntime.attach_to_context(); valid as "
                        "long as the plugin that this made.")
        .def_prop_ro("gpu_allocator", &Context::getGpuAllocator, nb::rv_policy::reference,
                     "The engine's IGpuAllocator; None for the default.")
        .def_prop_ro("error_recorder", &Context::getErrorRecorder, nb::rv_policy::reference,
                     "The context's IErrorRecorder, or None.");
}

void bind_versions(nb::module_& m) {
    struct Row {
        const char* name;
        const char* kind;
    };
    // Classes of the extension cannot derive from one of Python.
    constexpr Row rows[] = {{"IGpuAllocator", "IGpuAllocator"},
                            {"IGpuAsyncAllocator", "IGpuAllocator"},
                            {"IPluginResource", "IPluginResource"},
                            {"IPluginCreatorInterface", ""},
                            {"IPluginCreator", "PLUGIN CREATOR_V1"},
                            {"IPluginCreatorV3One", "PLUGIN CREATOR_V3ONE"},
                            {"IPluginCreatorV3Quick", "PLUGIN CREATOR_V3QUICK"}};
    const nb::object versioned = m.attr("IVersionedInterface");
    for (const Row& row : rows) {
        const nb::object one = m.attr(row.name);
        versioned.attr("register")(one);
        nb::setattr(one, "_kind", nb::make_tuple(row.kind, 1, 0));
        for (const char* name : {"api_language", "interface_info"}) {
            nb::setattr(one, name, versioned.attr("__dict__")[name]);
        }
    }
}

} // namespace ingot::python
