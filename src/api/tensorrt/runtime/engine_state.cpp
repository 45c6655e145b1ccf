// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/engine_state.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/network/formats.h"
#include "backends/cuda/options.h"
#include "backends/device_memory.h"
#include "base/error.h"
#include "engine/engine_code.h"
#include "engine/properties.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace ingot::api {

using Strategy = nvinfer1::DynamicShapesKernelSpecializationStrategy;

EngineState::EngineState(std::shared_ptr<const Engine> engine, const Place& place,
                         nvinfer1::IGpuAllocator* allocator, bool weights_loaded)
    : engine_(std::move(engine)), settings_(read_build_settings(*engine_)), place_(place),
      allocator_(allocator), memory_(memory_source(allocator)), weights_loaded_(weights_loaded) {
    list_tensors();
    activation_bytes_.assign(static_cast<size_t>(profile_count()), -1);
}

void EngineState::expect_weights(EngineBytes bytes) {
    expected_ = std::move(bytes);
    original_ = engine_;
}

void EngineState::load_weights(const std::function<void(const EngineBytes&)>& check) {
    std::scoped_lock lock(load_mutex_);
    require(!weights_loaded_, ErrorCode::InvalidArgument, "the weights are loaded already");
    check(expected_);
    upload();
    weights_loaded_ = true;
}

void EngineState::upload_weights() {
    std::scoped_lock lock(load_mutex_);
    if (weights_loaded_) {
        upload();
    }
}

void EngineState::upload() {
    // Arrays of other formats have a graph per context.
    bool plain = !settings_.streams_weights && engine_->formats().are_plain();
    if (place_.is_gpu && plain && !engine_->weights_missing()) {
        CompileOptions options = compile_options({}, "");
        options.profiles = engine_->profiles();
        std::shared_ptr<const void> uploaded;
        try {
            uploaded = ingot::upload_weights(*place_.backend, engine_->graph_ref(), options);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::OutOfMemory || e.code() == ErrorCode::Device ||
                e.code() == ErrorCode::Interrupted) {
                throw;
            }
            return; // a context says what the device cannot run
        }
        std::scoped_lock lock(mutex_);
        uploaded_ = std::move(uploaded);
    }
}

void EngineState::unload_weights() {
    std::scoped_lock lock(load_mutex_);
    require(original_ != nullptr, ErrorCode::InvalidArgument,
            "the weights came with the engine: call IRuntime::setDeferredWeightsLoading(true) "
            "before it is deserialised, or use createWeightsManager()");
    require(weights_loaded_, ErrorCode::InvalidArgument, "the weights are not loaded");
    dismiss_users();
    weights_loaded_ = false;
    weights_out_ = false;
    refit(original_);
}

void EngineState::take_weights_out(std::shared_ptr<const Engine> without) {
    dismiss_users();
    weights_out_ = true;
    refit(std::move(without));
}

void EngineState::check_weights() const {
    require(weights_loaded_, ErrorCode::InvalidArgument,
            "the weights are not loaded: call ICudaEngine::loadWeights() first");
    require(!weights_out(), ErrorCode::InvalidArgument,
            "the weights are unloaded: call IWeightsManager::restoreFromBuffer() first, or refit "
            "the engine");
    require(!engine_->weights_missing(), ErrorCode::InvalidArgument,
            "the engine was built without its weights (kSTRIP_PLAN, kEXCLUDE_WEIGHTS): refit it "
            "first, with createInferRefitter() or createParserRefitter()");
}

void EngineState::add_user(WeightUser& user) {
    std::scoped_lock lock(users_mutex_);
    users_.push_back(&user);
}

void EngineState::remove_user(WeightUser& user) {
    std::scoped_lock lock(users_mutex_);
    std::erase(users_, &user);
}

void EngineState::dismiss_users() {
    std::scoped_lock lock(users_mutex_);
    for (WeightUser* user : users_) {
        user->let_go();
    }
}

