// SPDX-License-Identifier: Apache-2.0
// The exported functions of libingot_dispatch.so. Functions that need a runtime ask the lean
// libraries.
#include "api/dispatch/dispatch_runtime.h"
#include "api/tensorrt/library.h"
#include "ingot.h"

using ingot::api::LeanLibraries;
using ingot::api::Report;

extern "C" {

void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    ingot::api::remember_logger(log);
    if (!ingot::api::check_version(version, log, "createInferRuntime")) {
        return nullptr;
    }
    return Report(log).guard("createInferRuntime", static_cast<void*>(nullptr), [&]() -> void* {
        nvinfer1::IRuntime* runtime = std::make_unique<ingot::api::DispatchRuntime>(log).release();
        return runtime;
    });
}

void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!ingot::api::check_version(version, log, "createInferRefitter")) {
        return nullptr;
    }
    return Report(log).guard("createInferRefitter", static_cast<void*>(nullptr), [&]() -> void* {
        using ingot::ErrorCode;
        ingot::require(engine != nullptr, ErrorCode::InvalidArgument, "the engine is null");
        auto& e = *static_cast<nvinfer1::ICudaEngine*>(engine);
        const ingot::api::LeanLibrary* library = LeanLibraries::shared().of_engine(e);
        ingot::require(library != nullptr, ErrorCode::InvalidArgument,
                       "the engine was made by no lean library that this one has opened: use "
                       "createInferRefitter() of the library that made it");
        return library->create_refitter(e, log);
    });
}

nvinfer1::IPluginRegistry* getPluginRegistry() noexcept {
    return Report(getLogger())
        .guard("getPluginRegistry", static_cast<nvinfer1::IPluginRegistry*>(nullptr),
               [] { return LeanLibraries::shared().current().plugin_registry(); });
}

bool ingotSetRuntimeDevice(nvinfer1::IRuntime* runtime, int32_t device, int32_t ordinal) noexcept {
    auto* ours = dynamic_cast<ingot::api::DispatchRuntime*>(runtime);
    if (ours != nullptr || runtime == nullptr) {
        return ours != nullptr && ours->set_device(device, ordinal);
    }
    return Report().guard("ingot::setDevice", false, [&] { // made by loadRuntime()
        return LeanLibraries::shared().current().set_device(*runtime, device, ordinal);
    });
}

bool ingotSetVerifyWeights(nvinfer1::IRuntime* runtime, bool verify) noexcept {
    auto* ours = dynamic_cast<ingot::api::DispatchRuntime*>(runtime);
    if (ours != nullptr || runtime == nullptr) {
        return ours != nullptr && ours->set_verify_weights(verify);
    }
    return Report().guard("ingot::setVerifyWeights", false, [&] { // made by loadRuntime()
        return LeanLibraries::shared().current().set_verify_weights(*runtime, verify);
    });
}

bool ingotSetTrustedKeys(nvinfer1::IRuntime* runtime, const char* public_keys) noexcept {
    auto* ours = dynamic_cast<ingot::api::DispatchRuntime*>(runtime);
    if (ours != nullptr || runtime == nullptr) {
        return ours != nullptr && ours->set_trusted_keys(public_keys);
    }
    return Report().guard("ingot::setTrustedKeys", false, [&] { // made by loadRuntime()
        return LeanLibraries::shared().current().set_trusted_keys(*runtime, public_keys);
    });
}

bool ingotSetTrustedOnly(nvinfer1::IRuntime* runtime, bool only) noexcept {
    auto* ours = dynamic_cast<ingot::api::DispatchRuntime*>(runtime);
    if (ours != nullptr || runtime == nullptr) {
        return ours != nullptr && ours->set_trusted_only(only);
    }
    return Report().guard("ingot::setTrustedOnly", false, [&] { // made by loadRuntime()
        return LeanLibraries::shared().current().set_trusted_only(*runtime, only);
    });
}

int32_t ingotGetDevice(const nvinfer1::ICudaEngine* engine) noexcept {
    return Report().guard("ingot::getDevice", 0, [&] {
        const ingot::api::LeanLibrary* library =
            engine == nullptr ? nullptr : LeanLibraries::shared().of_engine(*engine);
        return library == nullptr ? 0 : library->device_of(*engine);
    });
}

const char* ingotGetDeviceError(const nvinfer1::ICudaEngine* engine) noexcept {
    return Report().guard("ingot::getDeviceError", static_cast<const char*>(nullptr), [&] {
        const ingot::api::LeanLibrary* library =
            engine == nullptr ? nullptr : LeanLibraries::shared().of_engine(*engine);
        return library == nullptr ? nullptr : library->device_error(*engine);
    });
}

bool ingotSetPriority(nvinfer1::IRuntimeConfig* config, int32_t priority) noexcept {
    return Report().guard("ingot::setPriority", false, [&] {
        const ingot::api::LeanLibrary* library =
            config == nullptr ? nullptr : LeanLibraries::shared().of_config(*config);
        return library != nullptr && library->set_priority(*config, priority);
    });
}

int32_t ingotGetPriority(const nvinfer1::IRuntimeConfig* config) noexcept {
    const auto normal = static_cast<int32_t>(ingot::Priority::kNORMAL);
    return Report().guard("ingot::getPriority", normal, [&] {
        const ingot::api::LeanLibrary* library =
            config == nullptr ? nullptr : LeanLibraries::shared().of_config(*config);
        return library == nullptr ? normal : library->priority_of(*config);
    });
}

bool ingotSetCacheFolder(const char* path) noexcept {
    return Report().guard("ingot::setCacheFolder", false,
                          [&] { return LeanLibraries::shared().set_cache_folder(path); });
}

const char* ingotGetCacheFolder() noexcept {
    return Report().guard("ingot::getCacheFolder", "",
                          [] { return LeanLibraries::shared().current().cache_folder(); });
}

} // extern "C"
