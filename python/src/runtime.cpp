// SPDX-License-Identifier: Apache-2.0
// Runtime, Refitter, runtime configuration and cache, serialisation configuration, inspector.
#include "bind.h"
#include "ingot.h"

#include <algorithm>
#include <array>
#include <string>

namespace ingot::python {

namespace {

using trt::IRefitter;
using trt::IRuntime;
using Self = nb::pointer_and_handle<IRuntime>;

/// The bytes of any object with the buffer protocol, while it lives.
class Bytes {
public:
    explicit Bytes(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            throw nb::python_error();
        }
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;

    const void* data() const { return view_.buf; }
    size_t size() const { return static_cast<size_t>(view_.len); }

private:
    Py_buffer view_;
};

Owned<trt::ICudaEngine> engine_from(const Self& self, trt::ICudaEngine* engine) {
    return {std::unique_ptr<trt::ICudaEngine>(engine), nb::borrow(self.h), {}};
}

void bind_loading(nb::class_<IRuntime>& c) {
    c.def(
         "deserialize_cuda_engine",
         [](const Self& self, trt::IStreamReaderV2& reader) {
             return engine_from(self,
                                unlocked([&] { return self.p->deserializeCudaEngine(reader); }));
         },
         "stream_reader_v2"_a, "An engine from a reader, or None: the message says why.")
        .def(
            "deserialize_cuda_engine",
            [](const Self& self, trt::IStreamReader& reader) {
                return engine_from(self,
                                   unlocked([&] { return self.p->deserializeCudaEngine(reader); }));
            },
            "stream_reader"_a, "An engine from a reader, or None: the message says why.")
        .def(
            "deserialize_cuda_engine",
            [](const Self& self, const nb::object& data) {
                const Bytes bytes(data);
                return engine_from(self, unlocked([&] {
                                       return self.p->deserializeCudaEngine(bytes.data(),
                                                                            bytes.size());
                                   }));
            },
            "serialized_engine"_a,
            nb::sig("def deserialize_cuda_engine(self, serialized_engine: Buffer) -> "
                    "ICudaEngine | None"),
            "An engine from bytes, or None when they are damaged or cannot run here: the message "
            "says why. An engine is code: load only what you trust.")
        .def(
            "get_engine_validity",
            [](const IRuntime& self, const nb::object& data) {
                const Bytes bytes(data);
                uint64_t diagnostics = 0;
                const trt::EngineValidity validity = self.getEngineValidity(
                    bytes.data(), static_cast<int64_t>(bytes.size()), &diagnostics);
                return std::pair(validity, diagnostics);
            },
            "buffer"_a,
            "Whether an engine will run here, from its first engine_header_size bytes: (validity, "
            "bits of EngineInvalidityDiagnostics).")
        .def(
            "load_runtime",
            [](const Self& self, const char* path) {
                return Owned<IRuntime>{
                    std::unique_ptr<IRuntime>(self.p->loadRuntime(path)), nb::borrow(self.h), {}};
            },
            "path"_a, "A runtime from a lean library of another release.");
}

void bind_runtime_frame(nb::class_<IRuntime>& c) {
    common(c);
    c.def(nb::new_([](nb::pointer_and_handle<trt::ILogger> logger) {
              return made("Runtime", trt::createInferRuntime(*logger.p), logger.h);
          }),
          "logger"_a)
        .def("get_plugin_registry", &IRuntime::getPluginRegistry, nb::rv_policy::reference_internal,
             "The registry of creators of plugins.")
        .def_prop_ro("logger", &IRuntime::getLogger, nb::rv_policy::reference, "Who gets messages.")
        .def_prop_rw(
            "gpu_allocator", [](const IRuntime&) { return nb::none(); },
            [](IRuntime& self, trt::IGpuAllocator* allocator) { self.setGpuAllocator(allocator); },
            nb::for_setter(nb::keep_alive<1, 2>()), nb::for_setter(nb::arg("value").none()),
            "Who gives device memory to engines loaded from here on. Write-only.")
        .def(
            "set_device",
            [](IRuntime& self, int32_t device, int32_t ordinal) {
                return ingot::setDevice(self, static_cast<ingot::Device>(device), ordinal);
            },
            "device"_a, "ordinal"_a = 0,
            "Beyond TensorRT: where engines will run, 0 auto, 1 GPU, 2 CPU. False when there is no "
            "such device.")
        .def(
            "set_verify_weights",
            [](IRuntime& self, bool verify) { return ingot::setVerifyWeights(self, verify); },
            "verify"_a,
            "Beyond TensorRT: whether engines loaded from here on are refused when their weights "
            "do not match the hashes written with them (the default). False for a runtime of a "
            "release that cannot be told.")
        .def(
            "set_trusted_keys",
            [](IRuntime& self, const std::optional<std::string>& keys) {
                return ingot::setTrustedKeys(self, keys ? keys->c_str() : nullptr);
            },
            "public_keys"_a.none(),
            "Beyond TensorRT: Ed25519 public keys in PEM, whose engines may bring code for the "
            "GPU: "
            "kernels built ahead, kernels of source text. 'expires: 2027-01-31' before a key "
            "limits "
            "it. None: no keys. False for a malformed text, of which the logger is told.")
        .def(
            "set_trusted_only",
            [](IRuntime& self, bool only) { return ingot::setTrustedOnly(self, only); }, "only"_a,
            "Beyond TensorRT: whether engines loaded from here on are refused unless they are "
            "signed by a trusted key. False for a runtime of a release that cannot be told.");
    prop_held<&IRuntime::getErrorRecorder, &IRuntime::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger.");
    prop<&IRuntime::getMaxThreads, &IRuntime::setMaxThreads>(c, "max_threads", "At least 1.");
    prop<&IRuntime::getDLACore, &IRuntime::setDLACore>(c, "DLA_core", "There is no DLA.");
    prop_ro<&IRuntime::getNbDLACores>(c, "num_DLA_cores", "Always 0.");
    prop<&IRuntime::getDLAWorkspaceAllocationStrategy,
         &IRuntime::setDLAWorkspaceAllocationStrategy>(c, "dla_workspace_allocation_strategy",
                                                       "No effect: there is no DLA.");
    prop<&IRuntime::getTemporaryDirectory, &IRuntime::setTemporaryDirectory>(
        c, "temporary_directory", "No effect: no temporary files are written.");
    prop<&IRuntime::getTempfileControlFlags, &IRuntime::setTempfileControlFlags>(
        c, "tempfile_control_flags",
        "Bits of TempfileControlFlag. No effect: no temporary files are written.");
    prop<&IRuntime::getEngineHostCodeAllowed, &IRuntime::setEngineHostCodeAllowed>(
        c, "engine_host_code_allowed",
        "Whether engines may bring code for the GPU without being signed by a trusted "
        "key. They hold no code of the host.");
    prop<&IRuntime::getDeferredWeightsLoading, &IRuntime::setDeferredWeightsLoading>(
        c, "defer_weights_loading", "Load weights later, by ICudaEngine.load_weights().");
    prop_ro<&IRuntime::getEngineHeaderSize>(c, "engine_header_size", "Bytes.");
}

void bind_priority(nb::class_<trt::IRuntimeConfig>& c) {
    static constexpr std::array<const char*, 3> names = {"low", "normal", "high"};
    c.def_prop_rw(
        "priority",
        [](const trt::IRuntimeConfig& self) {
            return names.at(static_cast<size_t>(ingot::getPriority(self)));
        },
        [](trt::IRuntimeConfig& self, const std::string& value) {
            auto it = std::find(names.begin(), names.end(), value);
            if (it == names.end()) {
                throw nb::value_error(
                    ("priority: got '" + value + "', expected low, normal or high").c_str());
            }
            ingot::setPriority(self, static_cast<ingot::Priority>(it - names.begin()));
        },
        "Beyond TensorRT: how urgent runs on the default stream are to a GPU that others use too, "
        "\"low\", \"normal\" (the default) or \"high\"; with \"low\" kernels compile when nobody "
        "else wants the CPU. Runs on other streams are as urgent as those.");
}

void bind_runtime_config(nb::module_& m) {
    using Cache = trt::IRuntimeCache;
    nb::class_<Cache> cache(m, "IRuntimeCache", "Compiled kernels that contexts share.");
    common(cache);
    cache.def("serialize", slow<&Cache::serialize>(), "The kernels compiled so far, for a file.")
        .def(
            "deserialize",
            [](Cache& self, const nb::object& data) {
                const Bytes bytes(data);
                return unlocked([&] { return self.deserialize(bytes.data(), bytes.size()); });
            },
            "blob"_a, "False, and nothing changes, for bytes that do not fit.")
        .def("reset", method<&Cache::reset>(), "Forgets all kernels.");
    using Config = trt::IRuntimeConfig;
    nb::class_<Config> config(m, "IRuntimeConfig", "How contexts run.");
    common(config);
    config
        .def("create_runtime_cache", method<&Config::createRuntimeCache>(),
             "An empty cache of compiled kernels.")
        .def("set_runtime_cache", &Config::setRuntimeCache, "cache"_a, nb::keep_alive<1, 2>(),
             "Contexts created by this configuration find kernels in the cache and leave theirs "
             "there. Default: a cache of the process, backed by the user's folder.")
        .def("get_runtime_cache", &Config::getRuntimeCache, nb::rv_policy::reference_internal,
             "What set_runtime_cache() set, or None.")
        .def("set_execution_context_allocation_strategy",
             method<&Config::setExecutionContextAllocationStrategy>(),
             "strategy"_a = trt::ExecutionContextAllocationStrategy::kSTATIC,
             "When contexts get their memory. Default STATIC.")
        .def("get_execution_context_allocation_strategy",
             method<&Config::getExecutionContextAllocationStrategy>(),
             "When contexts get their memory.");
    prop<&Config::getDynamicShapesKernelSpecializationStrategy,
         &Config::setDynamicShapesKernelSpecializationStrategy>(
        config, "dynamic_shapes_kernel_specialization_strategy", "Default LAZY.");
    prop<&Config::getCudaGraphStrategy, &Config::setCudaGraphStrategy>(
        config, "cuda_graph_strategy", "Default DISABLED.");
    bind_priority(config);
    m.attr("RuntimeConfig") = config;
    m.attr("RuntimeCache") = cache;
}

void bind_engine_tools(nb::module_& m) {
    using Serialization = trt::ISerializationConfig;
    nb::class_<Serialization> config(m, "ISerializationConfig", "How an engine is written.");
    common(config);
    prop<&Serialization::getFlags, &Serialization::setFlags>(config, "flags",
                                                             "Bits of SerializationFlag.");
    config
        .def("set_flag", method<&Serialization::setFlag>(), "flag"_a,
             "Switches a SerializationFlag on. False when it contradicts another one.")
        .def("clear_flag", method<&Serialization::clearFlag>(), "flag"_a,
             "Switches a SerializationFlag off.")
        .def("get_flag", method<&Serialization::getFlag>(), "flag"_a,
             "Whether a SerializationFlag is on.");
    using Inspector = trt::IEngineInspector;
    nb::class_<Inspector> inspector(m, "EngineInspector", "Describes the layers of an engine.");
    common(inspector);
    inspector
        .def("get_layer_information", method<&Inspector::getLayerInformation>(), "layer_index"_a,
             "format"_a,
             "A layer as text or JSON, as detailed as the engine's profiling_verbosity. Errors: "
             "None for a bad index.")
        .def("get_engine_information", method<&Inspector::getEngineInformation>(), "format"_a,
             "All layers, inputs and outputs, as text or JSON.")
        .def_prop_rw(
            "execution_context",
            [](const Inspector& self) {
                return const_cast<trt::IExecutionContext*>(self.getExecutionContext());
            },
            [](Inspector& self, trt::IExecutionContext* context) {
                self.setExecutionContext(context);
            },
            nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::keep_alive<1, 2>()),
            nb::for_setter(nb::arg("value").none()), "Shapes are those set in it.");
    prop_held<&Inspector::getErrorRecorder, &Inspector::setErrorRecorder>(
        inspector, "error_recorder", "Who gets errors; None: the logger.");
}

/// Names of weights, from a method that fills an array.
template <class F>
std::vector<std::string> names_from(const F& fill) {
    std::vector<const char*> names(static_cast<size_t>(std::max(fill(0, nullptr), 0)));
    fill(static_cast<int32_t>(names.size()), names.data());
    return {names.begin(), names.end()};
}

using Roles = std::pair<std::vector<std::string>, std::vector<trt::WeightsRole>>;

template <class F>
Roles roles_from(const F& fill) {
    std::vector<const char*> names(static_cast<size_t>(std::max(fill(0, nullptr, nullptr), 0)));
    std::vector<trt::WeightsRole> roles(names.size());
    fill(static_cast<int32_t>(names.size()), names.data(), roles.data());
    return {{names.begin(), names.end()}, roles};
}

void bind_refitter_weights(nb::class_<IRefitter>& c) {
    c.def(
         "set_weights",
         [](nb::pointer_and_handle<IRefitter> self, const char* layer, trt::WeightsRole role,
            const WeightsArg& weights) {
             const bool set = self.p->setWeights(layer, role, weights.weights.value);
             if (set && weights.weights.owner.is_valid()) {
                 nb::keep_alive_obj(self.h, weights.weights.owner);
             }
             return set;
         },
         "layer_name"_a, "role"_a, "weights"_a,
         "By layer and role. False for an unknown pair or a wrong type or count.")
        .def(
            "set_named_weights",
            [](nb::pointer_and_handle<IRefitter> self, const char* name, const WeightsArg& weights,
               trt::TensorLocation location) {
                const bool set = self.p->setNamedWeights(name, weights.weights.value, location);
                if (set && weights.weights.owner.is_valid()) {
                    nb::keep_alive_obj(self.h, weights.weights.owner);
                }
                return set;
            },
            "name"_a, "weights"_a, "location"_a = trt::TensorLocation::kHOST,
            "By name. False for an unknown name or a wrong type or count.")
        .def(
            "get_named_weights",
            [](const nb::pointer_and_handle<IRefitter>& self, const char* name) {
                return PyWeights{self.p->getNamedWeights(name), nb::object()};
            },
            "weights_name"_a, "The weights set by set_named_weights(); empty when none are set.")
        .def("get_weights_location", method<&IRefitter::getWeightsLocation>(), "weights_name"_a,
             "Where weights of a name were given: HOST or DEVICE.")
        .def("unset_named_weights", method<&IRefitter::unsetNamedWeights>(), "weights_name"_a,
             "Takes set_named_weights() back. False when it was not called.")
        .def(
            "get_weights_prototype",
            [](const IRefitter& self, const char* name) {
                return PyWeights{self.getWeightsPrototype(name), nb::object()};
            },
            "weights_name"_a, "Type and count that weights of this name must have.");
}

void bind_refitter(nb::module_& m) {
    nb::class_<IRefitter> c(m, "Refitter", "Replaces weights of an engine.");
    common(c);
    c.def(nb::new_([](nb::pointer_and_handle<trt::ICudaEngine> engine,
                      nb::pointer_and_handle<trt::ILogger> logger) {
              return made("Refitter", trt::createInferRefitter(*engine.p, *logger.p), engine.h,
                          logger.h);
          }),
          "engine"_a, "logger"_a);
    bind_refitter_weights(c);
    c.def(
         "get_missing_weights",
         [](IRefitter& self) {
             return names_from(
                 [&](int32_t n, const char** names) { return self.getMissingWeights(n, names); });
         },
         "Names of weights that must be given before refit_cuda_engine(), because others were.")
        .def(
            "get_all_weights",
            [](IRefitter& self) {
                return names_from(
                    [&](int32_t n, const char** names) { return self.getAllWeights(n, names); });
            },
            "Names of all weights that can be refitted.")
        .def(
            "get_missing",
            [](IRefitter& self) {
                return roles_from([&](int32_t n, const char** names, trt::WeightsRole* roles) {
                    return self.getMissing(n, names, roles);
                });
            },
            "(names of layers, roles).")
        .def(
            "get_all",
            [](IRefitter& self) {
                return roles_from([&](int32_t n, const char** names, trt::WeightsRole* roles) {
                    return self.getAll(n, names, roles);
                });
            },
            "(names of layers, roles).")
        .def("refit_cuda_engine", slow<&IRefitter::refitCudaEngine>(),
             "False, and nothing changes, when weights that the engine lacks are missing.")
        .def(
            "refit_cuda_engine_async",
            [](IRefitter& self, uintptr_t stream) {
                return unlocked([&] {
                    return self.refitCudaEngineAsync(reinterpret_cast<cudaStream_t>(stream));
                });
            },
            "stream_handle"_a,
            "As refit_cuda_engine(), in the order of a CUDA stream: weights stay the caller's "
            "until it is done.")
        .def("release_refit_resources", method<&IRefitter::releaseRefitResources>(),
             "Frees copies of weights that a refit has put into the engine. True.")
        .def_prop_ro("logger", &IRefitter::getLogger, nb::rv_policy::reference,
                     "Who gets messages.");
    prop<&IRefitter::getMaxThreads, &IRefitter::setMaxThreads>(c, "max_threads", "At least 1.");
    prop<&IRefitter::getWeightsValidation, &IRefitter::setWeightsValidation>(
        c, "weights_validation", "Default True.");
    prop_held<&IRefitter::getErrorRecorder, &IRefitter::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger.");
}

} // namespace

void bind_runtime(nb::module_& m) {
    nb::class_<IRuntime> c(m, "Runtime", "Loads engines, which keep what they need of it alive.");
    bind_runtime_frame(c);
    bind_loading(c);
    bind_runtime_config(m);
    bind_engine_tools(m);
    bind_refitter(m);
}

} // namespace ingot::python
