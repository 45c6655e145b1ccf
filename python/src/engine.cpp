// SPDX-License-Identifier: Apache-2.0
// ICudaEngine.
#include "bind.h"

namespace ingot::python {

namespace {

using trt::ICudaEngine;
using Engine = nb::class_<ICudaEngine>;
using Self = nb::pointer_and_handle<ICudaEngine>;

Owned<trt::IExecutionContext> context(const Self& self, trt::IExecutionContext* made,
                                      nb::handle other = {}) {
    return {std::unique_ptr<trt::IExecutionContext>(made), nb::borrow(self.h), nb::borrow(other)};
}

void bind_props(Engine& c) {
    common(c);
    prop_ro<&ICudaEngine::getNbIOTensors>(c, "num_io_tensors", "Inputs and outputs.");
    prop_ro<&ICudaEngine::getNbLayers>(c, "num_layers", "Steps that the engine runs.");
    prop_ro<&ICudaEngine::getName>(c, "name", "Name of the network.");
    prop_ro<&ICudaEngine::isRefittable>(c, "refittable", "Whether Refitter can replace weights.");
    prop_ro<&ICudaEngine::getNbOptimizationProfiles>(c, "num_optimization_profiles", "At least 1.");
    prop_ro<&ICudaEngine::getEngineCapability>(c, "engine_capability", "Always STANDARD.");
    prop_ro<&ICudaEngine::getTacticSources>(c, "tactic_sources",
                                            "Bits of TacticSource that the engine was built with.");
    prop_ro<&ICudaEngine::getProfilingVerbosity>(c, "profiling_verbosity",
                                                 "How much EngineInspector tells.");
    prop_ro<&ICudaEngine::getHardwareCompatibilityLevel>(
        c, "hardware_compatibility_level",
        "As set at build. Engines run on every GPU of compute capability 8.0 and up anyway.");
    prop_ro<&ICudaEngine::getNbAuxStreams>(
        c, "num_aux_streams", "Streams beside the caller's that a run uses: always 0.");
    prop_ro<&ICudaEngine::getStreamableWeightsSize>(c, "streamable_weights_size", "Bytes.");
    prop<&ICudaEngine::getWeightStreamingBudgetV2, &ICudaEngine::setWeightStreamingBudgetV2>(
        c, "weight_streaming_budget_v2", "Bytes of device memory for streamable weights.");
    prop<&ICudaEngine::getWeightStreamingBudget, &ICudaEngine::setWeightStreamingBudget>(
        c, "weight_streaming_budget", "Bytes; -1: no streaming; 0: automatic.");
    prop_ro<&ICudaEngine::getMinimumWeightStreamingBudget>(c, "minimum_weight_streaming_budget",
                                                           "Bytes; less cannot be set.");
    prop_ro<&ICudaEngine::getWeightStreamingScratchMemorySize>(
        c, "weight_streaming_scratch_memory_size", "Bytes.");
    prop_ro<&ICudaEngine::getDeviceMemorySizeV2>(c, "device_memory_size_v2",
                                                 "Activation memory of a context in bytes.");
    prop_ro<&ICudaEngine::getDeviceMemorySize>(c, "device_memory_size", "Bytes.");
    prop_ro<&ICudaEngine::areWeightsLoaded>(
        c, "weights_loaded",
        "False until deferred weights are loaded: see Runtime.defer_weights_loading.");
    prop_ro<&ICudaEngine::hasImplicitBatchDimension>(c, "has_implicit_batch_dimension",
                                                     "Always False.");
    prop_held<&ICudaEngine::getErrorRecorder, &ICudaEngine::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger. Default: the runtime's.");
}

/// Methods of a tensor's name, of which some take a profile too.
template <class R>
void named(Engine& c, const char* name, R (ICudaEngine::*plain)(const char*) const noexcept,
           R (ICudaEngine::*of_profile)(const char*, int32_t) const noexcept, const char* doc) {
    c.def(
         name, [plain](const ICudaEngine& self, const char* n) { return (self.*plain)(n); },
         "name"_a, doc)
        .def(
            name,
            [of_profile](const ICudaEngine& self, const char* n, int32_t profile) {
                return (self.*of_profile)(n, profile);
            },
            "name"_a, "profile_index"_a, doc);
}

std::vector<trt::Dims> profile_shape(const ICudaEngine& self, const nb::object& a,
                                     const nb::object& b) {
    // Older programs give the profile first.
    const bool old = nb::isinstance<nb::int_>(a);
    const auto name = nb::cast<std::string>(old ? b : a);
    const auto profile = nb::cast<int32_t>(old ? a : b);
    using Select = trt::OptProfileSelector;
    std::vector<trt::Dims> shapes;
    for (const Select select : {Select::kMIN, Select::kOPT, Select::kMAX}) {
        shapes.push_back(self.getProfileShape(name.c_str(), profile, select));
    }
    return shapes;
}

std::vector<std::vector<int64_t>> profile_values(const ICudaEngine& self, const char* name,
                                                 int32_t profile) {
    using Select = trt::OptProfileSelector;
    std::vector<std::vector<int64_t>> all;
    const trt::Dims shape = self.getTensorShape(name);
    const int64_t count = shape.nbDims == 1 ? shape.d[0] : 1;
    for (const Select select : {Select::kMIN, Select::kOPT, Select::kMAX}) {
        const int64_t* const values = self.getProfileTensorValuesV2(name, profile, select);
        if (values == nullptr || count < 0) {
            return {};
        }
        all.emplace_back(values, values + count);
    }
    return all;
}

void bind_tensors_of(Engine& c) {
    c.def("get_tensor_name", method<&ICudaEngine::getIOTensorName>(), "index"_a,
          "Inputs first. None for a bad index.")
        .def("__getitem__",
             [](const ICudaEngine& self, int32_t index) {
                 const char* const name = self.getIOTensorName(index);
                 if (name == nullptr) {
                     throw nb::index_error("tensor index out of range");
                 }
                 return name;
             })
        .def("__len__", &ICudaEngine::getNbIOTensors)
        .def("get_tensor_mode", method<&ICudaEngine::getTensorIOMode>(), "name"_a,
             "INPUT or OUTPUT; NONE for an unknown name.")
        .def("get_tensor_shape", method<&ICudaEngine::getTensorShape>(), "name"_a,
             "-1 for sizes known only at run time.")
        .def("get_tensor_dtype", method<&ICudaEngine::getTensorDataType>(), "name"_a,
             "Type of the elements of an input or output.")
        .def("get_tensor_location", method<&ICudaEngine::getTensorLocation>(), "name"_a,
             "HOST for inputs and outputs whose values are shapes, else DEVICE.")
        .def("is_shape_inference_io", method<&ICudaEngine::isShapeInferenceIO>(), "name"_a,
             "Whether the values of the tensor are needed, or found, when shapes are inferred.")
        .def("get_aliased_input_tensor", method<&ICudaEngine::getAliasedInputTensor>(), "name"_a,
             "Name of the input in whose memory the output lies; None when in its own.")
        .def("is_debug_tensor", method<&ICudaEngine::isDebugTensor>(), "name"_a,
             "Whether the tensor was marked by mark_debug().")
        .def("get_tensor_profile_shape", &profile_shape, "name"_a, "profile_index"_a,
             nb::sig("def get_tensor_profile_shape(self, name: str, profile_index: int) -> "
                     "list[Dims]"),
             "[min, opt, max].")
        .def("get_tensor_profile_values", &profile_values, "name"_a, "profile_index"_a,
             "[min, opt, max] of a shape input; [] for others.");
    named(c, "get_tensor_format", &ICudaEngine::getTensorFormat, &ICudaEngine::getTensorFormat,
          "LINEAR (row-major) where the network allowed it, else the format that was chosen.");
    named(c, "get_tensor_format_desc", &ICudaEngine::getTensorFormatDesc,
          &ICudaEngine::getTensorFormatDesc, "The format and type in words.");
    named(c, "get_tensor_bytes_per_component", &ICudaEngine::getTensorBytesPerComponent,
          &ICudaEngine::getTensorBytesPerComponent,
          "Bytes of an element of a vectorised format; -1 for others.");
    named(c, "get_tensor_components_per_element", &ICudaEngine::getTensorComponentsPerElement,
          &ICudaEngine::getTensorComponentsPerElement,
          "Elements that a vectorised format keeps together; -1 for others.");
    named(c, "get_tensor_vectorized_dim", &ICudaEngine::getTensorVectorizedDim,
          &ICudaEngine::getTensorVectorizedDim,
          "The dimension that a vectorised format groups; -1 for others.");
}

void bind_contexts(Engine& c) {
    using Strategy = trt::ExecutionContextAllocationStrategy;
    c.def(
         "create_execution_context",
         [](const Self& self, Strategy strategy) {
             return context(self,
                            unlocked([&] { return self.p->createExecutionContext(strategy); }));
         },
         "strategy"_a = Strategy::kSTATIC,
         "A context of its own memory, or None when memory or kernels cannot be had.")
        .def(
            "create_execution_context",
            [](const Self& self,
               std::optional<nb::pointer_and_handle<trt::IRuntimeConfig>> config) {
                trt::IRuntimeConfig* const given = config ? config->p : nullptr;
                return context(self,
                               unlocked([&] { return self.p->createExecutionContext(given); }),
                               config ? config->h : nb::handle());
            },
            "runtime_config"_a = nb::none(),
            "A context by settings of create_runtime_config(), which it keeps; None on an error.")
        .def(
            "create_execution_context_without_device_memory",
            [](const Self& self) {
                return context(self, unlocked([&] {
                                   return self.p->createExecutionContext(Strategy::kUSER_MANAGED);
                               }));
            },
            "A context with the strategy USER_MANAGED: give it memory by set_device_memory().")
        .def("create_runtime_config", method<&ICudaEngine::createRuntimeConfig>(),
             "Settings for create_execution_context(): strategies and a cache of kernels.")
        .def("create_engine_inspector", method<&ICudaEngine::createEngineInspector>(),
             "What describes the layers of this engine.");
}

void bind_weights_of(Engine& c) {
    c.def("serialize", slow<&ICudaEngine::serialize>(), "None when weights are still missing.")
        .def("create_serialization_config", method<&ICudaEngine::createSerializationConfig>(),
             "Settings for serialize_with_config().")
        .def("serialize_with_config", slow<&ICudaEngine::serializeWithConfig>(), "config"_a,
             "The engine as bytes, without weights or with what refitting needs. None on an error.")
        .def("get_engine_stat", method<&ICudaEngine::getEngineStat>(),
             "stat"_a = trt::EngineStat::kTOTAL_WEIGHTS_SIZE,
             "Bytes, as EngineStat says; -1 for STRIPPED_WEIGHTS_SIZE of an engine that is not "
             "stripped.")
        .def("get_device_memory_size_for_profile_v2",
             method<&ICudaEngine::getDeviceMemorySizeForProfileV2>(), "profile_index"_a,
             "Activation memory of a context for shapes of one profile, in bytes.")
        .def("get_device_memory_size_for_profile",
             method<&ICudaEngine::getDeviceMemorySizeForProfile>(), "profile_index"_a,
             "As get_device_memory_size_for_profile_v2().")
        .def("get_weight_streaming_automatic_budget",
             method<&ICudaEngine::getWeightStreamingAutomaticBudget>(),
             "A budget in bytes that fits the free memory of the device.")
        .def("get_weight_streaming_scratch_memory_size",
             method<&ICudaEngine::getWeightStreamingScratchMemorySize>(),
             "Device memory in bytes that streaming under the present budget needs; "
             "device_memory_size_v2 has it already.")
        .def(
            "load_weights",
            [](ICudaEngine& self, const nb::bytes& blob) {
                return unlocked([&] {
                    return self.loadWeights(blob.data(), static_cast<int64_t>(blob.size()));
                });
            },
            "blob"_a, "Loads the weights from the bytes the engine was deserialised from.")
        .def(
            "load_weights_async",
            [](ICudaEngine& self, trt::IStreamReaderV2& reader, uintptr_t stream) {
                return unlocked([&] {
                    return self.loadWeightsAsync(reader, reinterpret_cast<cudaStream_t>(stream));
                });
            },
            "stream_reader"_a, "stream"_a, nb::keep_alive<1, 2>(),
            "As load_weights(), from a reader; weights are ready once the stream has passed this "
            "point.")
        .def("unload_weights", slow<&ICudaEngine::unloadWeights>(),
             "Frees the weights of an engine that was deserialised with defer_weights_loading: "
             "load_weights() gives them back. False when they are not loaded, or came with the "
             "engine.")
        .def("create_weights_manager", method<&ICudaEngine::createWeightsManager>(),
             "What saves, unloads and restores the weights of an engine that can be refitted; None "
             "for others.")
        .def(
            "get_input_default",
            [](nb::pointer_and_handle<ICudaEngine> self, const char* name) -> nb::object {
                ingot::HostTensor value;
                if (!ingot::getInputDefault(*self.p, name, value)) {
                    return nb::none();
                }
                int64_t count = 1;
                nb::list shape;
                for (int32_t i = 0; i < value.dims.nbDims; ++i) {
                    count *= value.dims.d[i];
                    shape.append(value.dims.d[i]);
                }
                nb::object view = numpy_of({value.type, value.data, count}, self.h);
                nb::object copy = view.attr("reshape")(shape).attr("copy")(); // outlives a refit
                copy.attr("setflags")("write"_a = false);
                return copy;
            },
            "name"_a, nb::sig("def get_input_default(self, name: str) -> numpy.ndarray | None"),
            "Beyond TensorRT: the default of an input that a run may leave out "
            "(OnnxParser.set_optional_inputs(), ingot build --optionalInputs), or that a refit has "
            "set since, as a copy that is read-only; None for others.")
        .def_prop_ro(
            "device",
            [](const ICudaEngine& self) {
                return ingot::getDevice(self) == ingot::Device::kGPU ? "gpu" : "cpu";
            },
            "Beyond TensorRT: where it runs, \"gpu\" or \"cpu\".")
        .def_prop_ro(
            "device_error", [](const ICudaEngine& self) { return ingot::getDeviceError(self); },
            nb::sig("def device_error(self) -> str | None"),
            "Beyond TensorRT: why the device is lost to this process: the first error that left it "
            "unusable until the process ends. None while it is sound, and on the CPU. Safe from "
            "any thread.");
}

void bind_weights_manager(nb::module_& m) {
    using Manager = trt::IWeightsManager;
    nb::class_<Manager> c(m, "IWeightsManager",
                          "Saves the weights of an engine, takes them out of memory, and puts them "
                          "back. No other call "
                          "on the engine and its contexts goes on meanwhile. Methods return False, "
                          "and change nothing, "
                          "on an error, which the engine's recorder or the logger gets.");
    common(c);
    c.def("get_size", method<&Manager::getSize>(), "Bytes that are saved and restored.")
        .def(
            "save_to_buffer",
            [](Manager& self, uintptr_t to, int64_t size, trt::TensorLocation location,
               uintptr_t stream) {
                return unlocked([&] {
                    return self.saveToBuffer(reinterpret_cast<void*>(to), size, location,
                                             reinterpret_cast<cudaStream_t>(stream));
                });
            },
            "destination"_a, "size"_a, "location"_a, "stream_handle"_a,
            "Copies the weights to an address, after what the stream holds; done when it returns. "
            "size has to be get_size().")
        .def(
            "save_to_stream",
            [](Manager& self, trt::IStreamWriter& writer, uintptr_t stream) {
                return unlocked([&] {
                    return self.saveToStream(writer, reinterpret_cast<cudaStream_t>(stream));
                });
            },
            "writer"_a, "stream_handle"_a, "The same in pieces, from the first byte on.")
        .def(
            "unload",
            [](Manager& self, uintptr_t stream) {
                return unlocked(
                    [&] { return self.unload(reinterpret_cast<cudaStream_t>(stream)); });
            },
            "stream_handle"_a,
            "Takes the weights out of memory. Contexts stay; nothing runs before a restore.")
        .def(
            "restore_from_buffer",
            [](Manager& self, uintptr_t from, int64_t size, trt::TensorLocation location,
               uintptr_t stream) {
                return unlocked([&] {
                    return self.restoreFromBuffer(reinterpret_cast<const void*>(from), size,
                                                  location, reinterpret_cast<cudaStream_t>(stream));
                });
            },
            "source"_a, "size"_a, "location"_a, "stream_handle"_a,
            "Gives an engine that has no weights those that were saved.")
        .def(
            "restore_from_vmm_allocation",
            [](Manager& self, uint64_t handle, int64_t offset, int64_t size, uintptr_t stream) {
                return self.restoreFromVmmAllocation(handle, offset, size,
                                                     reinterpret_cast<cudaStream_t>(stream));
            },
            "allocation_handle"_a, "offset"_a, "size"_a, "stream_handle"_a,
            "Not supported: memory of others is not mapped. False, with an error.");
}

} // namespace

void bind_engine(nb::module_& m) {
    Engine c(m, "ICudaEngine", nb::is_weak_referenceable(),
             "A network that was built. Contexts keep what they need of it alive. A tensor name "
             "that is no input or output is reported to the recorder or the logger.");
    bind_props(c);
    bind_tensors_of(c);
    bind_contexts(c);
    bind_weights_of(c);
    bind_weights_manager(m);
}

} // namespace ingot::python
