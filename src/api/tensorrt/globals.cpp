// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/globals.h"

#include "NvInferPlugin.h"
#include "api/tensorrt/report.h"
#include "backends/backends.h"
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
};

/// Keeps texts that functions return.
const char* kept(std::string text) {
    static std::mutex mutex;
    static std::set<std::string> texts;
    std::scoped_lock lock(mutex);
    return texts.insert(std::move(text)).first->c_str();
}

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
        return ingot::api::kept(c.chosen ? *c.chosen : ingot::plan::RuntimeCache::default_folder());
    });
}

const char* ingotGetCompilerProblem(int32_t capability) noexcept {
    return ingot::api::Report().guard(
        "ingot::getCompilerProblem", "ingot::getCompilerProblem: out of memory",
        [&]() -> const char* {
            std::string problem;
            try {
                problem = ingot::kernel_compiler_problem(capability);
            } catch (const ingot::Error& e) { // of a capability that no GPU here has
                problem = e.what();
            }
            return problem.empty() ? nullptr : ingot::api::kept(std::move(problem));
        });
}

} // extern "C"
