// SPDX-License-Identifier: Apache-2.0
// IRuntime.
#pragma once

#include "api/tensorrt/plugin/registry.h"
#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/place.h"
#include "api/tensorrt/runtime/validity.h"
#include "engine/engine.h"

#include <atomic>
#include <string>

namespace ingot::api {

class RuntimeObject final : public nvinfer1::IRuntime {
public:
    explicit RuntimeObject(nvinfer1::ILogger* logger);

    int32_t getDLACore() const noexcept override { return dla_core_; }
    int32_t getNbDLACores() const noexcept override { return 0; }
    void setGpuAllocator(nvinfer1::IGpuAllocator* allocator) noexcept override {
        allocator_ = allocator;
    }
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        report_.set_recorder(recorder);
    }
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
    int32_t getMaxThreads() const noexcept override { return max_threads_; }
    void setTemporaryDirectory(const char* path) noexcept override;
    const char* getTemporaryDirectory() const noexcept override {
        return temporary_.empty() ? nullptr : temporary_.c_str();
    }
    void setTempfileControlFlags(nvinfer1::TempfileControlFlags flags) noexcept override;
    nvinfer1::TempfileControlFlags getTempfileControlFlags() const noexcept override {
        return tempfile_flags_;
    }
    nvinfer1::IPluginRegistry& getPluginRegistry() noexcept override { return plugins_; }
    nvinfer1::IRuntime* loadRuntime(const char* path) noexcept override;
    void setEngineHostCodeAllowed(bool allowed) noexcept override;
    void setDLACore(int32_t core) noexcept override;
    bool getEngineHostCodeAllowed() const noexcept override { return trust_.allow_code; }
    int64_t getEngineHeaderSize() const noexcept override;
    nvinfer1::EngineValidity getEngineValidity(const void* blob, int64_t size,
                                               uint64_t* diagnostics) const noexcept override;
    void setDeferredWeightsLoading(bool defer) noexcept override { deferred_ = defer; }
    bool getDeferredWeightsLoading() const noexcept override { return deferred_; }
    bool setDLAWorkspaceAllocationStrategy(
        nvinfer1::DLAWorkspaceAllocationStrategy strategy) noexcept override;
    nvinfer1::DLAWorkspaceAllocationStrategy
    getDLAWorkspaceAllocationStrategy() const noexcept override {
        return dla_workspace_;
    }

    /// For ingot::deserializeFile().
    nvinfer1::ICudaEngine* deserialize_file(const EngineFile& file) noexcept;
    bool set_device(int32_t device, int32_t ordinal) noexcept;
    /// For ingot::setVerifyWeights().
    void set_verify_weights(bool verify) noexcept {
        check_weights_ = verify ? CheckWeights::Beside : CheckWeights::Never;
    }
    bool set_trusted_keys(const char* public_keys) noexcept;
    void set_trusted_only(bool only) noexcept { trust_.only_signed = only; }

private:
    /// `read` returns the engine's bytes, in memory from the given source.
    template <class Read>
    nvinfer1::ICudaEngine* make(const Read& read, CheckWeights check) const;
    DeviceFacts device_facts(const EngineHead& engine) const;
    /// The place; the first call logs the cost of finding it.
    Place first_place() const;

    Report report_;
    mutable PluginRegistry plugins_{::getPluginRegistry()};
    nvinfer1::IGpuAllocator* allocator_ = nullptr;
    Device device_ = Device::kAUTO;
    int32_t ordinal_ = 0;
    int32_t dla_core_ = 0;
    nvinfer1::DLAWorkspaceAllocationStrategy dla_workspace_ =
        nvinfer1::DLAWorkspaceAllocationStrategy::kDEFAULT;
    int32_t max_threads_;
    std::string temporary_;
    nvinfer1::TempfileControlFlags tempfile_flags_ = 3;
    bool deferred_ = false;
    CheckWeights check_weights_ = CheckWeights::Beside;
    Trust trust_;
    mutable std::atomic<bool> found_device_{false};
};

} // namespace ingot::api
