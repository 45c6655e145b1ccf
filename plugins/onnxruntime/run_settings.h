// SPDX-License-Identifier: Apache-2.0
// RunSettings: settings of a session's runs, shared by the provider and its nodes.
#pragma once

#include "NvInfer.h"
#include "plugins/onnxruntime/log.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/profiler.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ingot::ort {

/// A budget for weights on the device: "0" is off, "-1" automatic, "1" the minimum; other values
/// are bytes, with the suffix B, K, M or G, or a percentage of the streamable weights.
class StreamingBudget {
public:
    /// Errors: InvalidArgument.
    static StreamingBudget parse(std::string_view text);
    bool is_off() const { return kind_ == Kind::Off; }
    /// In bytes for an engine; nullopt: all weights stay on the device.
    std::optional<int64_t> bytes(int64_t streamable, int64_t automatic) const;

private:
    enum class Kind { Off, Automatic, Least, Bytes, Percent };
    Kind kind_ = Kind::Off;
    double amount_ = 0;
};

/// Layer times of all runs of a session, as a file that each run rewrites. Thread safe.
class ProfileFile {
public:
    /// For an empty `path`, makes a name in the current folder.
    ProfileFile(std::string path, Log log);
    /// The index of a new subgraph.
    size_t add_subgraph(const std::string& name);
    void add_run(size_t subgraph, const std::vector<LayerTime>& layers);

private:
    std::string path_;
    Log log_;
    std::mutex mutex_;
    std::string events_;
    std::vector<size_t> runs_; // by subgraph
    bool warned_ = false;
};

/// Options of one run.
struct RunOptions {
    std::optional<int64_t> profile; // nv_profile_index
    int64_t graph = 0;              // gpu_graph_id; -1: the run records and replays no graph
    bool shrinks = false;           // memory.enable_memory_arena_shrinkage names the GPU
};
/// Reads them. `device` is the GPU's number; negative without a GPU. Errors: InvalidArgument.
RunOptions read_run_options(const Host& host, const OrtRunOptions* options, int32_t device);

struct RunSettings {
    Options options;
    std::shared_ptr<ProfileFile> profile; // null: not requested
    std::mutex mutex;
    StreamingBudget budget;            // under the mutex
    bool low_priority = false;         // under the mutex
    std::atomic<uint64_t> changes = 0; // contexts made before the last change are not reused

    /// Holds the limit on CUDA graphs that all nodes share; null before the first node. Under the
    /// mutex.
    std::unique_ptr<nvinfer1::IRuntimeConfig> graph_limit;

    /// The host's that are at work.
    const std::shared_ptr<Profilers> profilers = std::make_shared<Profilers>();

    /// Changes a setting for the runs that begin from here on. Errors: InvalidArgument.
    void set_dynamic_option(const std::string& key, const std::string& value);
    /// The options of this thread's run.
    RunOptions run_options() const;
    /// Sets them on this thread for the duration of a run; nullopt: the run has ended.
    void set_run_options(std::optional<RunOptions> given) const;
};

} // namespace ingot::ort
