// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/library.h"

#include "api/tensorrt/report.h"
#include "base/shared_library.h"
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

const char* ingotVersion() noexcept {
    return INGOT_TEXT(INGOT_VERSION_MAJOR) "." INGOT_TEXT(INGOT_VERSION_MINOR) "." INGOT_TEXT(
        INGOT_VERSION_PATCH);
}

} // extern "C"
