// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: one caller's shapes, addresses and settings, on a Context of the engine.
#pragma once

#include "api/tensorrt/runtime/engine.h"
#include "api/tensorrt/runtime/runtime_config.h"
#include "plan/run_settings.h"

#include <atomic>
#include <set>
#include <thread>

namespace ingot::api {

/// Reserves a context for the calling thread; may be nested. Errors: InvalidArgument when another
/// thread uses it.
class InUse {
public:
    explicit InUse(std::atomic<std::thread::id>& user);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

private:
    std::atomic<std::thread::id>* user_; // null: nested
};

/// Stores the layer times of the last run.
class LayerTimes final : public StepTimer {
public:
    void step(const StepInfo& info, double milliseconds) noexcept override;
    void clear() { times_.clear(); }
    bool empty() const { return times_.empty(); }
    void report(nvinfer1::IProfiler& profiler) const;

private:
    std::vector<std::pair<std::string, float>> times_;
};

class ContextObject final : public nvinfer1::IExecutionContext, public WeightUser {
public:
    /// Errors: OutOfMemory, Unsupported.
    ContextObject(std::shared_ptr<EngineState> state, const RuntimeConfig& config,
                  const Report& report);
    ~ContextObject() noexcept override;

    const std::shared_ptr<EngineState>& state() const { return state_; }
    /// The steps for the shapes set. Errors: InvalidArgument when some are missing.
    std::vector<StepInfo> steps() const;
    void let_go() override;

    void setDebugSync(bool sync) noexcept override {
        call("IExecutionContext::setDebugSync", false, [&] { return debug_sync_ = sync; });
    }
    bool getDebugSync() const noexcept override { return debug_sync_; }
    void setProfiler(nvinfer1::IProfiler* profiler) noexcept override;
    nvinfer1::IProfiler* getProfiler() const noexcept override { return profiler_; }
    const nvinfer1::ICudaEngine& getEngine() const noexcept override { return engine_; }
    void setName(const char* name) noexcept override;
    const char* getName() const noexcept override { return name_.c_str(); }
    void setDeviceMemory(void* memory) noexcept override;
    void setDeviceMemoryV2(void* memory, int64_t size) noexcept override;
    nvinfer1::Dims getTensorStrides(const char* name) const noexcept override;
    int32_t getOptimizationProfile() const noexcept override { return profile_; }
    bool setInputShape(const char* name, const nvinfer1::Dims& dims) noexcept override;
    nvinfer1::Dims getTensorShape(const char* name) const noexcept override;
    bool allInputDimensionsSpecified() const noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        call("IExecutionContext::setErrorRecorder", false, [&] {
            report_.set_recorder(recorder);
            return true;
        });
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }
    bool executeV2(void* const* bindings) noexcept override;
    bool setOptimizationProfileAsync(int32_t profile, cudaStream_t stream) noexcept override;
    void setEnqueueEmitsProfile(bool emits) noexcept override;
    bool getEnqueueEmitsProfile() const noexcept override { return emits_profile_; }
    bool reportToProfiler() const noexcept override;
    bool setTensorAddress(const char* name, void* data) noexcept override;
    const void* getTensorAddress(const char* name) const noexcept override;
    bool setOutputTensorAddress(const char* name, void* data) noexcept override;
    bool setInputTensorAddress(const char* name, const void* data) noexcept override;
    void* getOutputTensorAddress(const char* name) const noexcept override;
    int32_t inferShapes(int32_t most, const char** names) noexcept override;
    size_t updateDeviceMemorySizeForShapes() noexcept override;
    bool setInputConsumedEvent(cudaEvent_t event) noexcept override;
    cudaEvent_t getInputConsumedEvent() const noexcept override {
        return static_cast<cudaEvent_t>(settings_.inputs_event);
    }
    bool setOutputAllocator(const char* name,
                            nvinfer1::IOutputAllocator* allocator) noexcept override;
    nvinfer1::IOutputAllocator* getOutputAllocator(const char* name) const noexcept override;
    int64_t getMaxOutputSize(const char* name) const noexcept override;
    bool setTemporaryStorageAllocator(nvinfer1::IGpuAllocator* allocator) noexcept override;
    nvinfer1::IGpuAllocator* getTemporaryStorageAllocator() const noexcept override {
        return storage_allocator_ == nullptr ? state_->allocator() : storage_allocator_;
    }
    bool enqueueV3(cudaStream_t stream) noexcept override;
    void setPersistentCacheLimit(size_t size) noexcept override;
    size_t getPersistentCacheLimit() const noexcept override {
        return static_cast<size_t>(settings_.cache_limit);
    }
    bool setNvtxVerbosity(nvinfer1::ProfilingVerbosity verbosity) noexcept override;
    nvinfer1::ProfilingVerbosity getNvtxVerbosity() const noexcept override { return nvtx_; }
    void setAuxStreams(cudaStream_t* streams, int32_t count) noexcept override;
    bool setDebugListener(nvinfer1::IDebugListener* listener) noexcept override;
    nvinfer1::IDebugListener* getDebugListener() noexcept override { return listener_; }
    bool setTensorDebugState(const char* name, bool flag) noexcept override;
    bool getDebugState(const char* name) const noexcept override;
    bool setAllTensorsDebugState(bool flag) noexcept override;
    bool setUnfusedTensorsDebugState(bool flag) noexcept override;
    bool getUnfusedTensorsDebugState() const noexcept override { return debug_unfused_; }
    nvinfer1::IRuntimeConfig* getRuntimeConfig() const noexcept override { return config_.get(); }
    bool isStreamCapturable(cudaStream_t stream) const noexcept override;
    bool setCommunicator(void* communicator) noexcept override;

private:
    /// Runs f with the context reserved for this thread.
    template <class R, class F>
    R call(const char* method, R failure, const F& f) const noexcept {
        return report_.guard(method, failure, [&]() -> R {
            InUse held(user_);
            return f();
        });
    }
    /// After a refit, switches to the new weights and keeps this context's settings. Cheap without
    /// a refit. Errors: InvalidArgument while the engine has no weights.
    void follow_refit();
    /// Changes the settings by f(RunSettings&), also in the execution. Errors: as
    /// Execution::configure(); the settings are then unchanged.
    template <class F>
    void change_settings(const F& f) {
        RunSettings settings = settings_;
        f(settings);
        if (context_ != nullptr) {
            context_->execution().configure(settings);
        }
        settings_ = std::move(settings);
    }
    void set_address(const char* name, void* data, nvinfer1::TensorIOMode mode);
    void forget_shapes();
    void reserve_memory(int32_t profile);
    void log_memory() const;
    /// The sizes that the shapes set so far determine.
    const Symbols& symbols() const;
    Shape shape_of(const IoTensor& t) const;
    std::vector<Shape> input_shapes() const;
    void run(void* const* addresses, cudaStream_t stream);
    /// Reads the inputs whose values the profile bounds. Errors: InvalidArgument for a value out of
    /// bounds.
    void check_values(cudaStream_t stream) const;
    void wait();
    void* output_memory(size_t output, int64_t bytes);
    /// The largest size of an output under the shapes set, in bytes; nullopt where a shape is
    /// missing or the size is unbounded.
    std::optional<int64_t> most_bytes(const IoTensor& t) const;
    void time_layers();
    void watch_tensors();
    void observe(std::string_view name, const Tensor& t);
    void show_debug_tensors();
    void show(const std::string& name, DType dtype, const Shape& shape, const void* address,
              bool on_host);