void EngineState::list_tensors() {
    const Graph& g = graph();
    auto add = [&](std::string name, bool is_input, size_t index, const Type& t) {
        const IoFormats& all = engine_->formats();
        const IoFormat& f = is_input ? all.input(index) : all.output(index);
        Tensor initial = is_input ? input_default(*engine_, index) : Tensor();
        tensors_.push_back(
            {std::move(name), is_input, index, t, &f, format_text(f, t.dtype), std::move(initial)});
    };
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        add(g.value_name(g.inputs()[i]), true, i, g.type(g.inputs()[i]));
    }
    for (size_t i = 0; i < engine_->result_count(); ++i) {
        add(g.output_names()[i], false, i, g.type(g.outputs()[i]));
    }
}

size_t EngineState::find(const char* name) const {
    require(name != nullptr, ErrorCode::InvalidArgument, "the name of the tensor is null");
    auto it = std::find_if(tensors_.begin(), tensors_.end(),
                           [name](const IoTensor& t) { return t.name == name; });
    if (it == tensors_.end()) {
        std::vector<std::string> names;
        for (const IoTensor& t : tensors_) {
            names.push_back(t.name);
        }
        std::string near = nearest(name, names);
        fail(ErrorCode::InvalidArgument, "there is no input or output '", name, "'",
             near.empty() ? str("; there are ", join(names, ", "))
                          : str(", did you mean '", near, "'?"));
    }
    return static_cast<size_t>(it - tensors_.begin());
}

int32_t EngineState::profile_count() const {
    return std::max(1, static_cast<int32_t>(engine_->profiles().size()));
}

void EngineState::check_profile_index(int32_t index) const {
    require(index >= 0 && index < profile_count(), ErrorCode::InvalidArgument, "profile ", index,
            " does not exist, the engine has ", profile_count());
}

std::span<const Profile> EngineState::profiles_under(int32_t index) const {
    std::span<const Profile> all = engine_->profiles();
    return all.empty() ? all : all.subspan(static_cast<size_t>(index), 1);
}

Shape EngineState::profile_shape(const IoTensor& input, int32_t index,
                                 nvinfer1::OptProfileSelector select) const {
    require(input.is_input, ErrorCode::InvalidArgument, "'", input.name,
            "' is an output: profiles have shapes of inputs only");
    check_profile_index(index);
    select = checked(select, "the selector");
    const std::vector<Profile>& all = engine_->profiles();
    const ShapeRange* range =
        all.empty() ? nullptr : all[static_cast<size_t>(index)].find(input.name);
    if (range != nullptr) {
        return select == nvinfer1::OptProfileSelector::kMIN   ? range->min
               : select == nvinfer1::OptProfileSelector::kOPT ? range->opt
                                                              : range->max;
    }
    Shape shape;
    for (const Dim& d : input.type.dims) {
        shape.push_back(d.as_const().value_or(-1));
    }
    return shape;
}

std::optional<std::vector<Shape>> EngineState::largest_shapes(int32_t index) const {
    std::vector<Shape> shapes;
    for (const IoTensor& t : tensors_) {
        if (!t.is_input) {
            continue;
        }
        shapes.push_back(profile_shape(t, index, nvinfer1::OptProfileSelector::kMAX));
        if (std::count(shapes.back().begin(), shapes.back().end(), -1) > 0) {
            return std::nullopt;
        }
    }
    return shapes;
}

const std::string& EngineState::open_input(int32_t index) const {
    auto it = std::find_if(tensors_.begin(), tensors_.end(), [&](const IoTensor& t) {
        Shape most =
            t.is_input ? profile_shape(t, index, nvinfer1::OptProfileSelector::kMAX) : Shape();
        return std::count(most.begin(), most.end(), -1) > 0;
    });
    require(it != tensors_.end(), ErrorCode::Internal, "every size is known");
    return it->name;
}

void EngineState::set_threads(int32_t threads) {
    auto cores = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
    pool_ = std::make_unique<ThreadPool>(std::min(threads, cores));
}

