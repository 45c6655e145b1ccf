// SPDX-License-Identifier: Apache-2.0
// NodeCompute: a fused node in ONNX Runtime's interface, run on contexts of an engine.
#pragma once

#include "plugins/common/device_memory.h"
#include "plugins/onnxruntime/engine.h"
#include "plugins/onnxruntime/graph.h"
#include "plugins/onnxruntime/idle_contexts.h"
#include "plugins/onnxruntime/run_settings.h"
#include "plugins/onnxruntime/runtime_cache.h"
#include "plugins/onnxruntime/scratch_pool.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace ingot::ort {

/// Memory of an output with a data-dependent size; kept for the next run.
class OutputBuffer final : public nvinfer1::IOutputAllocator {
public:
    /// In host memory for null.
    explicit OutputBuffer(std::shared_ptr<DeviceMemory> device) : device_(std::move(device)) {}
    ~OutputBuffer() override;
    void* reallocateOutputAsync(const char* name, void* current, uint64_t size, uint64_t alignment,
                                cudaStream_t stream) override;
    void notifyShape(const char* name, const nvinfer1::Dims& dims) noexcept override;
    const void* data() const { return memory_; }
    const nvinfer1::Dims& dims() const { return dims_; }

private:
    void free() noexcept;
    std::shared_ptr<DeviceMemory> device_;
    void* memory_ = nullptr;
    uint64_t size_ = 0;
    nvinfer1::Dims dims_{};
};

/// Layer times of one run.
class LayerTimes final : public nvinfer1::IProfiler {
public:
    void reportLayerTime(const char* name, float ms) noexcept override;
    std::vector<LayerTime> take();

private:
    std::vector<LayerTime> layers_;
};

/// An input as a run gets it.
struct GivenInput {
    const OrtValue* value = nullptr;
    TensorView tensor;
    nvinfer1::Dims shape{};
};

/// A context, with the settings of its last run.
struct RunContext {
    std::optional<int64_t> graph;      // id of the graphs that it records; nullopt: none
    std::unique_ptr<LayerTimes> times; // null: not requested
    std::unique_ptr<nvinfer1::IExecutionContext> context;
    std::vector<nvinfer1::Dims> shapes;                      // set input shapes
    std::vector<GivenInput> given;                           // by the run
    std::map<size_t, std::unique_ptr<OutputBuffer>> buffers; // by output
    std::vector<nvinfer1::Dims> output_shapes;               // at the input shapes
    bool shapes_known = false;
    size_t scratch_bytes = 0;      // that a run at these shapes needs
    ScratchPool::Lease captured;   // scratch memory in a graph that the application has captured
    const void* scratch = nullptr; // the scratch memory that it was given last, and its size
    size_t scratch_given = 0;
    int32_t profile = 0;
    uint64_t changes = 0; // RunSettings::changes at creation
};

/// Binds a fused node to an engine.
struct NodeBinding {
    std::string what; // for messages
    /// Inputs of the engine: name, and the node's input.
    std::vector<std::pair<std::string, size_t>> inputs;
    /// Outputs of the node in its order.
    std::vector<std::string> outputs;
};

/// Errors: InvalidEngine for an engine whose inputs and outputs are not the node's.
NodeBinding bind_node(const nvinfer1::ICudaEngine& engine, const std::string& what,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs);

/// The interface for the host of a fused node.
class NodeRunner : public OrtNodeComputeInfo {
public:
    NodeRunner() : OrtNodeComputeInfo{} {}
    virtual ~NodeRunner() = default;
    NodeRunner(const NodeRunner&) = delete;
    NodeRunner& operator=(const NodeRunner&) = delete;
};

/// A node that cannot run here: every run fails with `why`.
class NoCompute final : public NodeRunner {
public:
    NoCompute(const Host& host, const char* why);

private:
    static OrtStatus* compute(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
    Host host_;
    const char* why_;
};

/// Concurrent runs each use a context from a pool.
class NodeCompute final : public NodeRunner {
public:
    /// `cache` may be null; so are `device` and `scratch` for the CPU.
    NodeCompute(const Host& host, std::shared_ptr<const LoadedEngine> engine, NodeBinding binding,
                std::shared_ptr<RunSettings> settings, std::unique_ptr<RuntimeCache> cache,
                std::shared_ptr<DeviceMemory> device, std::shared_ptr<ScratchPool> scratch);

private:
    static OrtStatus* create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext* context,
                                   void** state);
    static OrtStatus* compute(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
    static void release_state(OrtNodeComputeInfo* self, void* state);

    void configure();
    std::unique_ptr<nvinfer1::IRuntimeConfig> make_config(bool records_graphs);
    void limit_graphs(nvinfer1::IRuntimeConfig& config);
    std::unique_ptr<RunContext> take();
    std::unique_ptr<RunContext> make_context(std::optional<int64_t> graph);
    void time_layers(RunContext& c) const;
    void give_back(std::unique_ptr<RunContext> c);
    void end_run() noexcept;
    void run(OrtKernelContext* kernel);
    void run(RunContext& c, OrtKernelContext* kernel);
    void choose_profile(RunContext& c);
    bool fits(int32_t profile, std::span<const GivenInput> given) const;
    [[noreturn]] void outside(std::span<const GivenInput> given,
                              std::optional<int32_t> profile) const;
    void set_inputs(RunContext& c, OrtKernelContext* kernel);
    void learn_outputs(RunContext& c);
    void set_outputs(RunContext& c, OrtKernelContext* kernel);
    ScratchPool::Lease give_scratch(RunContext& c, void* stream);
    void enqueue(RunContext& c, OrtKernelContext* kernel);
    void finish_outputs(RunContext& c, OrtKernelContext* kernel, void* stream);
    void* engine_address(const OrtValue* value, const void* data, size_t bytes,
                         const std::string& name) const;
    [[noreturn]] void failed(const char* otherwise);

    Host host_;
    std::shared_ptr<DeviceMemory> device_; // null: the CPU
    ScratchUser scratch_;
    std::shared_ptr<RunSettings> settings_;
    std::unique_ptr<RuntimeCache> cache_;                    // destroyed last
    std::shared_ptr<const LoadedEngine> engine_;             // other sessions may have it too
    std::unique_ptr<nvinfer1::IRuntimeConfig> config_;       // records no graphs
    std::unique_ptr<nvinfer1::IRuntimeConfig> graph_config_; // null: no graphs
    NodeBinding binding_;
    int32_t profiles_ = 1;
    bool has_profiles_ = false;   // with limits on shapes
    size_t subgraph_ = 0;         // in the profile file
    uint64_t budget_changes_ = 0; // RunSettings::changes when the budget was applied
    bool streams_ = false;        // the engine's weights may be streamed
    std::mutex mutex_;
    size_t running_ = 0; // contexts in use by runs
    std::condition_variable none_running_;
    IdleContexts<RunContext> idle_;
    std::vector<std::unique_ptr<RunContext>> captured_; // the application's graphs use them
};

} // namespace ingot::ort
