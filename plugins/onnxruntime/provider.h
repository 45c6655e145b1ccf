// SPDX-License-Identifier: Apache-2.0
// Provider: the execution provider of one session.
#pragma once

#include "plugins/onnxruntime/claim.h"
#include "plugins/onnxruntime/compute.h"
#include "plugins/onnxruntime/context.h"
#include "plugins/onnxruntime/memory.h"
#include "plugins/onnxruntime/shared_engines.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

namespace ingot::ort {

struct ProviderRequest {
    Host host;
    std::string name; // of the provider
    Target target;
    OptionMap entries; // of the session
    ContextCallbacks callbacks;
    std::span<const std::byte> source_model;       // of a model without weights
    std::shared_ptr<SharedEngines> shared_engines; // null: the session shares none
    std::shared_ptr<const GpuTable> gpus;
    const GpuTable::Entry* gpu = nullptr;          // in `gpus`; null: the CPU
    const OrtLogger* logger = nullptr;             // of the session
    const OrtLogger* environment_logger = nullptr; // lives on when the session's is gone
};

class Provider : public OrtEp {
public:
    /// Errors: InvalidArgument for wrong options.
    explicit Provider(ProviderRequest request);

private:
    static const char* get_name(const OrtEp* self);
    static OrtStatus* get_capability(OrtEp* self, const OrtGraph* graph,
                                     OrtEpGraphSupportInfo* info);
    static OrtStatus* compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused,
                              size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes);
    static void release_infos(OrtEp* self, OrtNodeComputeInfo** infos, size_t count);
    static OrtStatus* on_run_start(OrtEp* self, const OrtRunOptions* options);
    static OrtStatus* on_run_end(OrtEp* self, const OrtRunOptions* options, bool synchronize);
    static OrtStatus* create_profiler(OrtEp* self, OrtEpProfilerImpl** out);
    static OrtStatus* set_dynamic_options(OrtEp* self, const char* const* keys,
                                          const char* const* values, size_t count);
    static OrtStatus* is_concurrent_run_supported(OrtEp* self, bool* out);
    static OrtStatus* on_session_initialization_end(OrtEp* self);
    static OrtStatus* create_stream(OrtEp* self, const OrtMemoryDevice* device,
                                    OrtSyncStreamImpl** out);
    static OrtStatus* get_kernel_registry(OrtEp* self, const OrtKernelRegistry** out);
    static OrtStatus* get_default_memory(const OrtEp* self, const OrtMemoryDevice** out);
    static OrtStatus* sync(OrtEp* self);
    static const char* get_compatibility_info(OrtEp* self, const OrtGraph* graph);
    static OrtStatus* get_callback_support(const OrtEp* self, uint32_t* flags);
    static OrtStatus* get_weightless_support(const OrtEp* self, OrtWeightlessSupport* out);

    void check_device();
    void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
    bool claim_contexts(const OrtGraph* graph, OrtEpGraphSupportInfo* info) const;
    void fuse(OrtEpGraphSupportInfo* info, const std::vector<const OrtNode*>& nodes) const;
    std::unique_ptr<NodeRunner> compile_node(const OrtGraph* graph, const OrtNode* fused,
                                             OrtNode** context_node);
    std::unique_ptr<NodeRunner> load_context(const OrtGraph* graph, const OrtNode* node,
                                             const OrtNode* fused);
    /// Null where nodes can run.
    std::unique_ptr<NodeRunner> runner_of_none() const;
    /// Gives an engine the weights of these names.
    using GiveWeights = std::function<void(const LoadedEngine&, const std::vector<std::string>&)>;
    struct EngineSource {
        EngineContent content;
        EngineTrust trust;
        std::string left_out;  // the table of weights that it lacks
        bool is_alone = false; // never shared with other sessions
    };
    std::shared_ptr<const LoadedEngine> loaded(const EngineSource& source, const std::string& what,
                                               const GiveWeights& give);
    /// `identity` names the engine's file of kernels.
    std::unique_ptr<NodeRunner> runner(std::shared_ptr<const LoadedEngine> engine,
                                       const std::string& identity, const OrtNode* fused,
                                       const std::string& what);
    /// A part of a model that is built, with what it takes.
    struct Part {
        const OrtGraph* graph;
        const OrtNode* fused;
        OnnxModel model;
        BuildRequest request;
        std::string what; // for messages
    };
    struct BuiltEngine {
        EngineBytes bytes;                      // null: it is in a file
        std::string path;                       // of that file
        std::shared_ptr<const MappedFile> file; // the same
        EngineContent content;
        LeftOut left_out;
    };
    /// `name_files`: of OnnxModelRequest.
    Part part_of(const OrtGraph* graph, const OrtNode* fused, bool name_files);
    BuiltEngine build(const Part& part, bool is_context);
    OrtNode* write_context(const Part& part, const BuiltEngine& built);
    void log_build(const Part& part, std::chrono::steady_clock::time_point start) const;
    void check_validity(std::span<const std::byte> bytes, const std::string& what);
    void check_profiles(const OrtGraph* graph) const;
    void dump(const OrtGraph* graph, const OrtNode* fused, OnnxModelRequest request);
    /// Throws an error that an earlier call could not report to the host.
    void throw_pending() const;

    Host host_;
    std::string name_;
    Target target_;
    std::shared_ptr<SharedEngines> shared_engines_; // null: none
    std::shared_ptr<const GpuTable> gpus_;
    const GpuTable::Entry* gpu_;
    std::unique_ptr<MemcpyKernels> kernels_;
    Log log_;
    Log environment_log_;
    std::shared_ptr<ApiLogger> api_logger_;
    std::shared_ptr<RunSettings> settings_;
    const Options& options_;
    std::string cache_folder_; // "": none
    EngineTrust trust_;        // in engines of compiled models
    std::string signing_key_;  // "": compiled models are not signed
    std::vector<ShapeProfile> profiles_;
    ContextOptions context_;
    ContextCallbacks callbacks_;
    ContextWriter writer_;
    Weightless weightless_ = Weightless::None; // of compiled models
    std::string compatibility_;
    std::unique_ptr<Error> pending_;
};

} // namespace ingot::ort
