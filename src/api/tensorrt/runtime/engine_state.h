// SPDX-License-Identifier: Apache-2.0
// EngineState: what an engine of the public API, its contexts and its inspectors share, so that any
// of them may be deleted first.
#pragma once

#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/runtime/place.h"
#include "api/tensorrt/runtime/read_engine.h"
#include "cache/runtime_cache.h"

#include <atomic>
#include <mutex>
#include <string_view>

namespace ingot::api {

/// An input or output, as the API counts them: inputs first.
struct IoTensor {
    std::string name;
    bool is_input = false;
    size_t index = 0; // among inputs, or among outputs
    Type type;
    const IoFormat* format = nullptr;
    std::string described; // type and format in words
};

/// How contexts run.
struct RunOptions {
    nvinfer1::DynamicShapesKernelSpecializationStrategy specialise =
        nvinfer1::DynamicShapesKernelSpecializationStrategy::kLAZY;
    nvinfer1::CudaGraphStrategy graphs = nvinfer1::CudaGraphStrategy::kDISABLED;
    std::shared_ptr<plan::RuntimeCache> cache; // null: the folder of the process
    RunPriority priority = RunPriority::Normal;

    bool operator==(const RunOptions&) const = default;
};

/// A context, which lets go of what it has of an engine's weights.
class WeightUser {
public:
    virtual ~WeightUser() = default;
    /// Waits for its run. Until there are weights again it has no plans. Errors: InvalidArgument
    /// while another thread uses it.
    virtual void let_go() = 0;
};

/// Thread safe.
class EngineState {
public:
    EngineState(std::shared_ptr<const Engine> engine, const Place& place,
                nvinfer1::IGpuAllocator* allocator, bool weights_loaded);

    const Engine& engine() const { return *engine_; }
    const Graph& graph() const { return engine_->graph(); }
    const EngineFacts& facts() const { return facts_; }
    /// The plugins that contexts use; null: the engine has none.
    void set_plugins(std::shared_ptr<plan::PluginHost> plugins) { plugins_ = std::move(plugins); }
    /// Contexts made from now on work with that many threads, the caller's included, at most.
    void set_threads(int32_t threads);
    /// Who is told what memory limits rule out; null: nobody.
    void set_logger(nvinfer1::ILogger* logger) { logger_ = logger; }
    const Place& place() const { return place_; }
    nvinfer1::IGpuAllocator* allocator() const { return allocator_; }
    bool weights_loaded() const { return weights_loaded_; }
    /// The bytes that load_weights() has to be given the same of: weights are loaded later.
    void expect_weights(EngineBytes bytes);
    /// From now on weights are loaded, if `check` finds no fault with the bytes expected. Errors:
    /// InvalidArgument when they are loaded already, or were loaded with the engine; what `check`
    /// throws.
    void load_weights(const std::function<void(const EngineBytes&)>& check);
    /// Back to the engine that was expected, before load_weights(). Errors: InvalidArgument when
    /// there is nothing to unload; what WeightUser::let_go throws.
    void unload_weights();
    /// Puts an engine of other weights in this one's place. No other call goes on meanwhile.
    void refit(std::shared_ptr<const Engine> engine);
    /// The same with an engine that has none: nothing runs before a refit. Errors: what
    /// WeightUser::let_go throws.
    void take_weights_out(std::shared_ptr<const Engine> without);
    bool weights_out() const { return weights_out_ && engine_->weights_missing(); }
    /// Errors: InvalidArgument, which says how weights come back, where there are none.
    void check_weights() const;

    void add_user(WeightUser& user);
    void remove_user(WeightUser& user);
    /// How many engines have stood here: contexts of an earlier one follow.
    uint64_t generation() const { return generation_; }

    const std::vector<IoTensor>& tensors() const { return tensors_; }
    /// Position among tensors(). Errors: InvalidArgument with the nearest name.
    size_t find(const char* name) const;
    const IoTensor& tensor(const char* name) const { return tensors_[find(name)]; }

    // Weight streaming (streaming.cpp).

    /// Bytes of the weights that can be streamed; 0 unless the build allowed it.
    int64_t streamable_bytes() const;
    /// Of them, how many lie on the device.
    int64_t weight_budget() const;
    /// Errors: InvalidArgument for a number below 0, and while there are contexts.
    void set_weight_budget(int64_t bytes);
    int64_t automatic_weight_budget();
    /// Activation memory in which weights pass, the most of all profiles.
    int64_t streaming_scratch_bytes();

    /// At least 1: an engine without profiles has one, of its own shapes.
    int32_t profile_count() const;
    /// Errors: InvalidArgument.
    void check_profile_index(int32_t index) const;
    /// The profiles that shapes are checked against under that one: it alone, or none.
    std::vector<Profile> profiles_under(int32_t index) const;
    /// -1 for sizes that the profile leaves open.
    Shape profile_shape(const IoTensor& input, int32_t index,
                        nvinfer1::OptProfileSelector select) const;
    /// All inputs' largest shapes; nullopt when one is open.
    std::optional<std::vector<Shape>> largest_shapes(int32_t index) const;

    /// The name of the first that is open; there is one.
    const std::string& open_input(int32_t index) const;

    /// Plans and memory of its own; lowering is shared with contexts of the same options.
    std::shared_ptr<Context> make_context(const RunOptions& options);
    /// Activation memory under a profile's largest shapes; 0 when they are open.
    int64_t activation_bytes(int32_t profile);
    /// Steps at the shapes that the engine is made for.
    const std::vector<StepInfo>& steps();

private:
    struct Base {
        RunOptions options;
        std::string folder; // of the process, when it was made
        std::weak_ptr<const Context> context;
    };
    std::shared_ptr<const Context> base(const RunOptions& options);
    CompileOptions compile_options(const RunOptions& options, const std::string& folder) const;
    void list_tensors();
    void dismiss_users();
    void forget_contexts();

    std::shared_ptr<const Engine> engine_;
    EngineFacts facts_;
    Place place_;
    nvinfer1::IGpuAllocator* allocator_;
    nvinfer1::ILogger* logger_ = nullptr;
    std::shared_ptr<plan::PluginHost> plugins_;
    std::vector<IoTensor> tensors_;
    std::atomic<bool> weights_loaded_;
    std::mutex load_mutex_;
    EngineBytes expected_;                   // where weights are loaded later
    std::shared_ptr<const Engine> original_; // and the engine of these bytes
    bool weights_out_ = false;               // take_weights_out() did it
    std::vector<WeightUser*> users_;
    std::mutex users_mutex_;
    std::atomic<uint64_t> generation_{0};

    std::unique_ptr<ThreadPool> pool_;     // null: the process's
    std::optional<int64_t> weight_budget_; // nullopt: all weights lie on the device
    std::atomic<int64_t> contexts_{0};

    std::mutex mutex_;
    std::vector<Base> bases_;
    std::shared_ptr<const Context> last_base_; // stays while no context lives
    std::mutex plan_mutex_;
    std::vector<int64_t> activation_bytes_; // by profile; -1: not known yet
    std::vector<StepInfo> steps_;
};

} // namespace ingot::api
