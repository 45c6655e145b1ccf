// SPDX-License-Identifier: Apache-2.0
// EngineState: shared by an engine of the public API, its contexts and inspectors, so that these
// may be deleted in any order.
#pragma once

#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/runtime/place.h"
#include "api/tensorrt/runtime/read_engine.h"
#include "base/priority.h"
#include "cache/runtime_cache.h"

#include <atomic>
#include <mutex>
#include <span>
#include <string_view>

namespace ingot::cuda {
class RecordingLimit;
} // namespace ingot::cuda

namespace ingot::api {

/// An input or output, numbered as in the API: inputs first.
struct IoTensor {
    std::string name;
    bool is_input = false;
    size_t index = 0; // among inputs, or among outputs
    Type type;
    const IoFormat* format = nullptr;
    std::string described; // type and format as text
    Tensor initial;        // an input's default; undefined for one without
};

/// Options for making a context.
struct RunOptions {
    nvinfer1::DynamicShapesKernelSpecializationStrategy specialise =
        nvinfer1::DynamicShapesKernelSpecializationStrategy::kLAZY;
    nvinfer1::CudaGraphStrategy graphs = nvinfer1::CudaGraphStrategy::kDISABLED;
    std::shared_ptr<plan::RuntimeCache> cache; // null: the folder of the process
    RunPriority priority = RunPriority::Normal;
    std::shared_ptr<cuda::RecordingLimit> recordings; // null: one of each context's own
    bool record_first = false;

    bool operator==(const RunOptions&) const = default;
};

/// A context, which can release its hold on an engine's weights.
class WeightUser {
public:
    virtual ~WeightUser() = default;
    /// Waits for the current run. The context has no plans until there are weights again. Errors:
    /// InvalidArgument while another thread uses it.
    virtual void let_go() = 0;
};

/// Thread safe.
class EngineState {
public:
    EngineState(std::shared_ptr<const Engine> engine, const Place& place,
                nvinfer1::IGpuAllocator* allocator, bool weights_loaded);

    const Engine& engine() const { return *engine_; }
    const Graph& graph() const { return engine_->graph(); }
    const BuildSettings& build_settings() const { return settings_; }
    /// The plugins that contexts use; null: the engine has none.
    void set_plugins(std::shared_ptr<plan::PluginHost> plugins) { plugins_ = std::move(plugins); }
    /// The thread limit of contexts made from now on, the caller included.
    void set_threads(int32_t threads);
    /// Receives the warning about kernels of the engine that are not trusted, and reports on
    /// tactics that memory limits exclude; null for none.
    void set_logger(nvinfer1::ILogger* logger) { logger_ = logger; }
    const Place& place() const { return place_; }
    nvinfer1::IGpuAllocator* allocator() const { return allocator_; }
    bool weights_loaded() const { return weights_loaded_; }
    /// Expects load_weights() to bring these bytes later.
    void expect_weights(EngineBytes bytes);
    /// Copies the weights to the GPU, where contexts share them. A CPU reads them in place, and
    /// weights that may be streamed wait for a budget. Errors: OutOfMemory, Device.
    void upload_weights();
    /// Loads the weights if `check` accepts the expected bytes. Errors: InvalidArgument when they
    /// are loaded already; errors of `check`.
    void load_weights(const std::function<void(const EngineBytes&)>& check);
    /// Returns to the state before load_weights(). Errors: InvalidArgument when there is nothing to
    /// unload; errors of WeightUser::let_go.
    void unload_weights();
    /// Replaces the engine by one with other weights. The caller excludes other calls.
    void refit(std::shared_ptr<const Engine> engine);
    /// The same with an engine without weights: nothing runs before a refit. Errors: those of
    /// WeightUser::let_go.
    void take_weights_out(std::shared_ptr<const Engine> without);
    bool weights_out() const { return weights_out_ && engine_->weights_missing(); }
    /// Errors: InvalidArgument, with the way to restore the weights, where there are none.
    void check_weights() const;

