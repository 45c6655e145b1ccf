// SPDX-License-Identifier: Apache-2.0
// ICudaEngine over an EngineState.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/engine_state.h"

namespace ingot::api {

class EngineObject final : public nvinfer1::ICudaEngine {
public:
    EngineObject(std::shared_ptr<EngineState> state, const Report& report)
        : state_(std::move(state)), report_(report) {}

    const std::shared_ptr<EngineState>& state() const { return state_; }
    const Report& report() const { return report_; }

    nvinfer1::Dims getTensorShape(const char* name) const noexcept override;
    nvinfer1::DataType getTensorDataType(const char* name) const noexcept override;
    int32_t getNbLayers() const noexcept override;
    nvinfer1::IHostMemory* serialize() const noexcept override;
    nvinfer1::IExecutionContext*
    createExecutionContext(nvinfer1::ExecutionContextAllocationStrategy strategy) noexcept override;
    nvinfer1::TensorLocation getTensorLocation(const char* name) const noexcept override;
    bool isShapeInferenceIO(const char* name) const noexcept override;
    nvinfer1::TensorIOMode getTensorIOMode(const char* name) const noexcept override;
    const char* getAliasedInputTensor(const char* name) const noexcept override;
    nvinfer1::IExecutionContext*
    createExecutionContext(nvinfer1::IRuntimeConfig* config) noexcept override;
    nvinfer1::IRuntimeConfig* createRuntimeConfig() noexcept override;

    int64_t getDeviceMemorySizeV2() const noexcept override;
    int64_t getDeviceMemorySizeForProfileV2(int32_t profile) const noexcept override;
    bool isRefittable() const noexcept override { return state_->engine().source() != nullptr; }

    int32_t getTensorBytesPerComponent(const char* name) const noexcept override;
    int32_t getTensorBytesPerComponent(const char* name, int32_t profile) const noexcept override;
    int32_t getTensorComponentsPerElement(const char* name) const noexcept override;
    int32_t getTensorComponentsPerElement(const char* name,
                                          int32_t profile) const noexcept override;
    nvinfer1::TensorFormat getTensorFormat(const char* name) const noexcept override;
    nvinfer1::TensorFormat getTensorFormat(const char* name,
                                           int32_t profile) const noexcept override;
    const char* getTensorFormatDesc(const char* name) const noexcept override;
    const char* getTensorFormatDesc(const char* name, int32_t profile) const noexcept override;
    int32_t getTensorVectorizedDim(const char* name) const noexcept override;
    int32_t getTensorVectorizedDim(const char* name, int32_t profile) const noexcept override;

    const char* getName() const noexcept override { return state_->build_settings().name.c_str(); }
    int32_t getNbOptimizationProfiles() const noexcept override { return state_->profile_count(); }
    nvinfer1::Dims getProfileShape(const char* name, int32_t profile,
                                   nvinfer1::OptProfileSelector select) const noexcept override;
    const int64_t*
    getProfileTensorValuesV2(const char* name, int32_t profile,
                             nvinfer1::OptProfileSelector select) const noexcept override;
    nvinfer1::EngineCapability getEngineCapability() const noexcept override {
        return nvinfer1::EngineCapability::kSTANDARD;
    }
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        report_.set_recorder(recorder);
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }
    nvinfer1::TacticSources getTacticSources() const noexcept override {
        return state_->build_settings().tactic_sources;
    }
    nvinfer1::ProfilingVerbosity getProfilingVerbosity() const noexcept override {
        return state_->build_settings().verbosity;
    }
    nvinfer1::IEngineInspector* createEngineInspector() const noexcept override;
    int32_t getNbIOTensors() const noexcept override {
        return static_cast<int32_t>(state_->tensors().size());
    }
    const char* getIOTensorName(int32_t index) const noexcept override;
    nvinfer1::HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept override {
        return state_->build_settings().hardware;
    }
    int32_t getNbAuxStreams() const noexcept override { return 0; }

    nvinfer1::ISerializationConfig* createSerializationConfig() noexcept override;
    nvinfer1::IHostMemory*
    serializeWithConfig(nvinfer1::ISerializationConfig& config) const noexcept override;

    int64_t getStreamableWeightsSize() const noexcept override;
    bool setWeightStreamingBudgetV2(int64_t budget) noexcept override;
    int64_t getWeightStreamingBudgetV2() const noexcept override;
    int64_t getWeightStreamingAutomaticBudget() const noexcept override;
    int64_t getWeightStreamingScratchMemorySize() const noexcept override;

    bool isDebugTensor(const char* name) const noexcept override;
    int64_t getEngineStat(nvinfer1::EngineStat stat) const noexcept override;

    bool areWeightsLoaded() const noexcept override {
        return state_->weights_loaded() && !state_->weights_out();
    }
    bool loadWeights(const void* blob, int64_t size) noexcept override;
    bool loadWeightsAsync(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream) noexcept override;
    const int32_t*
    getProfileTensorValues(const char* name, int32_t profile,
                           nvinfer1::OptProfileSelector select) const noexcept override;
    bool unloadWeights() noexcept override;
    nvinfer1::IWeightsManager* createWeightsManager() noexcept override;

private:
    nvinfer1::IHostMemory* serialized(const WriteOptions& options) const;
    /// The tensor, after a check of the profile. Errors: InvalidArgument.
    const IoTensor& tensor_of(const char* name, int32_t profile) const;

    std::shared_ptr<EngineState> state_;
    Report report_;
};

/// An engine of the API on `place`; its plugins come from `registry`, null for the process's.
/// Errors: InvalidEngine; Unsupported for a plugin without a creator.
std::unique_ptr<EngineObject> make_engine(std::shared_ptr<const Engine> engine, const Place& place,
                                          nvinfer1::IGpuAllocator* allocator, const Report& report,
                                          bool weights_loaded = true,
                                          nvinfer1::IPluginRegistry* registry = nullptr);

} // namespace ingot::api
