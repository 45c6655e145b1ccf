// SPDX-License-Identifier: Apache-2.0
// IRuntimeConfig and IRuntimeCache.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/engine_state.h"

namespace ingot::api {

class RuntimeCacheObject final : public nvinfer1::IRuntimeCache {
public:
    /// `device`: the target of the kernels.
    RuntimeCacheObject(std::shared_ptr<plan::RuntimeCache> cache, std::string device,
                       const Report& report)
        : cache_(std::move(cache)), device_(std::move(device)), report_(report) {}

    nvinfer1::IHostMemory* serialize() const noexcept override;
    bool deserialize(const void* blob, size_t size) noexcept override;
    bool reset() noexcept override;

    const std::shared_ptr<plan::RuntimeCache>& content() const { return cache_; }
    const std::string& device() const { return device_; }

private:
    std::shared_ptr<plan::RuntimeCache> cache_;
    std::string device_;
    Report report_;
};

class RuntimeConfig final : public nvinfer1::IRuntimeConfig {
public:
    RuntimeConfig(std::shared_ptr<EngineState> state, const Report& report)
        : state_(std::move(state)), report_(report) {}
    /// A copy for a context.
    std::unique_ptr<RuntimeConfig> clone() const;
    RunOptions options() const;

    void setExecutionContextAllocationStrategy(
        nvinfer1::ExecutionContextAllocationStrategy strategy) noexcept override;
    nvinfer1::ExecutionContextAllocationStrategy
    getExecutionContextAllocationStrategy() const noexcept override {
        return allocation_;
    }
    nvinfer1::IRuntimeCache* createRuntimeCache() const noexcept override;
    bool setRuntimeCache(const nvinfer1::IRuntimeCache& cache) noexcept override;
    nvinfer1::IRuntimeCache* getRuntimeCache() const noexcept override { return cache_.get(); }
    void setDynamicShapesKernelSpecializationStrategy(
        nvinfer1::DynamicShapesKernelSpecializationStrategy strategy) noexcept override;
    nvinfer1::DynamicShapesKernelSpecializationStrategy
    getDynamicShapesKernelSpecializationStrategy() const noexcept override {
        return specialise_;
    }
    /// Errors (reported): InvalidArgument for a number that is no ingot::Priority.
    bool set_priority(int32_t priority) noexcept;
    int32_t priority() const { return static_cast<int32_t>(priority_); }

    /// Errors (reported): InvalidArgument for a number below 1, or another than `other` has.
    bool set_graph_limit(int32_t most, const RuntimeConfig* other) noexcept;
    void set_record_first(bool first) noexcept { record_first_ = first; }
    /// Graphs that count for the limit.
    int32_t count_graphs() const noexcept;

    bool setCudaGraphStrategy(nvinfer1::CudaGraphStrategy strategy) noexcept override;
    nvinfer1::CudaGraphStrategy getCudaGraphStrategy() const noexcept override { return graphs_; }

private:
    /// On the CPU, logs that a kernel setting has no effect.
    void note_on_cpu(std::string_view method) const;

    std::shared_ptr<EngineState> state_;
    Report report_;
    nvinfer1::ExecutionContextAllocationStrategy allocation_ =
        nvinfer1::ExecutionContextAllocationStrategy::kSTATIC;
    nvinfer1::DynamicShapesKernelSpecializationStrategy specialise_ =
        nvinfer1::DynamicShapesKernelSpecializationStrategy::kLAZY;
    nvinfer1::CudaGraphStrategy graphs_ = nvinfer1::CudaGraphStrategy::kDISABLED;
    RunPriority priority_ = RunPriority::Normal;
    std::shared_ptr<cuda::RecordingLimit> recordings_; // null: no limit is set
    bool record_first_ = false;
    std::unique_ptr<RuntimeCacheObject> cache_; // shares content with the caller's; null: none set
};

} // namespace ingot::api
