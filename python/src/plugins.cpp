// SPDX-License-Identifier: Apache-2.0
// The registry of plugins, fields, and plugins that libraries bring.
#include "plugins.h"

#include "NvInferPlugin.h"
#include "creators.h"
#include "impl/NvInferPythonPlugin.h"
#include "layers.h"

#include <string>

namespace ingot::python {

namespace {

using Registry = trt::IPluginRegistry;
using Creator = trt::IPluginCreatorV3One;
using Network = trt::INetworkDefinition;

// --- creators ------------------------------------------------------------------------------------

constexpr char field_names_of_creator[] = "IPluginCreatorV3One.field_names";

/// A creator that Python code implements.
class PyCreator : public CreatorAttributes<Creator, field_names_of_creator> {
public:
    trt::IPluginV3* createPlugin(const char* plugin, const trt::PluginFieldCollection* fc,
                                 trt::TensorRTPhase phase) noexcept override {
        return callback<trt::IPluginV3*>("IPluginCreatorV3One.create_plugin", nullptr, [&] {
            return plugin_of(call_python(nb_trampoline, "create_plugin", plugin,
                                         nb::cast(fields_from(fc)), phase))
                .release();
        });
    }
};

/// A plugin that a creator of a library made; Python's own are of its classes.
nb::object create_plugin(nb::pointer_and_handle<Creator> self, const char* name,
                         const PyFields& fields, trt::TensorRTPhase phase) {
    const std::vector<trt::PluginField> list = fields_of(fields);
    const trt::PluginFieldCollection all{static_cast<int32_t>(list.size()), list.data()};
    auto plugin = unlocked(
        [&] { return std::unique_ptr<trt::IPluginV3>(self.p->createPlugin(name, &all, phase)); });
    return nb::cast(Owned<trt::IPluginV3>{std::move(plugin), nb::borrow(self.h), {}});
}

void bind_creators(nb::module_& m) {
    nb::class_<trt::IPluginV3>(m, "NativePluginV3", "A plugin of a library that was loaded.");
    nb::class_<trt::IPluginCreatorInterface>(m, "IPluginCreatorInterface", "Makes plugins.");
    auto creator = nb::class_<Creator, trt::IPluginCreatorInterface, PyCreator>(
        m, "IPluginCreatorV3One",
        "Makes IPluginV3. Subclass it, call super().__init__(), set name, plugin_version, "
        "plugin_namespace and field_names, and define create_plugin(self, name, field_collection, "
        "phase).");
    bind_attributes<PyCreator>(creator).def(
        "create_plugin", &create_plugin, "name"_a, "field_collection"_a, "phase"_a,
        "A plugin of these fields. None when it cannot be made.");
    bind_quick_creator(m);
    bind_old_plugins(m);
    layer<trt::IPluginV3Layer>(m, "IPluginV3Layer", "A layer of a plugin.")
        .def_prop_ro(
            "plugin", [](trt::IPluginV3Layer& self) { return python_object(self.getPlugin()); },
            "The network's clone of the plugin.");
}

/// Creators of IPluginV3 as what they are.
nb::object creator_of(trt::IPluginCreatorInterface* creator) {
    if (creator == nullptr) {
        return nb::none();
    }
    const std::string kind = creator->getInterfaceInfo().kind;
    if (kind == "PLUGIN CREATOR_V3ONE") {
        return nb::cast(static_cast<Creator*>(creator), nb::rv_policy::reference);
    }
    if (kind == "PLUGIN CREATOR_V1") {
        return nb::cast(static_cast<trt::IPluginCreator*>(creator), nb::rv_policy::reference);
    }
    if (kind == "PLUGIN CREATOR_V3QUICK") {
        return nb::cast(static_cast<trt::IPluginCreatorV3Quick*>(creator),
                        nb::rv_policy::reference);
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

/// Registered creators of Python, which the class keeps alive: by address.
nb::dict kept_creators() {
    return nb::borrow<nb::dict>(nb::type<Registry>().attr("_creators"));
}

void bind_registry(nb::module_& m) {
    nb::class_<Registry> registry(m, "IPluginRegistry", "Where creators of plugins are found.");
    registry.attr("_creators") = nb::dict();
    registry
        .def_prop_ro(
            "all_creators",
            [](const Registry& self) {
                int32_t count = 0;
                trt::IPluginCreatorInterface* const* const all = self.getAllCreators(&count);
                return creators_of(all, count);
            },
            "Creators of this registry.")
        .def_prop_ro(
            "all_creators_recursive",
            [](Registry& self) {
                int32_t count = 0;
                trt::IPluginCreatorInterface* const* const all =
                    self.getAllCreatorsRecursive(&count);
                return creators_of(all, count);
            },
            "Creators of this registry and of those above it.")
        .def(
            "get_creator",
            [](Registry& self, const char* type, const char* version, const char* space) {
                return creator_of(self.getCreator(type, version, space));
            },
            "type"_a, "version"_a, "plugin_namespace"_a = "", "None when there is none.")
        .def(
            "register_creator",
            [](Registry& self, nb::pointer_and_handle<trt::IPluginCreatorInterface> creator,
               const char* space) {
                const bool done = self.registerCreator(*creator.p, space);
                if (done) {
                    kept_creators()[nb::int_(as_int(creator.p))] = nb::borrow(creator.h);
                }
                return done;
            },
            "creator"_a, "plugin_namespace"_a = "",
            "False when the same name, version and namespace is registered already.")
        .def(
            "deregister_creator",
            [](Registry& self, nb::pointer_and_handle<trt::IPluginCreatorInterface> creator) {
                const bool done = self.deregisterCreator(*creator.p);
                if (done) {
                    kept_creators().attr("pop")(as_int(creator.p), nb::none());
                }
                return done;
            },
            "creator"_a, "False when it is not registered.")
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
            "handle"_a, "Removes the creators of a library of load_library(), which stays open.")
        .def(
            "acquire_plugin_resource",
            [](Registry& self, const char* key, trt::IPluginResource& resource) {
                CallScope scope;
                trt::IPluginResource* const kept = self.acquirePluginResource(key, &resource);
                scope.finish();
                return kept;
            },
            "key"_a, "resource"_a, nb::rv_policy::reference,
            "The resource kept under this key: at the first call a clone of `resource`. None when "
            "it "
            "cannot be cloned. As many release_plugin_resource() belong to it.")
        .def(
            "release_plugin_resource",
            [](Registry& self, const char* key) {
                CallScope scope;
                const int32_t status = self.releasePluginResource(key);
                scope.finish();
                return status;
            },
            "key"_a, "0 for success.")
        .def_prop_rw("error_recorder", &Registry::getErrorRecorder, &Registry::setErrorRecorder,
                     nb::for_setter(nb::keep_alive<1, 2>()),
                     nb::for_setter(nb::arg("value").none()),
                     nb::for_getter(nb::rv_policy::reference), "Who gets errors; None: nobody.")
        .def_prop_rw("parent_search_enabled", &Registry::isParentSearchEnabled,
                     &Registry::setParentSearchEnabled,
                     "Whether registries above this one are searched too. Default True.");
}

// --- layers --------------------------------------------------------------------------------------

using Tensors = std::vector<trt::ITensor*>;

Part<trt::IPluginV3Layer> add_plugin(nb::pointer_and_handle<Network> self, const Tensors& inputs,
                                     const Tensors& shape_inputs, nb::handle plugin) {
    trt::IPluginV3* native = nullptr;
    std::unique_ptr<trt::IPluginV3> own;
    if (!nb::try_cast(plugin, native) || native == nullptr) {
        own = plugin_of(plugin, false);
        native = own.get();
    }
    CallScope scope;
    trt::IPluginV3Layer* layer =
        self.p->addPluginV3(inputs.data(), static_cast<int32_t>(inputs.size()), shape_inputs.data(),
                            static_cast<int32_t>(shape_inputs.size()), *native);
    scope.finish();
    return {layer, nb::borrow(self.h)};
}

/// The layer of a plugin of ingot.plugin on its inputs. Errors: TypeError; exceptions of the
/// function.
nb::object add_quick_plugin(nb::handle self, nb::handle given, const std::optional<bool>& aot) {
    using Request = trt::QuickPluginCreationRequest;
    nb::object parts = nb::borrow(given);
    if (PyCallable_Check(given.ptr()) != 0) {
        const auto flags = nb::cast<uint32_t>(self.attr("flags"));
        const auto is_set = [flags](trt::NetworkDefinitionCreationFlag f) {
            return ((flags >> static_cast<uint32_t>(f)) & 1U) != 0;
        };
        using Flag = trt::NetworkDefinitionCreationFlag;
        const Request request = aot ? (*aot ? Request::kSTRICT_AOT : Request::kSTRICT_JIT)
                                : is_set(Flag::kPREFER_AOT_PYTHON_PLUGINS) ? Request::kPREFER_AOT
                                : is_set(Flag::kPREFER_JIT_PYTHON_PLUGINS) ? Request::kPREFER_JIT
                                                                           : Request::kUNKNOWN;
        parts = given(request);
    }
    if (!nb::isinstance<nb::tuple>(parts) || nb::len(parts) != 3) {
        throw nb::type_error("add_plugin() takes (inputs, shape inputs, plugin) or a function that "
                             "gives these: what ingot.plugin.op.NAMESPACE.NAME(...) returns");
    }
    return self.attr("add_plugin_v3")(parts[0], parts[1], parts[2]);
}

struct SourceTexts {
    std::string name, source, kernel, signature, grid, block;
    std::optional<std::string> arguments, shared_bytes, workspace_bytes;

    ingot::CudaSource get() const {
        const auto text = [](const std::optional<std::string>& t) {
            return t ? t->c_str() : nullptr;
        };
        return {name.c_str(),      source.c_str(),     kernel.c_str(),
                signature.c_str(), text(arguments),    grid.c_str(),
                block.c_str(),     text(shared_bytes), text(workspace_bytes)};
    }
};

/// A numpy array over a tensor of a call, which ends with it.
nb::object array_of(const ingot::HostTensor& t, bool writable) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object dtype = nb::module_::import_("ingot._types").attr("storage")(t.type);
    nb::list shape;
    int64_t count = 1;
    for (int32_t i = 0; i < t.dims.nbDims; ++i) {
        shape.append(t.dims.d[i]);
        count *= t.dims.d[i];
    }
    if (count == 0) {
        return numpy.attr("empty")(shape, dtype);
    }
    const auto bytes = static_cast<Py_ssize_t>((count * element_bits(t.type) + 7) / 8);
    const nb::object view = nb::steal(PyMemoryView_FromMemory(static_cast<char*>(t.data), bytes,
                                                              writable ? PyBUF_WRITE : PyBUF_READ));
    return nb::object(numpy.attr("frombuffer")(view, dtype)).attr("reshape")(shape);
}

int32_t call_host_kernel(const ingot::HostCall& call) {
    return callback("host kernel", -1, [&call] {
        nb::list inputs;
        nb::list outputs;
        nb::list arguments;
        for (int32_t i = 0; i < call.nbInputs; ++i) {
            inputs.append(array_of(call.inputs[i], false));
        }
        for (int32_t i = 0; i < call.nbOutputs; ++i) {
            outputs.append(array_of(call.outputs[i], true));
        }
        for (int32_t i = 0; i < call.nbArguments; ++i) {
            const ingot::HostArgument& a = call.arguments[i];
            arguments.append(a.isReal ? nb::object(nb::float_(a.real))
                                      : nb::object(nb::int_(a.integer)));
        }
        const nb::handle function(static_cast<PyObject*>(call.user));
        function(inputs, outputs, arguments);
        return 0;
    });
}

void bind_host_kernels(nb::module_& m) {
    m.def(
        "register_host_kernel",
        [](const char* name, const nb::callable& function) {
            // Kept as long as the process: engines go on using it when it is deregistered.
            return ingot::registerHostKernel(name, call_host_kernel,
                                             nb::borrow(function).release().ptr());
        },
        "name"_a, "function"_a,
        "function(inputs, outputs, arguments) stands for the kernel of a CudaSource of this name "
        "on the CPU: it fills outputs, numpy arrays that are valid during the call; arguments are "
        "the numbers that the kernel would get. For contexts that are made from here on. False "
        "when there is one already.");
    m.def(
        "deregister_host_kernel",
        [](const char* name) { return ingot::deregisterHostKernel(name); }, "name"_a,
        "Engines that have a context keep it. False when there is none.");
}

void bind_sources(nb::module_& m) {
    using Text = const std::string&;
    using Option = std::optional<std::string>;
    nb::class_<SourceTexts>(
        m, "CudaSource",
        "A kernel as text, with the rule that gives the types and shapes of its outputs; see "
        "ingot.h for what the texts may say. It travels inside engines and runs on GPUs.")
        .def(
            "__init__",
            [](SourceTexts* at, Text name, Text source, Text kernel, Text signature, Text grid,
               Text block, Option arguments, Option shared, Option workspace) {
                new (at) SourceTexts{name,
                                     source,
                                     kernel,
                                     signature,
                                     grid,
                                     block,
                                     std::move(arguments),
                                     std::move(shared),
                                     std::move(workspace)};
            },
            "name"_a, "source"_a, "kernel"_a, "signature"_a, "grid"_a, "block"_a,
            "arguments"_a.none() = nb::none(), "shared_bytes"_a.none() = nb::none(),
            "workspace_bytes"_a.none() = nb::none())
        .def_ro("name", &SourceTexts::name, "As it was given.")
        .def_ro("source", &SourceTexts::source, "As it was given.")
        .def_ro("kernel", &SourceTexts::kernel, "As it was given.")
        .def_ro("signature", &SourceTexts::signature, "As it was given.");
    m.def(
        "add_cuda_source_layer",
        [](nb::pointer_and_handle<Network> network, const Tensors& inputs,
           const SourceTexts& source) {
            return Part<trt::ILayer>{ingot::addCudaSourceLayer(*network.p, inputs.data(),
                                                               static_cast<int32_t>(inputs.size()),
                                                               source.get()),
                                     nb::borrow(network.h)};
        },
        "network"_a, "inputs"_a, "source"_a,
        "A layer that runs a kernel given as text. None when the signature does not fit the inputs "
        "or a text is malformed: the logger has the place.");
    m.def(
        "register_cuda_source",
        [](const char* domain, const char* op, const SourceTexts& source) {
            return ingot::registerCudaSource(domain, op, source.get());
        },
        "domain"_a, "op"_a, "source"_a,
        "Makes the ONNX parser take the kernel for nodes of this operator. INT and FLOAT "
        "attributes "
        "of a node are names in its texts. False when the operator has one already.");
    m.def(
        "deregister_cuda_source",
        [](const char* domain, const char* op) { return ingot::deregisterCudaSource(domain, op); },
        "domain"_a, "op"_a, "False when the operator has none.");
}

} // namespace

void bind_plugins(nb::module_& m) {
    bind_plugin_values(m);
    bind_plugin_classes(m);
    bind_plugin_resources(m);
    bind_creators(m);
    bind_registry(m);
    bind_host_kernels(m);
    bind_sources(m);
    bind_versions(m);
    const nb::object network = m.attr("INetworkDefinition");
    nb::setattr(network, "add_plugin_v3",
                nb::cpp_function(&add_plugin, nb::name("add_plugin_v3"), nb::scope(network),
                                 nb::is_method(), "inputs"_a, "shape_inputs"_a, "plugin"_a,
                                 "A layer of the application: an IPluginV3, which is cloned. None "
                                 "when it is refused; the logger has the reason."));
    nb::setattr(network, "add_plugin",
                nb::cpp_function(&add_quick_plugin, nb::name("add_plugin"), nb::scope(network),
                                 nb::is_method(), "tuple"_a, "aot"_a.none() = nb::none(),
                                 "A layer from (inputs, shape inputs, plugin), or from a function "
                                 "that gives these: what ingot.plugin.op.NAMESPACE.NAME(...) "
                                 "returns. aot: False asks for a plugin that runs by Python, the "
                                 "only kind there is."));
    m.def(
        "get_plugin_registry", [] { return getPluginRegistry(); }, nb::rv_policy::reference,
        "The registry of the process, which those of builders and runtimes ask.");
    m.def(
        "get_builder_plugin_registry",
        [](trt::EngineCapability capability) { return getBuilderPluginRegistry(capability); },
        "capability"_a = trt::EngineCapability::kSTANDARD, nb::rv_policy::reference,
        "The registry of the process for STANDARD, else None.");
    m.def(
        "init_libnvinfer_plugins",
        [](trt::ILogger* logger, const char* space) {
            return initLibNvInferPlugins(logger, space);
        },
        "logger"_a.none(), "namespace"_a,
        "Registers the plugins that come with the library: there are none. True.");
}

} // namespace ingot::python
