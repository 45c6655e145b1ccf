// SPDX-License-Identifier: Apache-2.0
// IExecutionContext. Addresses and streams are integers.
#include "bind.h"

#include <string>

namespace ingot::python {

namespace {

using Context = trt::IExecutionContext;
using Class = nb::class_<Context>;

cudaStream_t stream_of(uintptr_t handle) {
    return reinterpret_cast<cudaStream_t>(handle);
}
void* address_of(uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

std::optional<std::vector<std::string>> infer_shapes(Context& self) {
    const char* names[256];
    const int32_t count = unlocked([&] { return self.inferShapes(256, names); });
    if (count < 0) {
        return std::nullopt;
    }
    return std::vector<std::string>(names, names + std::min(count, 256));
}

void bind_props(Class& c) {
    common(c);
    prop<&Context::getName, &Context::setName>(c, "name", "For messages and profilers.");
    prop<&Context::getDebugSync, &Context::setDebugSync>(
        c, "debug_sync",
        "Wait for the end of every run, so that its errors show where it was enqueued.");
    prop<&Context::getEnqueueEmitsProfile, &Context::setEnqueueEmitsProfile>(
        c, "enqueue_emits_profile", "Default True.");
    prop<&Context::getPersistentCacheLimit, &Context::setPersistentCacheLimit>(
        c, "persistent_cache_limit", "L2 cache in bytes that activations may be kept in.");
    prop<&Context::getNvtxVerbosity, &Context::setNvtxVerbosity>(
        c, "nvtx_verbosity", "How much profilers such as Nsight Systems are told of a run.");
    prop<&Context::getUnfusedTensorsDebugState, &Context::setUnfusedTensorsDebugState>(
        c, "unfused_tensors_debug_state",
        "Whether tensors of mark_unfused_tensors_as_debug_tensors() are shown. Default False.");
    prop_held<&Context::getProfiler, &Context::setProfiler>(c, "profiler", "Times layers; None.");
    prop_held<&Context::getErrorRecorder, &Context::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger. Default: the engine's.");
    prop_held<&Context::getTemporaryStorageAllocator, &Context::setTemporaryStorageAllocator>(
        c, "temporary_allocator", "Who gives memory during runs; None: the engine's allocator.");
    prop_ro<&Context::getOptimizationProfile>(c, "active_optimization_profile",
                                              "The profile in use; 0 at first.");
    prop_ro<&Context::allInputDimensionsSpecified>(c, "all_binding_shapes_specified",
                                                   "Whether every input has a shape.");
    prop_ro<&Context::allInputShapesSpecified>(
        c, "all_shape_inputs_specified",
        "Whether every input whose values are shapes has an address.");
    c.def_prop_ro(
         "engine",
         [](const Context& self) { return const_cast<trt::ICudaEngine*>(&self.getEngine()); },
         nb::rv_policy::reference_internal, "The engine, which the context keeps alive.")
        .def("get_runtime_config", &Context::getRuntimeConfig, nb::rv_policy::reference_internal,
             "The settings that it was created by.")
        .def_prop_rw(
            "device_memory", [](const Context&) { return nb::none(); },
            [](Context& self, uintptr_t memory) { self.setDeviceMemory(address_of(memory)); },
            "Address of memory for activations of a USER_MANAGED context. Write-only.")
        .def(
            "set_device_memory",
            [](Context& self, uintptr_t memory, int64_t size) {
                self.setDeviceMemoryV2(address_of(memory), size);
            },
            "memory"_a, "size"_a, "Address, aligned to 256 bytes, and bytes.");
}

void bind_shapes(Class& c) {
    c.def("set_input_shape", method<&Context::setInputShape>(), "name"_a, "shape"_a,
          "False for a shape outside the profile.")
        .def(
            "set_shape_input",
            [](nb::pointer_and_handle<Context> self, const char* name,
               const std::vector<int64_t>& values) {
                const auto type = self.p->getEngine().getTensorDataType(name);
                const nb::object array = nb::module_::import_("numpy").attr("array")(
                    nb::cast(values), type == trt::DataType::kINT32 ? "int32" : "int64");
                nb::keep_alive_obj(self.h, array);
                return self.p->setInputTensorAddress(
                    name, address_of(nb::cast<uintptr_t>(array.attr("ctypes").attr("data"))));
            },
            "name"_a, "values"_a, "Values of a shape input, which are copied.")
        .def("get_tensor_shape", method<&Context::getTensorShape>(), "name"_a,
             "-1 where it depends on what is not set, or on data.")
        .def("get_tensor_strides", method<&Context::getTensorStrides>(), "name"_a, "In elements.")
        .def("infer_shapes", &infer_shapes,
             "Names of inputs whose shape or value is missing; None on an error.")
        .def("get_max_output_size", method<&Context::getMaxOutputSize>(), "name"_a,
             "Bytes; -1 when there is no bound.")
        .def("update_device_memory_size_for_shapes",
             slow<&Context::updateDeviceMemorySizeForShapes>(), "Bytes.")
        .def(
            "set_optimization_profile_async",
            [](Context& self, int32_t profile, uintptr_t stream) {
                return unlocked(
                    [&] { return self.setOptimizationProfileAsync(profile, stream_of(stream)); });
            },
            "profile_index"_a, "stream_handle"_a, "Input shapes are forgotten.");
}

void bind_addresses(Class& c) {
    c.def(
         "set_tensor_address",
         [](Context& self, const char* name, uintptr_t memory) {
             return self.setTensorAddress(name, address_of(memory));
         },
         "name"_a, "memory"_a,
         "Address of an input or output: device memory, host memory on the CPU backend and for "
         "tensors whose location is HOST. The memory stays the caller's.")
        .def(
            "get_tensor_address",
            [](const Context& self, const char* name) {
                return reinterpret_cast<uintptr_t>(self.getTensorAddress(name));
            },
            "name"_a, "Address of an input or output; 0 when none was set.")
        .def("set_output_allocator", &Context::setOutputAllocator, "name"_a,
             "output_allocator"_a.none(), nb::keep_alive<1, 3>(),
             "Who gives memory for an output whose size is known only after a run; None takes it "
             "away.")
        .def("get_output_allocator", &Context::getOutputAllocator, "name"_a,
             nb::rv_policy::reference, "What set_output_allocator() set, or None.")
        .def(
            "set_input_consumed_event",
            [](Context& self, uintptr_t event) {
                return self.setInputConsumedEvent(reinterpret_cast<cudaEvent_t>(event));
            },
            "event"_a,
            "A CUDA event, as an integer, that runs record once their inputs may be overwritten; "
            "0: none.")
        .def(
            "get_input_consumed_event",
            [](const Context& self) {
                return reinterpret_cast<uintptr_t>(self.getInputConsumedEvent());
            },
            "The event's address; 0 when there is none.")
        .def(
            "set_aux_streams",
            [](Context& self, const std::vector<uintptr_t>& handles) {
                std::vector<cudaStream_t> streams;
                for (const uintptr_t handle : handles) {
                    streams.push_back(stream_of(handle));
                }
                self.setAuxStreams(streams.data(), static_cast<int32_t>(streams.size()));
            },
            "aux_streams"_a,
            "CUDA streams, as integers, for work beside the caller's stream: there is none, so "
            "that they get a warning and are not used.")
        .def(
            "set_communicator",
            [](Context& self, uintptr_t communicator) {
                return self.setCommunicator(address_of(communicator));
            },
            "communicator"_a,
            "The NCCL communicator of this rank, as an integer, for the network's collective "
            "layers; "
            "0 for none. False when there are no such layers, or it does not fit them.");
}

void bind_runs(Class& c) {
    c.def(
         "execute_async_v3",
         [](Context& self, uintptr_t stream) {
             return unlocked([&] { return self.enqueueV3(stream_of(stream)); });
         },
         "stream_handle"_a,
         "Queues a run on a CUDA stream. On the CPU backend the stream is ignored and the run is "
         "complete when the call returns. False when it could not be queued.")
        .def(
            "execute_v2",
            [](Context& self, const std::vector<uintptr_t>& bindings) {
                std::vector<void*> addresses;
                for (const uintptr_t binding : bindings) {
                    addresses.push_back(address_of(binding));
                }
                const auto needed = static_cast<size_t>(self.getEngine().getNbIOTensors());
                if (addresses.size() != needed) {
                    const std::string text = "execute_v2: got " + std::to_string(addresses.size()) +
                                             " addresses, expected " + std::to_string(needed) +
                                             ": one for each input and output";
                    throw nb::value_error(text.c_str());
                }
                return unlocked([&] { return self.executeV2(addresses.data()); });
            },
            "bindings"_a, "Runs and waits. An address for each input and output, in their order.")
        .def("report_to_profiler", slow<&Context::reportToProfiler>(),
             "Tells the profiler of the last run, when enqueue_emits_profile is False. Waits for "
             "that run. False when there is nothing to tell.")
        .def(
            "is_stream_capturable",
            [](const Context& self, uintptr_t stream) {
                return self.isStreamCapturable(stream_of(stream));
            },
            "stream"_a,
            "Whether execute_async_v3() can be called while the stream is being captured.")
        .def("set_debug_listener", &Context::setDebugListener, "listener"_a.none(),
             nb::keep_alive<1, 2>(), "Who is shown debug tensors; None: nobody.")
        .def("get_debug_listener", &Context::getDebugListener, nb::rv_policy::reference,
             "What set_debug_listener() set, or None.")
        .def("set_tensor_debug_state", method<&Context::setTensorDebugState>(), "name"_a, "flag"_a,
             "Switches a tensor of mark_debug() on or off. False for an unknown name.")
        .def("get_debug_state", method<&Context::getDebugState>(), "name"_a,
             "Whether a tensor is switched on.")
        .def("set_all_tensors_debug_state", method<&Context::setAllTensorsDebugState>(), "flag"_a,
             "Switches all tensors of mark_debug() on or off.");
}

} // namespace

void bind_context(nb::module_& m) {
    Class c(m, "IExecutionContext",
            "State of running an engine. One thread at a time; contexts of one engine run at the "
            "same time. Order of a run: profile, input shapes, addresses, execute_async_v3().");
    bind_props(c);
    bind_shapes(c);
    bind_addresses(c);
    bind_runs(c);
}

} // namespace ingot::python
