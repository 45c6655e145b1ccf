// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/globals.h"

#include "NvInferPlugin.h"
#include "api/tensorrt/report.h"
#include "base/error.h"
#include "base/file.h"
#include "base/private_files.h"
#include "cache/runtime_cache.h"
#include "ingot.h"

#include <mutex>
#include <optional>
#include <set>

namespace ingot::api {

namespace {

struct CacheFolder {
    std::mutex mutex;
    std::optional<std::string> chosen;
    // returned by ingotGetCacheFolder(): other threads may still read them
    std::set<std::string> shown;
};

CacheFolder& cache() {
    static CacheFolder folder;
    return folder;
}

/// Checks that the folder can be made and written. Errors: Io.
void check_writable(const std::string& folder) {
    try {
        make_private_folder(folder);
        AtomicFile probe(folder + "/.ingot-write-check"); // follows no link that others planted
        probe.write("x");                                 // and goes without a commit
    } catch (const Error&) {
        fail(ErrorCode::Io, "folder '", folder, "' cannot be made or written");
    }
}

} // namespace

std::string cache_folder_option() {
    std::scoped_lock lock(cache().mutex);
    return cache().chosen.value_or("default");
}

} // namespace ingot::api

extern "C" {

bool initLibNvInferPlugins(void* logger, const char*) {
    ingot::api::remember_logger(static_cast<nvinfer1::ILogger*>(logger));
    return true;
}

// Functions without an object report to standard error: the first logger may already be destroyed.

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
        auto now = c.chosen ? *c.chosen : ingot::plan::RuntimeCache::default_folder();
        return c.shown.insert(std::move(now)).first->c_str();
    });
}

} // extern "C"
