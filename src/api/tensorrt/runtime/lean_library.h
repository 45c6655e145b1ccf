// SPDX-License-Identifier: Apache-2.0
// LeanLibrary: another runtime library, of this release or another.
#pragma once

#include "NvInferRuntime.h"
#include "api/tensorrt/report.h"
#include "base/shared_library.h"

#include <memory>
#include <string>

namespace ingot::api {

/// The layout version of IRuntime: equal numbers have the same methods in the same slots, so that
/// one library may call another's. Later releases append methods.
inline constexpr int32_t runtime_interface = 1;

/// Stays open until the process ends.
class LeanLibrary {
public:
    /// Opens a path, or a bare name that the loader searches for. Errors: Io when it cannot be
    /// opened; Unsupported when it is no library of Ingot, or its runtimes cannot be called from
    /// here.
    static LeanLibrary open(const std::string& path);
    /// The library for engines of a major version: libingot_lean.so.MAJOR, then, where this release
    /// reads them, libingot_lean.so; first beside this library, then on the loader's path. Errors:
    /// Io, with the remedy.
    static LeanLibrary find(uint32_t major, bool is_readable);

    /// Null when it cannot be made; the library has logged the reason.
    std::unique_ptr<nvinfer1::IRuntime> create_runtime(nvinfer1::ILogger* logger) const;
    /// A runtime of the library at that path, reporting as `report` does. Errors: InvalidArgument,
    /// Unsupported.
    static std::unique_ptr<nvinfer1::IRuntime> load_runtime(const char* path, const Report& report);
    /// An IRefitter for an engine of that library, from its createInferRefitter_INTERNAL. Errors:
    /// Unsupported for a release without refitters.
    void* create_refitter(nvinfer1::ICudaEngine& engine, nvinfer1::ILogger* logger) const;
    nvinfer1::IPluginRegistry* plugin_registry() const;
    bool set_device(nvinfer1::IRuntime& runtime, int32_t device, int32_t ordinal) const;
    /// False: its release has no such setting.
    bool set_verify_weights(nvinfer1::IRuntime& runtime, bool verify) const;
    bool set_trusted_keys(nvinfer1::IRuntime& runtime, const char* public_keys) const;
    bool set_trusted_only(nvinfer1::IRuntime& runtime, bool only) const;
    int32_t device_of(const nvinfer1::ICudaEngine& engine) const;
    /// Null, too, for a release that does not tell.
    const char* device_error(const nvinfer1::ICudaEngine& engine) const;
    /// Errors: Unsupported for a release without priorities.
    bool set_priority(nvinfer1::IRuntimeConfig& config, int32_t priority) const;
    int32_t priority_of(const nvinfer1::IRuntimeConfig& config) const;
    bool set_cache_folder(const char* path) const;
    const char* cache_folder() const;
    /// Whether this library made the object, which must have virtual functions.
    bool made(const void* object) const;
    const std::string& path() const { return path_; }
    /// "0.1.0".
    std::string version() const;

private:
    int32_t interface_version() const;
    LeanLibrary(SharedLibrary library, std::string path)
        : library_(library), path_(std::move(path)) {}
    template <class F>
    F function(const char* name) const {
        return reinterpret_cast<F>(library_.symbol(name));
    }

    SharedLibrary library_;
    std::string path_;
};

} // namespace ingot::api