CompileOptions EngineState::compile_options(const RunOptions& options,
                                            const std::string& folder) const {
    CompileOptions o;
    auto& cuda = o.of<CudaOptions>();
    o.pool = pool_.get();
    cuda.specialise = options.specialise == Strategy::kLAZY    ? Specialise::Auto
                      : options.specialise == Strategy::kEAGER ? Specialise::Eager
                                                               : Specialise::None;
    cuda.record_graphs = options.graphs == nvinfer1::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE;
    cuda.recordings = options.recordings;
    cuda.record_first = options.record_first;
    cuda.kernel_cache = options.cache;
    cuda.priority = options.priority;
    cuda.timing_cache = timings_of(*engine_);
    if (cuda.timing_cache != nullptr) { // uses the build's timings; times nothing else
        cuda.tune = Tune::Full;
        cuda.tune_budget_ms = 0;
    }
    cuda.runtime_cache = folder;
    o.memory = memory_;
    cuda.tf32 = settings_.tf32;
    o.batch_invariant = settings_.batch_invariant;
    cuda.weight_budget = weight_budget_.value_or(-1);
    o.plugins = plugins_;
    o.workspace = settings_.workspace;
    cuda.shared_memory = settings_.shared_memory;
    o.on_limit = [logger = logger_](std::string_view text) {
        if (logger != nullptr) {
            logger->log(nvinfer1::ILogger::Severity::kINFO, std::string(text).c_str());
        }
    };
    return o;
}

void EngineState::refit(std::shared_ptr<const Engine> engine) {
    engine_ = std::move(engine);
    for (IoTensor& t : tensors_) {
        t.initial = t.is_input ? input_default(*engine_, t.index) : Tensor();
    }
    forget_contexts();
    ++generation_;
}

void EngineState::forget_contexts() {
    std::scoped_lock lock(mutex_, plan_mutex_);
    bases_.clear();
    last_base_ = nullptr;
    uploaded_ = nullptr;
    activation_bytes_.assign(activation_bytes_.size(), -1);
    steps_.clear();
}

std::shared_ptr<const Context> EngineState::base(const RunOptions& options) {
    std::string folder = cache_folder_option();
    std::scoped_lock lock(mutex_);
    std::erase_if(bases_, [](const Base& b) { return b.context.expired(); });
    for (const Base& b : bases_) {
        if (b.options == options && b.folder == folder) {
            if (auto context = b.context.lock()) {
                return last_base_ = context;
            }
        }
    }
    CompileOptions compile = compile_options(options, folder);
    std::string unused = unused_kernels(*engine_, *place_.backend);
    if (!unused.empty() && logger_ != nullptr) { // the application's logger is told, and once
        compile.kernels = std::make_shared<const KernelBinaries>();
        if (!std::exchange(said_unused_, true)) {
            logger_->log(nvinfer1::ILogger::Severity::kWARNING, unused.c_str());
        }
    }
    auto made = std::make_shared<const Context>(engine_, *place_.backend, compile);
    bases_.push_back({options, folder, made});
    return last_base_ = made;
}

std::shared_ptr<Context> EngineState::make_context(const RunOptions& options) {
    if (engine_->weights_missing()) {
        check_weights();
    }
    // The context keeps the base alive for later ones.
    std::shared_ptr<const Context> shared = base(options);
    ++contexts_;
    return {shared->sibling().release(), [shared, this](const Context* c) {
                delete c;
                --contexts_;
            }};
}

int64_t EngineState::activation_bytes(int32_t profile) {
    check_profile_index(profile);
    std::scoped_lock lock(plan_mutex_);
    int64_t& bytes = activation_bytes_[static_cast<size_t>(profile)];
    if (bytes < 0) {
        std::optional<std::vector<Shape>> shapes = largest_shapes(profile);
        if (!shapes) {
            fail(ErrorCode::InvalidArgument, "no profile says how large input '",
                 open_input(profile),
                 "' can be, so that nothing bounds the memory: build with an optimisation profile, "
                 "or ask IExecutionContext::updateDeviceMemorySizeForShapes() for the shapes that "
                 "are set");
        }
        bytes = make_context({})->activation_bytes(*shapes);
    }
    return bytes;
}

const std::vector<StepInfo>& EngineState::steps() {
    std::scoped_lock lock(plan_mutex_);
    if (steps_.empty()) {
        const Graph& g = graph();
        std::vector<Shape> shapes;
        for (size_t i = 0; i < g.inputs().size(); ++i) {
            shapes.push_back(default_shape(g, i, engine_->profiles()));
        }
        std::shared_ptr<Context> context = make_context({});
        context->prepare(shapes);
        steps_ = context->execution().steps();
    }
    return steps_;
}

} // namespace ingot::api