    void add_user(WeightUser& user);
    void remove_user(WeightUser& user);
    /// Counts replaced engines: a context of an earlier one switches over.
    uint64_t generation() const { return generation_; }

    const std::vector<IoTensor>& tensors() const { return tensors_; }
    /// The index among tensors(). Errors: InvalidArgument with the nearest name.
    size_t find(const char* name) const;
    const IoTensor& tensor(const char* name) const { return tensors_[find(name)]; }

    // Weight streaming (streaming.cpp).

    /// Bytes of the weights that can be streamed; 0 unless the build allowed it.
    int64_t streamable_bytes() const;
    /// The streamable bytes that stay on the device.
    int64_t weight_budget() const;
    /// Errors: InvalidArgument for a negative number, and while contexts exist.
    void set_weight_budget(int64_t bytes);
    int64_t automatic_weight_budget();
    /// Activation memory through which weights are streamed; the largest of all profiles.
    int64_t streaming_scratch_bytes();

    /// At least 1: an engine without profiles has one, from its own shapes.
    int32_t profile_count() const;
    /// Errors: InvalidArgument.
    void check_profile_index(int32_t index) const;
    /// The profiles that shapes are checked against under this index: one, or none.
    std::span<const Profile> profiles_under(int32_t index) const;
    /// Open sizes are -1.
    Shape profile_shape(const IoTensor& input, int32_t index,
                        nvinfer1::OptProfileSelector select) const;
    /// The largest shapes of all inputs; nullopt when one is open.
    std::optional<std::vector<Shape>> largest_shapes(int32_t index) const;

    /// The first input with an open size; there must be one.
    const std::string& open_input(int32_t index) const;

    /// A context with its own plans and memory; contexts of equal options share the lowering.
    std::shared_ptr<Context> make_context(const RunOptions& options);
    /// The options of a context. `folder`: of the kernel cache; "" for none.
    CompileOptions compile_options(const RunOptions& options, const std::string& folder) const;
    /// Activation memory for a profile's largest shapes; 0 when they are open.
    int64_t activation_bytes(int32_t profile);
    /// The steps for the engine's own shapes.
    const std::vector<StepInfo>& steps();

private:
    struct Base {
        RunOptions options;
        std::string folder; // the process's folder at creation
        std::weak_ptr<const Context> context;
    };
    std::shared_ptr<const Context> base(const RunOptions& options);
    void upload();
    void list_tensors();
    void dismiss_users();
    void forget_contexts();

    std::shared_ptr<const Engine> engine_;
    BuildSettings settings_;
    Place place_;
    nvinfer1::IGpuAllocator* allocator_;
    std::shared_ptr<MemorySource> memory_; // the allocator's; null: the device's own
    nvinfer1::ILogger* logger_ = nullptr;
    std::shared_ptr<plan::PluginHost> plugins_;
    std::vector<IoTensor> tensors_;
    std::atomic<bool> weights_loaded_;
    std::mutex load_mutex_;
    EngineBytes expected_;                   // where weights are loaded later
    std::shared_ptr<const Engine> original_; // the engine of these bytes
    bool weights_out_ = false;               // by take_weights_out()
    std::vector<WeightUser*> users_;
    std::mutex users_mutex_;
    std::atomic<uint64_t> generation_{0};

    std::unique_ptr<ThreadPool> pool_;     // null: the process's
    std::optional<int64_t> weight_budget_; // nullopt: all weights stay on the device
    std::atomic<int64_t> contexts_{0};

    std::mutex mutex_;
    std::vector<Base> bases_;
    bool said_unused_ = false;                 // the warning about kernels of the engine
    std::shared_ptr<const void> uploaded_;     // weights on the GPU, which contexts share
    std::shared_ptr<const Context> last_base_; // kept while no context lives
    std::mutex plan_mutex_;
    std::vector<int64_t> activation_bytes_; // by profile; -1: not yet known
    std::vector<StepInfo> steps_;
};

} // namespace ingot::api