    std::shared_ptr<EngineState> state_;
    Report report_;
    EngineObject engine_;
    std::unique_ptr<RuntimeConfig> config_;
    std::shared_ptr<Context> context_; // null while the engine has no weights
    uint64_t generation_;              // of the engine under context_
    RunSettings settings_;             // of the execution; they outlive a refit
    mutable std::atomic<std::thread::id> user_;

    std::string name_;
    int32_t profile_ = 0;
    std::vector<std::optional<Shape>> shapes_;            // by input
    mutable std::optional<Symbols> symbols_;              // of these shapes, once asked for
    std::vector<void*> addresses_;                        // by tensor
    std::vector<nvinfer1::IOutputAllocator*> allocators_; // by output
    std::vector<Binding> inputs_;
    std::vector<Binding> outputs_; // debug outputs last
    OutputMemory memory_;
    cudaStream_t stream_ = nullptr; // of the current run
    void* const* given_ = nullptr;  // addresses of the current run, by tensor

    mutable LayerTimes times_;
    nvinfer1::IProfiler* profiler_ = nullptr;
    bool emits_profile_ = true;
    nvinfer1::IDebugListener* listener_ = nullptr;
    std::set<std::string, std::less<>> debug_tensors_; // the enabled ones
    bool debug_unfused_ = false;
    bool debug_sync_ = false;
    nvinfer1::IGpuAllocator* storage_allocator_ = nullptr; // null: the engine's
    nvinfer1::ProfilingVerbosity nvtx_;
};

std::unique_ptr<ContextObject> make_context(const std::shared_ptr<EngineState>& state,
                                            const RuntimeConfig& config, const Report& report);

} // namespace ingot::api
