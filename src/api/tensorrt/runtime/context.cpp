// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/context.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/unused.h"
#include "base/checked.h"
#include "ir/rewrite.h"
#include "ops/collective.h"
#include "ops/evaluator.h"
#include "ops/size_bounds.h"

#include <algorithm>
#include <limits>

namespace ingot::api {

using nvinfer1::ExecutionContextAllocationStrategy;
using nvinfer1::ProfilingVerbosity;
using nvinfer1::TensorIOMode;

namespace {

constexpr int64_t memory_alignment = 256;

/// The address of activations until the application provides memory.
std::byte* no_memory() {
    static std::byte none{};
    return &none;
}

/// The amount of detail of a verbosity.
int rank_of(ProfilingVerbosity v) {
    return v == ProfilingVerbosity::kNONE ? 0 : v == ProfilingVerbosity::kLAYER_NAMES_ONLY ? 1 : 2;
}

Ranges ranges_of(ProfilingVerbosity v) {
    return v == ProfilingVerbosity::kNONE               ? Ranges::None
           : v == ProfilingVerbosity::kLAYER_NAMES_ONLY ? Ranges::Names
                                                        : Ranges::Detailed;
}

} // namespace

InUse::InUse(std::atomic<std::thread::id>& user) : user_(&user) {
    std::thread::id nobody;
    if (!user.compare_exchange_strong(nobody, std::this_thread::get_id(),
                                      std::memory_order_acquire)) {
        require(nobody == std::this_thread::get_id(), ErrorCode::InvalidArgument,
                "this context is in use by another thread; give each thread a context of its own");
        user_ = nullptr;
    }
}

InUse::~InUse() {
    if (user_ != nullptr) {
        user_->store({}, std::memory_order_release);
    }
}

std::unique_ptr<ContextObject> make_context(const std::shared_ptr<EngineState>& state,
                                            const RuntimeConfig& config, const Report& report) {
    MemoryChange change(report, state->place().backend, "IExecutionContext creation");
    return std::make_unique<ContextObject>(state, config, report);
}

ContextObject::ContextObject(std::shared_ptr<EngineState> state, const RuntimeConfig& config,
                             const Report& report)
    : state_(std::move(state)), report_(report), engine_(state_, report), config_(config.clone()),
      context_(state_->make_context(config.options())), generation_(state_->generation()),
      nvtx_(state_->build_settings().verbosity) {
    const Graph& g = state_->graph();
    shapes_.resize(g.inputs().size());
    addresses_.assign(state_->tensors().size(), nullptr);
    allocators_.assign(state_->engine().result_count(), nullptr);
    inputs_.resize(g.inputs().size());
    outputs_.resize(g.outputs().size());
    for (size_t i = allocators_.size(); i < outputs_.size(); ++i) {
        outputs_[i].own = true;
    }
    memory_ = [this](size_t i, const Shape&, int64_t bytes) { return output_memory(i, bytes); };
    forget_shapes();
    change_settings([&](RunSettings& s) { s.ranges = ranges_of(nvtx_); });
    switch (config.getExecutionContextAllocationStrategy()) {
    case ExecutionContextAllocationStrategy::kSTATIC:
        for (int32_t i = state_->profile_count(); i-- > 0;) {
            reserve_memory(i);
        }
        break;
    case ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE:
        reserve_memory(0);
        break;
    case ExecutionContextAllocationStrategy::kUSER_MANAGED:
        change_settings([](RunSettings& s) { s.activations = {no_memory(), 0}; });
        break;
    }
    log_memory();
    state_->add_user(*this);
}

void ContextObject::log_memory() const {
    MemoryUse use = context_->execution().memory_use();
    bool is_gpu = state_->place().is_gpu;
    auto packed = static_cast<int64_t>(context_->executable().packed_bytes());
    log_bytes(report_, "Total Host Persistent Memory", is_gpu ? 0 : packed + use.persistent);
    log_bytes(report_, "Total Device Persistent Memory", is_gpu ? use.persistent : 0);
    log_bytes(report_, "Max Scratch Memory", use.scratch);
    log_bytes(report_, "Total Activation Memory", use.activations);
}

ContextObject::~ContextObject() noexcept {
    state_->remove_user(*this);
    // The caller must have finished the runs on its streams.
    context_.reset();
}

void ContextObject::let_go() {
    InUse held(user_);
    if (context_ != nullptr) {
        static_cast<void>(context_->execution().wait());
        context_ = nullptr;
    }
}

void ContextObject::follow_refit() {
    if (context_ != nullptr && generation_ == state_->generation()) {
        return;
    }
    generation_ = state_->generation();
    context_ = nullptr; // returns its memory first
    if (state_->engine().weights_missing()) {
        state_->check_weights();
    }
    context_ = state_->make_context(config_->options());
    RunSettings settings = settings_;
    settings.cache_limit = std::min(settings.cache_limit, context_->execution().most_cache_bytes());
    context_->execution().configure(std::move(settings));
    if (settings_.activations.data == nullptr) {
        reserve_memory(profile_);
    }
}

void ContextObject::reserve_memory(int32_t profile) {
    std::optional<std::vector<Shape>> largest = state_->largest_shapes(profile);
    if (largest && context_ != nullptr && state_->weights_loaded()) {
        context_->prepare(*largest);
    }
}

void ContextObject::forget_shapes() {
    const Graph& g = state_->graph();
    for (size_t i = 0; i < shapes_.size(); ++i) {
        shapes_[i] = as_const(g.type(g.inputs()[i]).dims);
    }
    symbols_.reset();
}

void ContextObject::setName(const char* name) noexcept {
    call("IExecutionContext::setName", 0, [&] {
        name_ = name == nullptr ? "" : name;
        return 0;
    });
}

void ContextObject::setDeviceMemory(void* memory) noexcept {
    setDeviceMemoryV2(memory, engine_.getDeviceMemorySizeV2());
}

void ContextObject::setDeviceMemoryV2(void* memory, int64_t size) noexcept {
    call("IExecutionContext::setDeviceMemoryV2", 0, [&] {
        require(config_->getExecutionContextAllocationStrategy() ==
                    ExecutionContextAllocationStrategy::kUSER_MANAGED,
                ErrorCode::InvalidArgument,
                "the context has memory of its own: create it with kUSER_MANAGED");
        require(size >= 0, ErrorCode::InvalidArgument, "the memory has ", size, " bytes");
        require(reinterpret_cast<uintptr_t>(memory) % memory_alignment == 0,
                ErrorCode::InvalidArgument, "the memory has to be aligned to ", memory_alignment,
                " bytes");
        bool given = memory != nullptr;
        change_settings([&](RunSettings& s) {
            s.activations = {given ? static_cast<std::byte*>(memory) : no_memory(),
                             given ? size : 0};
        });
        return 0;
    });
}

size_t ContextObject::updateDeviceMemorySizeForShapes() noexcept {
    return call("IExecutionContext::updateDeviceMemorySizeForShapes", size_t{0}, [&] {
        follow_refit();
        int64_t bytes = context_->activation_bytes(input_shapes());
        return static_cast<size_t>(bytes);
    });
}

bool ContextObject::setOptimizationProfileAsync(int32_t profile, cudaStream_t) noexcept {
    return call("IExecutionContext::setOptimizationProfileAsync", false, [&] {
        state_->check_profile_index(profile);
        if (config_->getExecutionContextAllocationStrategy() ==
                ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE &&
            context_ != nullptr) {
            context_->execution().give_back_memory(); // of the previous profile
            reserve_memory(profile);
            log_memory();
        }
        profile_ = profile;
        forget_shapes();
        return true;
    });
}

bool ContextObject::setInputShape(const char* name, const nvinfer1::Dims& dims) noexcept {
    return call("IExecutionContext::setInputShape", false, [&] {
        const IoTensor& t = state_->tensor(name);
        require(t.is_input, ErrorCode::InvalidArgument, "'", t.name,
                "' is an output: its shape follows from the inputs'");
        Shape shape = numbers_of(dims, str("the shape of input '", t.name, "'"));
        for (size_t i = 0; i < shape.size(); ++i) {
            require(shape[i] >= 0, ErrorCode::InvalidArgument, "input '", t.name, "' dimension ", i,
                    " is ", shape[i], ", expected a size");
        }
        check_shape(state_->graph(), t.index, shape, state_->profiles_under(profile_));
        shapes_[t.index] = std::move(shape);
        symbols_.reset();
        return true;
    });
}

const Symbols& ContextObject::symbols() const {
    if (symbols_) {
        return *symbols_;
    }
    Symbols known;
    const Graph& g = state_->graph();
    for (size_t i = 0; i < shapes_.size(); ++i) {
        if (shapes_[i]) {
            Value v = g.inputs()[i];
            bind_symbols(g.type(v).dims, *shapes_[i], known, str("input '", g.value_name(v), "'"));
        }
    }
    return symbols_.emplace(std::move(known));
}

Shape ContextObject::shape_of(const IoTensor& t) const {
    if (t.is_input && shapes_[t.index]) {
        return *shapes_[t.index];
    }
    static const Symbols none;
    const Symbols& known = t.is_input ? none : symbols();
    Shape shape;
    for (const Dim& d : t.type.dims) {
        shape.push_back(d.try_eval(known).value_or(-1));
    }
    return shape;
}

std::vector<Shape> ContextObject::input_shapes() const {
    std::vector<Shape> all;
    for (size_t i = 0; i < shapes_.size(); ++i) {
        require(shapes_[i].has_value(), ErrorCode::InvalidArgument, "the shape of input '",
                state_->tensors()[i].name, "' is not set: call setInputShape()");
        all.push_back(*shapes_[i]);
    }
    return all;
}

std::vector<StepInfo> ContextObject::steps() const {
    InUse held(user_);
    const_cast<ContextObject*>(this)->follow_refit();
    context_->prepare(input_shapes());
    return context_->execution().steps();
}

nvinfer1::Dims ContextObject::getTensorShape(const char* name) const noexcept {
    return call("IExecutionContext::getTensorShape", no_dims(),
                [&] { return api_dims(shape_of(state_->tensor(name))); });
}

nvinfer1::Dims ContextObject::getTensorStrides(const char* name) const noexcept {
    return call("IExecutionContext::getTensorStrides", no_dims(), [&] {
        const IoTensor& t = state_->tensor(name);
        return api_dims(format_strides(*t.format, shape_of(t)));
    });
}

bool ContextObject::allInputDimensionsSpecified() const noexcept {
    return call("IExecutionContext::allInputDimensionsSpecified", false, [&] {
        return std::all_of(shapes_.begin(), shapes_.end(),
                           [](const auto& s) { return s.has_value(); });
    });
}

int32_t ContextObject::inferShapes(int32_t most, const char** names) noexcept {
    return call("IExecutionContext::inferShapes", -1, [&] {
        require(most >= 0 && (most == 0 || names != nullptr), ErrorCode::InvalidArgument,
                "there is no room for ", most, " names");
        int32_t missing = 0;
        for (size_t i = 0; i < shapes_.size(); ++i) {
            if (!shapes_[i]) {
                if (missing < most) {
                    names[missing] = state_->tensors()[i].name.c_str();
                }
                ++missing;
            }
        }
        static_cast<void>(symbols());
        return missing;
    });
}

void ContextObject::set_address(const char* name, void* data, TensorIOMode mode) {
    size_t i = state_->find(name);
    const IoTensor& t = state_->tensors()[i];
    require(mode == TensorIOMode::kNONE || t.is_input == (mode == TensorIOMode::kINPUT),
            ErrorCode::InvalidArgument, "'", t.name,
            t.is_input ? "' is an input" : "' is an output");
    addresses_[i] = data;
}

bool ContextObject::setTensorAddress(const char* name, void* data) noexcept {
    return call("IExecutionContext::setTensorAddress", false, [&] {
        set_address(name, data, TensorIOMode::kNONE);
        return true;
    });
}

bool ContextObject::setInputTensorAddress(const char* name, const void* data) noexcept {
    return call("IExecutionContext::setInputTensorAddress", false, [&] {
        set_address(name, const_cast<void*>(data), TensorIOMode::kINPUT);
        return true;
    });
}

bool ContextObject::setOutputTensorAddress(const char* name, void* data) noexcept {
    return call("IExecutionContext::setOutputTensorAddress", false, [&] {
        set_address(name, data, TensorIOMode::kOUTPUT);
        return true;
    });
}

const void* ContextObject::getTensorAddress(const char* name) const noexcept {
    return call("IExecutionContext::getTensorAddress", static_cast<const void*>(nullptr),
                [&]() -> const void* { return addresses_[state_->find(name)]; });
}

void* ContextObject::getOutputTensorAddress(const char* name) const noexcept {
    return call("IExecutionContext::getOutputTensorAddress", static_cast<void*>(nullptr), [&] {
        size_t i = state_->find(name);
        require(!state_->tensors()[i].is_input, ErrorCode::InvalidArgument, "'", name,
                "' is an input");
        return addresses_[i];
    });
}

bool ContextObject::setOutputAllocator(const char* name,
                                       nvinfer1::IOutputAllocator* allocator) noexcept {
    return call("IExecutionContext::setOutputAllocator", false, [&] {
        const IoTensor& t = state_->tensor(name);
        require(!t.is_input, ErrorCode::InvalidArgument, "'", t.name, "' is an input");
        allocators_[t.index] = allocator;
        return true;
    });
}

nvinfer1::IOutputAllocator* ContextObject::getOutputAllocator(const char* name) const noexcept {
    return call("IExecutionContext::getOutputAllocator",
                static_cast<nvinfer1::IOutputAllocator*>(nullptr), [&] {
                    const IoTensor& t = state_->tensor(name);
                    require(!t.is_input, ErrorCode::InvalidArgument, "'", t.name, "' is an input");
                    return allocators_[t.index];
                });
}

int64_t ContextObject::getMaxOutputSize(const char* name) const noexcept {
    return call("IExecutionContext::getMaxOutputSize", int64_t{-1}, [&] {
        const IoTensor& t = state_->tensor(name);
        require(!t.is_input, ErrorCode::InvalidArgument, "'", t.name, "' is an input");
        return most_bytes(t).value_or(-1);
    });
}

std::optional<int64_t> ContextObject::most_bytes(const IoTensor& t) const {
    Bounds known;
    for (const auto& [name, size] : symbols()) {
        known[name] = {size, size};
    }
    SymbolSet open = input_symbols(state_->graph());
    if (std::any_of(open.begin(), open.end(),
                    [&](const std::string& s) { return !known.contains(s); })) {
        return std::nullopt;
    }
    known = size_bounds(state_->graph(), std::move(known));
    Shape most;
    for (const Dim& d : t.type.dims) {
        int64_t high = d.bounds(known).high;
        if (high == INT64_MAX) {
            return std::nullopt;
        }
        most.push_back(std::max<int64_t>(high, 0));
    }
    int64_t elements = 1;
    for (int64_t size : storage_shape(*t.format, most)) {
        std::optional<int64_t> product = checked_mul(elements, size);
        if (!product) {
            return std::nullopt;
        }
        elements = *product;
    }
    std::optional<int64_t> bits = checked_mul(elements, int64_t{bit_width(t.type.dtype)});
    return bits ? std::optional(static_cast<int64_t>(byte_size(t.type.dtype, elements)))
                : std::nullopt;
}

bool ContextObject::setInputConsumedEvent(cudaEvent_t event) noexcept {
    return call("IExecutionContext::setInputConsumedEvent", false, [&] {
        change_settings([&](RunSettings& s) { s.inputs_event = event; });
        if (event != nullptr && !state_->place().is_gpu) {
            log_unused(report_, "IExecutionContext::setInputConsumedEvent", false,
                       "the engine runs on the CPU: inputs are free when enqueueV3() returns");
        }
        return true;
    });
}

bool ContextObject::setTemporaryStorageAllocator(nvinfer1::IGpuAllocator* allocator) noexcept {
    return call("IExecutionContext::setTemporaryStorageAllocator", false, [&] {
        change_settings([&](RunSettings& s) { s.memory = memory_source(allocator); });
        storage_allocator_ = allocator;
        return true;
    });
}

bool ContextObject::setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept {
    return call("IExecutionContext::setNvtxVerbosity", false, [&] {
        ProfilingVerbosity most = state_->build_settings().verbosity;
        require(rank_of(checked(verbosity, "the verbosity")) <= rank_of(most),
                ErrorCode::InvalidArgument, "the verbosity is ", static_cast<int32_t>(verbosity),
                ", the engine was built with ", static_cast<int32_t>(most));
        change_settings([&](RunSettings& s) { s.ranges = ranges_of(verbosity); });
        nvtx_ = verbosity;
        if (verbosity != ProfilingVerbosity::kNONE && !state_->place().is_gpu) {
            log_unused(report_, "IExecutionContext::setNvtxVerbosity", false,
                       "the engine runs on the CPU, where NVTX is told nothing");
        }
        return true;
    });
}

void ContextObject::setPersistentCacheLimit(size_t size) noexcept {
    call("IExecutionContext::setPersistentCacheLimit", 0, [&] {
        if (!state_->place().is_gpu) {
            report_.log(nvinfer1::ILogger::Severity::kWARNING,
                        "IExecutionContext::setPersistentCacheLimit: the engine runs on the CPU, "
                        "whose cache cannot be divided; the limit stays 0");
            return 0;
        }
        constexpr auto most = static_cast<size_t>(std::numeric_limits<int64_t>::max());
        change_settings(
            [&](RunSettings& s) { s.cache_limit = static_cast<int64_t>(std::min(size, most)); });
        return 0;
    });
}

void ContextObject::setAuxStreams(cudaStream_t*, int32_t count) noexcept {
    if (count > 0) {
        report_.log(nvinfer1::ILogger::Severity::kWARNING,
                    "IExecutionContext::setAuxStreams: the engine uses one stream; the others are "
                    "not used");
    }
}

bool ContextObject::isStreamCapturable(cudaStream_t stream) const noexcept {
    return call("IExecutionContext::isStreamCapturable", false, [&] {
        bool waits = (profiler_ != nullptr && emits_profile_) || debug_sync_ ||
                     (listener_ != nullptr && debug_unfused_);
        bool known = std::all_of(shapes_.begin(), shapes_.end(),
                                 [](const auto& s) { return s.has_value(); });
        return stream != nullptr && !waits && known && context_ != nullptr &&
               generation_ == state_->generation() && context_->capturable(input_shapes());
    });
}

bool ContextObject::setCommunicator(void* communicator) noexcept {
    return call("IExecutionContext::setCommunicator", false, [&] {
        require(has_collectives(state_->graph()), ErrorCode::Unsupported,
                "the engine has no collective layers");
        follow_refit();
        change_settings([&](RunSettings& s) { s.communicator = communicator; });
        return true;
    });
}

} // namespace ingot::api
