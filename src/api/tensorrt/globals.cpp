// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/globals.h"

#include "NvInferPlugin.h"
#include "api/tensorrt/report.h"
#include "base/shared_library.h"
#include "ingot.h"
#include "plan/runtime_cache.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#define INGOT_TEXT_OF(x) #x
#define INGOT_TEXT(x) INGOT_TEXT_OF(x)

namespace ingot::api {

namespace {

std::atomic<nvinfer1::ILogger*>& first_logger() {
    static std::atomic<nvinfer1::ILogger*> logger{nullptr};
    return logger;
}

struct CacheFolder {
    std::mutex mutex;
    std::optional<std::string> chosen;
    std::string shown; // what ingotGetCacheFolder() gave
};

CacheFolder& cache() {
    static CacheFolder folder;
    return folder;
}

/// Makes the folder and a file in it. Errors: Io.
void check_writable(const std::string& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    std::filesystem::path probe = std::filesystem::path(folder) / ".ingot-write-check";
    bool written = !problem && std::ofstream(probe).put('x').good();
    std::filesystem::remove(probe, problem);
    require(written, ErrorCode::Io, "folder '", folder, "' cannot be made or written");
}

} // namespace

void remember_logger(nvinfer1::ILogger* logger) noexcept {
    nvinfer1::ILogger* none = nullptr;
    first_logger().compare_exchange_strong(none, logger);
}

bool check_version(int32_t version, nvinfer1::ILogger* logger, const char* method) noexcept {
    // One library serves the headers of both product lines.
    constexpr int32_t rtx = NV_TENSORRT_VERSION_INT(1, 6, 0);
    constexpr int32_t enterprise = NV_TENSORRT_VERSION_INT(11, 1, 0);
    Report report(logger);
    return report.guard(method, false, [&] {
        require(version == rtx || version == enterprise, ErrorCode::Unsupported,
                "the program was compiled with headers of version ", version,
                ", this library serves ", rtx, " and ", enterprise,
                "; compile it with the headers of this Ingot");
        return true;
    });
}

std::string cache_folder_option() {
    std::scoped_lock lock(cache().mutex);
    return cache().chosen.value_or("default");
}

} // namespace ingot::api

extern "C" {

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
    ingot::api::Report().guard("setInternalLibraryPath",
                               [&] { ingot::set_own_folder(path == nullptr ? "" : path); });
}

bool initLibNvInferPlugins(void* logger, const char*) {
    ingot::api::remember_logger(static_cast<nvinfer1::ILogger*>(logger));
    return true;
}

// Functions without an object report to standard error: the first logger may be gone.

const char* ingotVersion() noexcept {
    return INGOT_TEXT(INGOT_VERSION_MAJOR) "." INGOT_TEXT(INGOT_VERSION_MINOR) "." INGOT_TEXT(
        INGOT_VERSION_PATCH);
}

bool ingotSetCacheFolder(const char* path) noexcept {
    return ingot::api::Report().guard("ingot::setCacheFolder", false, [&] {
        if (path != nullptr && *path != 0) {
            ingot::api::check_writable(path);
        }
        std::scoped_lock lock(ingot::api::cache().mutex);
        ingot::api::cache().chosen =
            path == nullptr ? std::nullopt : std::optional<std::string>(path);
        return true;
    });
}

const char* ingotGetCacheFolder() noexcept {
    return ingot::api::Report().guard("ingot::getCacheFolder", "", [&] {
        ingot::api::CacheFolder& c = ingot::api::cache();
        std::scoped_lock lock(c.mutex);
        c.shown = c.chosen ? *c.chosen : ingot::plan::RuntimeCache::default_folder();
        return c.shown.c_str();
    });
}

} // extern "C"
