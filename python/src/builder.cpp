// SPDX-License-Identifier: Apache-2.0
// Builder, whose builds Ctrl-C stops.
#include "bind.h"

namespace ingot::python {

namespace {

using trt::IBuilder;
using Self = nb::pointer_and_handle<IBuilder>;

/// Stands before the application's monitor during a build: an exception in a callback, or one that
/// a handler of signals raises, such as KeyboardInterrupt, stops the build.
class BuildWatch : public trt::IProgressMonitor {
public:
    explicit BuildWatch(trt::IBuilderConfig& config)
        : config_(config), inner_(config.getProgressMonitor()) {
        config.setProgressMonitor(this);
    }
    ~BuildWatch() override { config_.setProgressMonitor(inner_); }
    BuildWatch(const BuildWatch&) = delete;
    BuildWatch& operator=(const BuildWatch&) = delete;

    void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override {
        if (inner_ != nullptr) {
            inner_->phaseStart(phase, parent, steps);
        }
    }
    bool stepComplete(const char* phase, int32_t step) noexcept override {
        const bool go_on = callback("a build", false, [] {
            return CallScope::check_signals() && !CallScope::has_pending();
        });
        return go_on && (inner_ == nullptr || inner_->stepComplete(phase, step));
    }
    void phaseFinish(const char* phase) noexcept override {
        if (inner_ != nullptr) {
            inner_->phaseFinish(phase);
        }
    }

private:
    trt::IBuilderConfig& config_;
    trt::IProgressMonitor* inner_;
};

/// A build under a watch; what Ctrl-C interrupts is raised even when the build came to its end.
template <class F>
auto build(trt::IBuilderConfig& config, const F& f) {
    return unlocked([&] {
        const BuildWatch watch(config);
        auto result = f();
        callback("a build", false, [] { return CallScope::check_signals(); });
        return result;
    });
}

Owned<IBuilder> create_builder(trt::ILogger& logger, nb::handle keep) {
    return made("Builder", trt::createInferBuilder(logger), keep);
}

void bind_builds(nb::class_<IBuilder>& c) {
    c.def(
         "build_serialized_network",
         [](const Self& self, trt::INetworkDefinition& network, trt::IBuilderConfig& config) {
             auto memory = build(config, [&] {
                 return std::unique_ptr<trt::IHostMemory>(
                     self.p->buildSerializedNetwork(network, config));
             });
             return Owned<trt::IHostMemory>{std::move(memory), nb::borrow(self.h), {}};
         },
         "network"_a, "config"_a,
         "The engine as bytes, or None when it cannot be built. Without the GIL; Ctrl-C stops it.")
        .def(
            "build_serialized_network",
            [](nb::handle self, nb::handle network, nb::handle config, nb::handle) {
                return nb::object(self.attr("build_serialized_network")(network, config));
            },
            "network"_a, "config"_a, "kernel_text"_a.none(),
            nb::sig("def build_serialized_network(self, network: INetworkDefinition, config: "
                    "IBuilderConfig, kernel_text: object) -> IHostMemory | None"),
            "The same. There is no kernel text: kernel_text stays as it is.")
        .def(
            "build_engine_with_config",
            [](const Self& self, trt::INetworkDefinition& network, trt::IBuilderConfig& config) {
                auto engine = build(config, [&] {
                    return std::unique_ptr<trt::ICudaEngine>(
                        self.p->buildEngineWithConfig(network, config));
                });
                return Owned<trt::ICudaEngine>{std::move(engine), nb::borrow(self.h), {}};
            },
            "network"_a, "config"_a, "The engine ready to run, or None.")
        .def(
            "build_serialized_network_to_stream",
            [](const Self& self, trt::INetworkDefinition& network, trt::IBuilderConfig& config,
               trt::IStreamWriter& writer) {
                return build(config, [&] {
                    return self.p->buildSerializedNetworkToStream(network, config, writer);
                });
            },
            "network"_a, "config"_a, "writer"_a, "Whether the engine was written.")
        .def(
            "is_network_supported",
            [](const Self& self, trt::INetworkDefinition& network, trt::IBuilderConfig& config) {
                return unlocked([&] { return self.p->isNetworkSupported(network, config); });
            },
            "network"_a, "config"_a,
            "Whether a build would begin: nothing in the network contradicts the configuration.");
}

void bind_frame(nb::class_<IBuilder>& c) {
    common(c);
    c.def(nb::new_([](nb::pointer_and_handle<trt::ILogger> logger) {
              return create_builder(*logger.p, logger.h);
          }),
          "logger"_a)
        .def("create_network", method<&IBuilder::createNetworkV2>(), "flags"_a = 0,
             "An empty network. Flags: 1 << int(NetworkDefinitionCreationFlag.X). None for bits "
             "that are no flag.")
        .def("create_builder_config", method<&IBuilder::createBuilderConfig>(),
             "Settings for a build, all at their defaults.")
        .def("create_optimization_profile", &IBuilder::createOptimizationProfile,
             nb::rv_policy::reference_internal,
             "A range of shapes of inputs, for IBuilderConfig.add_optimization_profile().")
        .def("reset", method<&IBuilder::reset>(), "Puts settings of the builder to their defaults.")
        .def("get_plugin_registry", &IBuilder::getPluginRegistry, nb::rv_policy::reference_internal,
             "The registry of creators of plugins.")
        .def_prop_ro("logger", &IBuilder::getLogger, nb::rv_policy::reference, "Who gets messages.")
        .def_prop_rw(
            "gpu_allocator", [](const IBuilder&) { return nb::none(); },
            [](IBuilder& self, trt::IGpuAllocator* allocator) { self.setGpuAllocator(allocator); },
            nb::for_setter(nb::keep_alive<1, 2>()), nb::for_setter(nb::arg("value").none()),
            "Who gives device memory during builds. Write-only.");
    prop<&IBuilder::getMaxThreads, &IBuilder::setMaxThreads>(c, "max_threads", "At least 1.");
    prop_held<&IBuilder::getErrorRecorder, &IBuilder::setErrorRecorder>(
        c, "error_recorder", "Who gets errors; None: the logger.");
    prop_ro<&IBuilder::getNbDLACores>(c, "num_DLA_cores", "Always 0.");
    prop_ro<&IBuilder::getMaxDLABatchSize>(c, "max_DLA_batch_size", "Always 0.");
    prop_ro<&IBuilder::platformHasFastFp16>(
        c, "platform_has_fast_fp16",
        "Whether the GPU at hand has units for FP16; False without one.");
    prop_ro<&IBuilder::platformHasFastInt8>(
        c, "platform_has_fast_int8",
        "Whether the GPU at hand has units for INT8; False without one.");
    prop_ro<&IBuilder::platformHasTf32>(
        c, "platform_has_tf32", "Whether the GPU at hand has units for TF32; False without one.");
}

} // namespace

void bind_builder(nb::module_& m) {
    nb::class_<IBuilder> c(m, "Builder",
                           "Makes engines of networks. Networks, configurations and engines keep "
                           "what they need of it alive.");
    bind_frame(c);
    bind_builds(c);
}

} // namespace ingot::python
