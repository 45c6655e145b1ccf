// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/lean_library.h"

#include "base/error.h"
#include "ingot.h"

#include <cstring>
#include <vector>

namespace ingot::api {

namespace {

constexpr const char* create_name = "createInferRuntime_INTERNAL";

} // namespace

LeanLibrary LeanLibrary::open(const std::string& path) {
    std::string problem;
    SharedLibrary library = SharedLibrary::open(path, problem);
    require(static_cast<bool>(library), ErrorCode::Io, "a runtime cannot be loaded: ", problem,
            "; give the path of a libingot_lean.so");
    LeanLibrary lean(library, path);
    auto interface = lean.function<int32_t (*)()>("ingotRuntimeInterface");
    require(interface != nullptr && library.symbol(create_name) != nullptr, ErrorCode::Unsupported,
            "'", path, "' has no runtime of Ingot; give the path of a libingot_lean.so");
    require(interface() == runtime_interface, ErrorCode::Unsupported, "'", path, "' is of Ingot ",
            lean.version(), ", whose runtime has interface ", interface(), ", this one has ",
            runtime_interface,
            "; use libingot_dispatch.so of that release, or build the engine anew");
    return lean;
}

LeanLibrary LeanLibrary::find(uint32_t major, bool is_readable) {
    constexpr const char* plain = "libingot_lean.so";
    std::string folder = own_folder();
    std::string tried;
    std::vector<std::string> names = {str(plain, '.', major)};
    if (is_readable) {
        names.emplace_back(plain);
    }
    for (const std::string& name : names) {
        for (const std::string& path : {str(folder, '/', name), name}) {
            std::string problem;
            if (SharedLibrary::open(path, problem)) {
                return open(path);
            }
            tried += str(tried.empty() ? "" : ", ", path);
        }
    }
    fail(ErrorCode::Io, "there is no lean runtime for engines of Ingot ", major,
         ": none of these can be loaded: ", tried, "; put libingot_lean.so of Ingot ", major,
         " beside libingot_dispatch.so as libingot_lean.so.", major,
         ", or give its path to IRuntime::loadRuntime(), or build the engine anew");
}

std::unique_ptr<nvinfer1::IRuntime> LeanLibrary::load_runtime(const char* path,
                                                              const Report& report) {
    require(path != nullptr, ErrorCode::InvalidArgument, "the path is null");
    std::unique_ptr<nvinfer1::IRuntime> r = open(path).create_runtime(report.logger());
    require(r != nullptr, ErrorCode::Unsupported, "'", path, "' made no runtime");
    r->setErrorRecorder(report.recorder());
    return r;
}

/// Its own number: the interface is checked by then.
int32_t LeanLibrary::interface_version() const {
    auto version = function<int32_t (*)()>("getInferLibVersion");
    return version == nullptr ? NV_TENSORRT_VERSION : version();
}

std::unique_ptr<nvinfer1::IRuntime> LeanLibrary::create_runtime(nvinfer1::ILogger* logger) const {
    auto create = function<void* (*)(void*, int32_t)>(create_name);
    return std::unique_ptr<nvinfer1::IRuntime>(
        static_cast<nvinfer1::IRuntime*>(create(logger, interface_version())));
}

void* LeanLibrary::create_refitter(nvinfer1::ICudaEngine& engine, nvinfer1::ILogger* logger) const {
    auto create = function<void* (*)(void*, void*, int32_t)>("createInferRefitter_INTERNAL");
    require(create != nullptr, ErrorCode::Unsupported, "'", path_, "' is of Ingot ", version(),
            ", whose lean library has no refitter: refit the engine with its libingot.so");
    return create(&engine, logger, interface_version());
}

nvinfer1::IPluginRegistry* LeanLibrary::plugin_registry() const {
    auto f = function<nvinfer1::IPluginRegistry* (*)()>("getPluginRegistry");
    return f == nullptr ? nullptr : f();
}

bool LeanLibrary::set_device(nvinfer1::IRuntime& runtime, int32_t device, int32_t ordinal) const {
    auto f = function<bool (*)(nvinfer1::IRuntime*, int32_t, int32_t)>("ingotSetRuntimeDevice");
    return f != nullptr && f(&runtime, device, ordinal);
}

bool LeanLibrary::set_verify_weights(nvinfer1::IRuntime& runtime, bool verify) const {
    auto f = function<bool (*)(nvinfer1::IRuntime*, bool)>("ingotSetVerifyWeights");
    return f != nullptr && f(&runtime, verify);
}

bool LeanLibrary::set_trusted_keys(nvinfer1::IRuntime& runtime, const char* public_keys) const {
    auto f = function<bool (*)(nvinfer1::IRuntime*, const char*)>("ingotSetTrustedKeys");
    return f != nullptr && f(&runtime, public_keys);
}

bool LeanLibrary::set_trusted_only(nvinfer1::IRuntime& runtime, bool only) const {
    auto f = function<bool (*)(nvinfer1::IRuntime*, bool)>("ingotSetTrustedOnly");
    return f != nullptr && f(&runtime, only);
}

int32_t LeanLibrary::device_of(const nvinfer1::ICudaEngine& engine) const {
    auto f = function<int32_t (*)(const nvinfer1::ICudaEngine*)>("ingotGetDevice");
    return f == nullptr ? 0 : f(&engine);
}

const char* LeanLibrary::device_error(const nvinfer1::ICudaEngine& engine) const {
    auto f = function<const char* (*)(const nvinfer1::ICudaEngine*)>("ingotGetDeviceError");
    return f == nullptr ? nullptr : f(&engine);
}

bool LeanLibrary::set_priority(nvinfer1::IRuntimeConfig& config, int32_t priority) const {
    auto f = function<bool (*)(nvinfer1::IRuntimeConfig*, int32_t)>("ingotSetPriority");
    require(f != nullptr, ErrorCode::Unsupported, "'", path_, "' is of Ingot ", version(),
            ", which knows no priorities: run on a stream of the priority that is wanted");
    return f(&config, priority);
}

int32_t LeanLibrary::priority_of(const nvinfer1::IRuntimeConfig& config) const {
    auto f = function<int32_t (*)(const nvinfer1::IRuntimeConfig*)>("ingotGetPriority");
    constexpr int32_t normal = 1;
    return f == nullptr ? normal : f(&config);
}

bool LeanLibrary::set_cache_folder(const char* path) const {
    auto f = function<bool (*)(const char*)>("ingotSetCacheFolder");
    return f != nullptr && f(path);
}

const char* LeanLibrary::cache_folder() const {
    auto f = function<const char* (*)()>("ingotGetCacheFolder");
    return f == nullptr ? "" : f();
}

bool LeanLibrary::made(const void* object) const {
    const void* table = nullptr; // the object's virtual functions
    std::memcpy(&table, object, sizeof table);
    return same_library(table, library_.symbol(create_name));
}

std::string LeanLibrary::version() const {
    auto f = function<const char* (*)()>("ingotVersion");
    return f == nullptr ? "?" : f();
}

} // namespace ingot::api

int32_t ingotRuntimeInterface() noexcept {
    return ingot::api::runtime_interface;
}
