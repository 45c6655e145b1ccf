// SPDX-License-Identifier: Apache-2.0
// The functions that libingot_dispatch.so shows. What needs a runtime asks the lean libraries.
#include "api/dispatch/dispatch_runtime.h"
#include "ingot.h"

#include <atomic>

#define INGOT_TEXT_OF(x) #x
#define INGOT_TEXT(x) INGOT_TEXT_OF(x)

namespace ingot::api {

namespace {

std::atomic<nvinfer1::ILogger*>& first_logger() {
    static std::atomic<nvinfer1::ILogger*> logger{nullptr};
    return logger;
}

} // namespace

} // namespace ingot::api

using ingot::api::LeanLibraries;
using ingot::api::Report;

extern "C" {

void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    nvinfer1::ILogger* none = nullptr;
    ingot::api::first_logger().compare_exchange_strong(none, log);
    return Report(log).guard("createInferRuntime", static_cast<void*>(nullptr), [&]() -> void* {
        constexpr int32_t rtx = NV_TENSORRT_VERSION_INT(1, 6, 0);
        constexpr int32_t enterprise = NV_TENSORRT_VERSION_INT(11, 1, 0);
        ingot::require(version == rtx || version == enterprise, ingot::ErrorCode::Unsupported,
                       "the program was compiled with headers of version ", version,
                       ", this library serves ", rtx, " and ", enterprise,
                       "; compile it with the headers of this Ingot");
        nvinfer1::IRuntime* runtime = std::make_unique<ingot::api::DispatchRuntime>(log).release();
        return runtime;
    });
}

nvinfer1::IPluginRegistry* getPluginRegistry() noexcept {
    return Report(ingot::api::first_logger().load())
        .guard("getPluginRegistry", static_cast<nvinfer1::IPluginRegistry*>(nullptr),
               [] { return LeanLibraries::shared().current().plugin_registry(); });
}

nvinfer1::ILogger* getLogger() noexcept {
    return ingot::api::first_logger().load();
}

int32_t getInferLibVersion() noexcept {
    return NV_TENSORRT_VERSION;
}
int32_t getInferLibMajorVersion() noexcept {
    return NV_TENSORRT_MAJOR;
}
int32_t getInferLibMinorVersion() noexcept {
    return NV_TENSORRT_MINOR;
}
int32_t getInferLibPatchVersion() noexcept {
    return NV_TENSORRT_PATCH;
}
int32_t getInferLibBuildVersion() noexcept {
    return NV_TENSORRT_BUILD;
}

void setInternalLibraryPath(const char* path) noexcept {
    Report().guard("setInternalLibraryPath",
                   [&] { ingot::set_own_folder(path == nullptr ? "" : path); });
}

const char* ingotVersion() noexcept {
    return INGOT_TEXT(INGOT_VERSION_MAJOR) "." INGOT_TEXT(INGOT_VERSION_MINOR) "." INGOT_TEXT(
        INGOT_VERSION_PATCH);
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

int32_t ingotGetDevice(const nvinfer1::ICudaEngine* engine) noexcept {
    return Report().guard("ingot::getDevice", 0, [&] {
        const ingot::api::LeanLibrary* library =
            engine == nullptr ? nullptr : LeanLibraries::shared().of_engine(*engine);
        return library == nullptr ? 0 : library->device_of(*engine);
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
