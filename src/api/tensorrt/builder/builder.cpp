// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/builder.h"

#include "api/tensorrt/globals.h"
#include "api/tensorrt/host_memory.h"
#include "api/tensorrt/runtime/engine.h"
#include "api/tensorrt/runtime/place.h"
#include "api/tensorrt/runtime/read_engine.h"
#include "api/tensorrt/unused.h"
#include "backends/backends.h"

#include <thread>

namespace ingot::api {

int32_t Builder::default_threads() {
    return std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
}

nv::IBuilderConfig* Builder::createBuilderConfig() noexcept {
    return report_.guard("IBuilder::createBuilderConfig", static_cast<nv::IBuilderConfig*>(nullptr),
                         [&]() -> nv::IBuilderConfig* {
                             return std::make_unique<BuilderConfig>(report_, profiles_).release();
                         });
}

nv::INetworkDefinition*
Builder::createNetworkV2(nv::NetworkDefinitionCreationFlags flags) noexcept {
    return report_.guard(
        "IBuilder::createNetworkV2", static_cast<nv::INetworkDefinition*>(nullptr),
        [&]() -> nv::INetworkDefinition* {
            constexpr uint32_t current =
                (1U << nv::EnumMax<nv::NetworkDefinitionCreationFlag>()) - 1;
            constexpr auto explicit_batch =
                1U << static_cast<uint32_t>(nv::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
            require((flags & ~(current | explicit_batch)) == 0, ErrorCode::InvalidArgument,
                    "the flags ", flags, " have bits that are no NetworkDefinitionCreationFlag");
            constexpr auto python = nv::NetworkDefinitionCreationFlag::kPREFER_JIT_PYTHON_PLUGINS;
            constexpr auto ahead = nv::NetworkDefinitionCreationFlag::kPREFER_AOT_PYTHON_PLUGINS;
            for (const auto& [flag, name] : {std::pair(python, "kPREFER_JIT_PYTHON_PLUGINS"),
                                             std::pair(ahead, "kPREFER_AOT_PYTHON_PLUGINS")}) {
                if ((flags >> static_cast<uint32_t>(flag) & 1U) != 0) {
                    log_unused(report_, name, false,
                               "a plugin has one way to run, which its creator decides");
                }
            }
            return std::make_unique<Network>(*this, flags, report_).release();
        });
}

nv::IOptimizationProfile* Builder::createOptimizationProfile() noexcept {
    return report_.guard("IBuilder::createOptimizationProfile",
                         static_cast<nv::IOptimizationProfile*>(nullptr),
                         [&]() -> nv::IOptimizationProfile* { return profiles_->add(report_); });
}

void Builder::setErrorRecorder(nv::IErrorRecorder* recorder) noexcept {
    report_.set_recorder(recorder);
}

void Builder::reset() noexcept {
    report_.set_recorder(nullptr);
    allocator_ = nullptr;
    max_threads_ = default_threads();
}

nv::IHostMemory* Builder::buildSerializedNetwork(nv::INetworkDefinition& network,
                                                 nv::IBuilderConfig& config) noexcept {
    return report_.guard(
        "IBuilder::buildSerializedNetwork", static_cast<nv::IHostMemory*>(nullptr),
        [&]() -> nv::IHostMemory* {
            auto engine =
                build_network(static_cast<Network&>(network), static_cast<BuilderConfig&>(config));
            return std::make_unique<HostMemory>(engine_bytes(*engine, as_built(*engine))).release();
        });
}

bool Builder::buildSerializedNetworkToStream(nv::INetworkDefinition& network,
                                             nv::IBuilderConfig& config,
                                             nv::IStreamWriter& writer) noexcept {
    return report_.guard("IBuilder::buildSerializedNetworkToStream", false, [&] {
        auto engine =
            build_network(static_cast<Network&>(network), static_cast<BuilderConfig&>(config));
        AlignedBytes bytes = engine_bytes(*engine, as_built(*engine));
        constexpr size_t part = 64ULL << 20;
        for (size_t at = 0; at < bytes.size(); at += part) {
            auto n = static_cast<int64_t>(std::min(part, bytes.size() - at));
            int64_t written = writer.write(bytes.data() + at, n);
            require(written == n, ErrorCode::Io, "the writer took ", written, " of ", n,
                    " bytes at ", at, " of ", bytes.size());
        }
        return true;
    });
}

bool Builder::build_to_file(const nv::INetworkDefinition& network, const nv::IBuilderConfig& config,
                            const char* path) noexcept {
    return report_.guard("ingot::buildToFile", false, [&] {
        require(path != nullptr && *path != '\0', ErrorCode::InvalidArgument, "the path is empty");
        auto engine = build_network(static_cast<const Network&>(network),
                                    static_cast<const BuilderConfig&>(config));
        write_engine(path, *engine, as_built(*engine));
        return true;
    });
}

nv::ICudaEngine* Builder::buildEngineWithConfig(nv::INetworkDefinition& network,
                                                nv::IBuilderConfig& config) noexcept {
    return report_.guard(
        "IBuilder::buildEngineWithConfig", static_cast<nv::ICudaEngine*>(nullptr),
        [&]() -> nv::ICudaEngine* {
            auto& ours = static_cast<BuilderConfig&>(config);
            auto engine = build_network(static_cast<Network&>(network), ours);
            Place place = find_place(ours.device, ours.ordinal);
            // The caller's weights need not outlive the network.
            engine = built_engine(*engine, place.is_gpu ? nullptr : memory_source(allocator_));
            auto made = make_engine(std::move(engine), place, allocator_, report_, true, &plugins_);
            made->state()->upload_weights();
            return made.release();
        });
}

bool Builder::isNetworkSupported(const nv::INetworkDefinition& network,
                                 const nv::IBuilderConfig& config) const noexcept {
    return report_.guard("IBuilder::isNetworkSupported", false, [&] {
        check_network(static_cast<const Network&>(network),
                      static_cast<const BuilderConfig&>(config));
        return true;
    });
}

bool Builder::setMaxThreads(int32_t max_threads) noexcept {
    return report_.guard("IBuilder::setMaxThreads", false, [&] {
        require(max_threads >= 1, ErrorCode::InvalidArgument, "maxThreads is ", max_threads,
                ", expected 1 or more");
        max_threads_ = max_threads;
        if (max_threads != default_threads()) {
            log_unused(report_, "IBuilder::setMaxThreads", false,
                       "a build works in the calling thread, apart from kernels that are compiled "
                       "ahead of time, by as many threads as there are cores, and 8 at most");
        }
        return true;
    });
}

bool Builder::platformHasFastFp16() const noexcept {
    return report_.guard("IBuilder::platformHasFastFp16", false,
                         [] { return is_fast(*find_place(Device::kAUTO, 0).backend, DType::F16); });
}

bool Builder::platformHasFastInt8() const noexcept {
    return report_.guard("IBuilder::platformHasFastInt8", false,
                         [] { return is_fast(*find_place(Device::kAUTO, 0).backend, DType::I8); });
}

bool Builder::platformHasTf32() const noexcept {
    constexpr int ampere = 80; // the first with sparse units
    return report_.guard("IBuilder::platformHasTf32", false, [] {
        return find_place(Device::kAUTO, 0).backend->compute_capability() >= ampere;
    });
}

nv::IPluginRegistry& Builder::getPluginRegistry() noexcept {
    return plugins_;
}

} // namespace ingot::api

extern "C" void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept {
    auto* ours = static_cast<nvinfer1::ILogger*>(logger);
    if (!ingot::api::check_version(version, ours, "createInferBuilder")) {
        return nullptr;
    }
    ingot::api::remember_logger(ours);
    return ingot::api::Report(ours).guard(
        "createInferBuilder", static_cast<void*>(nullptr), [&]() -> void* {
            // Converted to the interface, whose address the caller expects.
            nvinfer1::IBuilder* builder = std::make_unique<ingot::api::Builder>(ours).release();
            return builder;
        });
}

extern "C" bool ingotBuildToFile(nvinfer1::IBuilder* builder, nvinfer1::INetworkDefinition* network,
                                 nvinfer1::IBuilderConfig* config, const char* path) noexcept {
    return builder != nullptr && network != nullptr && config != nullptr &&
           static_cast<ingot::api::Builder*>(builder)->build_to_file(*network, *config, path);
}

extern "C" nvinfer1::IPluginRegistry*
getBuilderPluginRegistry(nvinfer1::EngineCapability capability) noexcept {
    return capability == nvinfer1::EngineCapability::kSTANDARD ? getPluginRegistry() : nullptr;
}
