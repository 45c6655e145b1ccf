// SPDX-License-Identifier: Apache-2.0
// DispatchRuntime: an IRuntime without engine code. The lean runtime library of an engine's version
// loads the engine.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/lean_library.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace ingot::api {

/// The lean libraries in use, by the major version of engines. Thread safe; never destroyed.
class LeanLibraries {
public:
    static LeanLibraries& shared();
    /// Errors: those of LeanLibrary::find.
    const LeanLibrary& of_major(uint32_t major, bool is_readable);
    /// The library of this release.
    const LeanLibrary& current();
    /// The library that made the engine or configuration; null for an object made elsewhere.
    const LeanLibrary* of_engine(const nvinfer1::ICudaEngine& engine) { return maker(&engine); }
    const LeanLibrary* of_config(const nvinfer1::IRuntimeConfig& config) { return maker(&config); }
    /// Applies to every library, including those opened later. False when one of them refuses.
    bool set_cache_folder(const char* path);

private:
    const LeanLibrary* maker(const void* object);

    std::mutex mutex_;
    std::map<uint32_t, LeanLibrary> by_major_;
    std::optional<std::optional<std::string>> cache_folder_;
};

class DispatchRuntime final : public nvinfer1::IRuntime {
public:
    explicit DispatchRuntime(nvinfer1::ILogger* logger);

    void setDLACore(int32_t core) noexcept override;
    int32_t getDLACore() const noexcept override { return settings_.dla_core; }
    int32_t getNbDLACores() const noexcept override { return 0; }
    void setGpuAllocator(nvinfer1::IGpuAllocator* allocator) noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override;
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }
    nvinfer1::ICudaEngine* deserializeCudaEngine(const void* blob,
                                                 std::size_t size) noexcept override;
    nvinfer1::ICudaEngine*
    deserializeCudaEngine(nvinfer1::IStreamReaderV2& reader) noexcept override;
    nvinfer1::ICudaEngine* deserializeCudaEngine(nvinfer1::IStreamReader& reader) noexcept override;
    nvinfer1::ILogger* getLogger() const noexcept override { return report_.logger(); }
    bool setMaxThreads(int32_t threads) noexcept override;
    int32_t getMaxThreads() const noexcept override { return settings_.max_threads; }
    void setTemporaryDirectory(const char* path) noexcept override;
    const char* getTemporaryDirectory() const noexcept override {
        return settings_.temporary ? settings_.temporary->c_str() : nullptr;
    }
    void setTempfileControlFlags(nvinfer1::TempfileControlFlags flags) noexcept override;
    nvinfer1::TempfileControlFlags getTempfileControlFlags() const noexcept override {
        return settings_.tempfile_flags;
    }
    nvinfer1::IPluginRegistry& getPluginRegistry() noexcept override;
    nvinfer1::IRuntime* loadRuntime(const char* path) noexcept override;
    void setEngineHostCodeAllowed(bool allowed) noexcept override;
    bool getEngineHostCodeAllowed() const noexcept override { return settings_.host_code; }
    int64_t getEngineHeaderSize() const noexcept override;
    nvinfer1::EngineValidity getEngineValidity(const void* blob, int64_t size,
                                               uint64_t* diagnostics) const noexcept override;
    void setDeferredWeightsLoading(bool defer) noexcept override;
    bool getDeferredWeightsLoading() const noexcept override { return settings_.deferred; }
    // Not forwarded: lean libraries of earlier releases lack it, and it has no effect.
    bool setDLAWorkspaceAllocationStrategy(
        nvinfer1::DLAWorkspaceAllocationStrategy strategy) noexcept override;
    nvinfer1::DLAWorkspaceAllocationStrategy
    getDLAWorkspaceAllocationStrategy() const noexcept override {
        return settings_.dla_workspace;
    }

    bool set_device(int32_t device, int32_t ordinal) noexcept;
    bool set_verify_weights(bool verify) noexcept;
    bool set_trusted_keys(const char* public_keys) noexcept;
    bool set_trusted_only(bool only) noexcept;

private:
    struct Settings {
        nvinfer1::IGpuAllocator* allocator = nullptr;
        int32_t dla_core = 0;
        nvinfer1::DLAWorkspaceAllocationStrategy dla_workspace =
            nvinfer1::DLAWorkspaceAllocationStrategy::kDEFAULT;
        int32_t max_threads = 1;
        std::optional<std::string> temporary;
        nvinfer1::TempfileControlFlags tempfile_flags = 3;
        bool host_code = false;
        bool deferred = false;
        bool verify_weights = true;
        std::optional<std::string> trusted_keys;
        bool trusted_only = false;
        int32_t device = 0;
        int32_t ordinal = 0;
    };
    /// The runtime for an engine, chosen by its first bytes and made at the first use. Errors:
    /// InvalidEngine, those of LeanLibraries::of_major.
    nvinfer1::IRuntime& runtime_for(std::span<const std::byte> header) const;
    /// Calls `change` on every runtime that exists.
    template <class F>
    void for_all(const char* method, const F& change) const noexcept;
    void configure(nvinfer1::IRuntime& runtime, const LeanLibrary& library) const;

    Report report_;
    Settings settings_;
    struct Made {
        const LeanLibrary* library;
        std::unique_ptr<nvinfer1::IRuntime> runtime;
    };
    mutable std::mutex mutex_;
    mutable std::map<uint32_t, Made> runtimes_; // by major version
};

} // namespace ingot::api
