// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/compute.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ingot::ort {

namespace nv = nvinfer1;

namespace {

/// The memory of tensors without elements.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
alignas(256) std::byte nothing[256];

bool same(const nv::Dims& a, const nv::Dims& b) {
    return a.nbDims == b.nbDims &&
           std::equal(a.d, a.d + std::max(a.nbDims, 0), b.d, b.d + std::max(b.nbDims, 0));
}

bool is_known(const nv::Dims& d) {
    return d.nbDims >= 0 && std::all_of(d.d, d.d + d.nbDims, [](int64_t v) { return v >= 0; });
}

std::string text_of(const nv::Dims& d) {
    return str(std::span<const int64_t>(d.d, static_cast<size_t>(std::max(d.nbDims, 0))));
}

} // namespace

NodeCompute::NodeCompute(const Host& host, std::shared_ptr<const LoadedEngine> engine,
                         NodeBinding binding, std::shared_ptr<RunSettings> settings,
                         std::unique_ptr<RuntimeCache> cache, std::shared_ptr<DeviceMemory> device,
                         std::shared_ptr<ScratchPool> scratch)
    : host_(host), device_(std::move(device)), scratch_(std::move(scratch)),
      settings_(std::move(settings)), cache_(std::move(cache)), engine_(std::move(engine)),
      binding_(std::move(binding)),
      idle_(static_cast<size_t>(settings_->options.ingot_max_graphs)) {
    ort_version_supported = host.version;
    CreateState = create_state;
    Compute = compute;
    ReleaseState = release_state;
    profiles_ = engine_->engine->getNbOptimizationProfiles();
    for (const auto& [name, index] : binding_.inputs) {
        nv::Dims most =
            engine_->engine->getProfileShape(name.c_str(), 0, nv::OptProfileSelector::kMAX);
        nv::Dims declared = engine_->engine->getTensorShape(name.c_str());
        for (int32_t d = 0; d < most.nbDims; ++d) {
            has_profiles_ = has_profiles_ || (declared.d[d] < 0 && most.d[d] >= 0);
        }
    }
    engine_->logger->take_errors(""); // about inputs without limits
    if (settings_->profile != nullptr) {
        subgraph_ = settings_->profile->add_subgraph(binding_.what);
    }
    streams_ = engine_->engine->getStreamableWeightsSize() > 0;
    configure();
    give_back(take()); // fails here rather than in the first run
    end_run();
}

std::unique_ptr<nv::IRuntimeConfig> NodeCompute::make_config(bool records_graphs) {
    std::unique_ptr<nv::IRuntimeConfig> out(engine_->engine->createRuntimeConfig());
    if (out == nullptr) {
        failed("contexts cannot be configured");
    }
    if (records_graphs) {
        out->setCudaGraphStrategy(nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
        limit_graphs(*out);
    }
    if (scratch_.pool() != nullptr) {
        out->setExecutionContextAllocationStrategy(
            nv::ExecutionContextAllocationStrategy::kUSER_MANAGED);
    }
    setPriority(*out, settings_->low_priority ? Priority::kLOW : Priority::kNORMAL);
    if (cache_ != nullptr) {
        cache_->attach(*out);
    }
    return out;
}

/// All nodes of the session keep ingot_max_graphs together.
void NodeCompute::limit_graphs(nv::IRuntimeConfig& config) {
    auto most = static_cast<int32_t>(settings_->options.ingot_max_graphs);
    std::unique_ptr<nv::IRuntimeConfig>& shared = settings_->graph_limit;
    if (shared == nullptr) {
        shared.reset(engine_->engine->createRuntimeConfig());
        if (shared == nullptr || !setGraphLimit(*shared, most)) {
            shared.reset();
            failed("the graphs cannot be limited");
        }
    }
    if (!setGraphLimit(config, most, shared.get())) {
        failed("the graphs cannot be limited");
    }
}

/// For contexts that are made from here on.
void NodeCompute::configure() {
    std::lock_guard<std::mutex> lock(settings_->mutex);
    config_ = make_config(false);
    if (settings_->options.enable_cuda_graph && settings_->profile == nullptr) {
        graph_config_ = make_config(true);
    }
    if (streams_) {
        int64_t streamable = engine_->engine->getStreamableWeightsSize();
        int64_t bytes = settings_->budget
                            .bytes(streamable, engine_->engine->getWeightStreamingAutomaticBudget())
                            .value_or(streamable);
        if (!engine_->engine->setWeightStreamingBudgetV2(bytes)) {
            failed("the budget of streamed weights cannot be set");
        }
    }
    budget_changes_ = settings_->changes;
}

OrtStatus* NodeCompute::create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext*,
                                     void** state) {
    *state = self;
    return nullptr;
}

void NodeCompute::release_state(OrtNodeComputeInfo*, void*) {}

OrtStatus* NodeCompute::compute(OrtNodeComputeInfo* self, void*, OrtKernelContext* kernel) {
    auto& me = *static_cast<NodeCompute*>(self);
    return guard(me.host_, [&] {
        with_place([&] { return str("running ", me.binding_.what); }, [&] { me.run(kernel); });
    });
}

void NodeCompute::run(OrtKernelContext* kernel) {
    if (device_ != nullptr) {
        device_->require_alive();
    }
    try {
        struct Run {
            NodeCompute& node;
            std::unique_ptr<RunContext> c = node.take();
            explicit Run(NodeCompute& n) : node(n) {}
            Run(const Run&) = delete;
            Run& operator=(const Run&) = delete;
            ~Run() {
                c.reset(); // null, or failed: it is not used again
                node.end_run();
            }
        } running(*this);
        run(*running.c, kernel);
        give_back(std::move(running.c));
    } catch (...) {
        const char* cause = device_ == nullptr ? nullptr : getDeviceError(*engine_->engine);
        if (cause != nullptr) {
            device_->note_lost(cause);
        }
        throw;
    }
}

void NodeCompute::failed(const char* otherwise) {
    fail(ErrorCode::Device, engine_->logger->take_errors(otherwise));
}

std::unique_ptr<RunContext> NodeCompute::take() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (budget_changes_ != settings_->changes) {
        if (streams_ && running_ > 0) { // a budget can be set only without contexts
            none_running_.wait(lock);
        } else {
            idle_.clear();
            configure();
        }
    }
    std::optional<int64_t> graph;
    if (graph_config_ != nullptr && settings_->run_options().graph >= 0) {
        graph = settings_->run_options().graph;
    }
    std::unique_ptr<RunContext> c = idle_.take(graph);
    if (c == nullptr) {
        c = make_context(graph);
    }
    ++running_;
    return c;
}

void NodeCompute::end_run() noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) {
        none_running_.notify_all();
    }
}

std::unique_ptr<RunContext> NodeCompute::make_context(std::optional<int64_t> graph) {
    auto c = std::make_unique<RunContext>();
    c->changes = budget_changes_;
    c->graph = graph;
    nv::IRuntimeConfig& config = graph ? *graph_config_ : *config_;
    c->context.reset(engine_->engine->createExecutionContext(&config));
    if (c->context == nullptr) {
        failed("a context cannot be made");
    }
    c->shapes.assign(binding_.inputs.size(), nv::Dims{-1, {}});
    c->given.resize(binding_.inputs.size());
    return c;
}

void NodeCompute::give_back(std::unique_ptr<RunContext> c) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (c->captured.memory() != nullptr) {
        captured_.push_back(std::move(c));
    } else if (c->changes == settings_->changes) {
        idle_.give(std::move(c));
    }
}

/// As long as somebody wants the times.
void NodeCompute::time_layers(RunContext& c) const {
    bool wanted = settings_->profile != nullptr || settings_->profilers->any();
    if (wanted == (c.times != nullptr)) {
        return;
    }
    std::unique_ptr<LayerTimes> before = std::move(c.times);
    c.times = wanted ? std::make_unique<LayerTimes>() : nullptr;
    c.context->setProfiler(c.times.get());
}

void NodeCompute::run(RunContext& c, OrtKernelContext* kernel) {
    time_layers(c);
    set_inputs(c, kernel);
    if (!c.shapes_known) {
        learn_outputs(c);
    }
    set_outputs(c, kernel);
    auto start = std::chrono::steady_clock::now();
    enqueue(c, kernel);
    if (c.times != nullptr) {
        TimedRun run{binding_.what, gettid(), start, c.times->take()};
        if (settings_->profile != nullptr) {
            settings_->profile->add_run(subgraph_, run.layers);
        }
        settings_->profilers->add(run);
    }
}

void NodeCompute::enqueue(RunContext& c, OrtKernelContext* kernel) {
    void* stream = nullptr;
    if (device_ != nullptr) {
        host_.check(host_.api->KernelContext_GetGPUComputeStream(kernel, &stream));
    }
    ScratchPool::Lease scratch = give_scratch(c, stream);
    void* given = device_ == nullptr ? nullptr : device_->engine_stream(stream);
    if (!c.context->enqueueV3(static_cast<cudaStream_t>(given))) {
        failed("the run failed");
    }
    finish_outputs(c, kernel, stream);
    if (scratch.is_captured()) {
        c.captured = std::move(scratch); // nobody knows when the graph runs
    }
}

ScratchPool::Lease NodeCompute::give_scratch(RunContext& c, void* stream) {
    if (scratch_.pool() == nullptr) {
        return {};
    }
    ScratchPool::Lease out = scratch_.pool()->take(c.scratch_bytes, stream, c.scratch);
    if (out.memory() != c.scratch || out.bytes() != c.scratch_given) {
        void* memory = out.memory() == nullptr ? nullptr : device_->engine_address(out.memory());
        c.context->setDeviceMemoryV2(memory, static_cast<int64_t>(out.bytes()));
        c.scratch = out.memory();
        c.scratch_given = out.bytes();
    }
    return out;
}

bool NodeCompute::fits(int32_t profile, std::span<const GivenInput> given) const {
    for (size_t i = 0; i < given.size(); ++i) {
        const nv::Dims& shape = given[i].shape;
        const char* name = binding_.inputs[i].first.c_str();
        nv::Dims least =
            engine_->engine->getProfileShape(name, profile, nv::OptProfileSelector::kMIN);
        nv::Dims most =
            engine_->engine->getProfileShape(name, profile, nv::OptProfileSelector::kMAX);
        for (int32_t d = 0; d < shape.nbDims && d < least.nbDims; ++d) {
            if (shape.d[d] < least.d[d] || shape.d[d] > most.d[d]) {
                return false;
            }
        }
    }
    return true;
}

void NodeCompute::outside(std::span<const GivenInput> given, std::optional<int32_t> profile) const {
    std::string text;
    for (size_t i = 0; i < given.size(); ++i) {
        const char* name = binding_.inputs[i].first.c_str();
        const nv::Dims& shape = given[i].shape;
        for (int32_t d = 0; d < shape.nbDims; ++d) {
            std::string limits;
            bool ever = false;
            for (int32_t p = profile.value_or(0); p < (profile ? *profile + 1 : profiles_); ++p) {
                int64_t least =
                    engine_->engine->getProfileShape(name, p, nv::OptProfileSelector::kMIN).d[d];
                int64_t most =
                    engine_->engine->getProfileShape(name, p, nv::OptProfileSelector::kMAX).d[d];
                ever = ever || (shape.d[d] >= least && shape.d[d] <= most);
                limits +=
                    str(limits.empty() ? "" : ", ", least, " to ", most, " (profile ", p, ")");
            }
            if (!ever) {
                text += str(text.empty() ? "" : "; ", "input '", name, "' has size ", shape.d[d],
                            " in dimension ", d, ", expected ", limits);
            }
        }
    }
    fail(ErrorCode::InvalidArgument,
         text.empty() ? std::string("no profile fits the shapes of all inputs together") : text,
         "; give other shapes, or add a profile (nv_profile_min_shapes, nv_profile_opt_shapes, "
         "nv_profile_max_shapes)");
}

/// The profile that the run names; else the present one if it fits, else the first that fits.
void NodeCompute::choose_profile(RunContext& c) {
    int32_t chosen = c.profile;
    if (std::optional<int64_t> named = settings_->run_options().profile) {
        require(*named >= 0 && *named < profiles_, ErrorCode::InvalidArgument,
                "nv_profile_index is ", *named, ", but the engine has ", profiles_,
                " profiles, counted from 0");
        chosen = static_cast<int32_t>(*named);
        if (!fits(chosen, c.given)) {
            outside(c.given, chosen);
        }
    } else if (!fits(chosen, c.given)) {
        for (chosen = 0; chosen < profiles_ && !fits(chosen, c.given);) {
            ++chosen;
        }
        if (chosen == profiles_) {
            outside(c.given, std::nullopt);
        }
    }
    if (chosen != c.profile) {
        if (!c.context->setOptimizationProfileAsync(chosen, nullptr)) {
            failed("the profile cannot be chosen");
        }
        c.profile = chosen;
        c.shapes.assign(c.shapes.size(), nv::Dims{-1, {}});
        c.shapes_known = false;
    }
}

void NodeCompute::set_inputs(RunContext& c, OrtKernelContext* kernel) {
    for (size_t i = 0; i < binding_.inputs.size(); ++i) {
        const auto& [name, index] = binding_.inputs[i];
        GivenInput& in = c.given[i];
        host_.check(host_.api->KernelContext_GetInput(kernel, index, &in.value));
        require(in.value != nullptr, ErrorCode::InvalidArgument, "input '", name, "' is missing");
        read_tensor(host_, in.value, in.tensor);
        const std::vector<int64_t>& dims = in.tensor.dims;
        require(dims.size() <= nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument, "input '", name,
                "' has rank ", dims.size(), ", expected at most ", nv::Dims::MAX_DIMS);
        in.shape.nbDims = static_cast<int32_t>(dims.size());
        std::copy(dims.begin(), dims.end(), in.shape.d);
    }
    if (has_profiles_) {
        choose_profile(c);
    }
    for (size_t i = 0; i < binding_.inputs.size(); ++i) {
        const std::string& name = binding_.inputs[i].first;
        const GivenInput& in = c.given[i];
        if (!same(c.shapes[i], in.shape)) {
            c.shapes_known = false;
            c.shapes[i] = nv::Dims{-1, {}};
            if (!c.context->setInputShape(name.c_str(), in.shape)) {
                failed(str("input '", name, "' cannot be ", text_of(in.shape)).c_str());
            }
            c.shapes[i] = in.shape;
        }
        const void* data = engine_address(in.value, in.tensor.data, in.tensor.bytes, name);
        if (!c.context->setInputTensorAddress(name.c_str(), data)) {
            failed("an address cannot be set");
        }
    }
}

void NodeCompute::learn_outputs(RunContext& c) {
    c.output_shapes.clear();
    c.buffers.clear();
    for (size_t i = 0; i < binding_.outputs.size(); ++i) {
        const char* name = binding_.outputs[i].c_str();
        nv::Dims dims = c.context->getTensorShape(name);
        c.output_shapes.push_back(dims);
        nv::IOutputAllocator* allocator = nullptr;
        if (!is_known(dims)) {
            allocator =
                c.buffers.emplace(i, std::make_unique<OutputBuffer>(device_)).first->second.get();
        }
        if (!c.context->setOutputAllocator(name, allocator)) {
            failed("an output cannot be bound");
        }
    }
    if (scratch_.pool() != nullptr) {
        c.scratch_bytes = c.context->updateDeviceMemorySizeForShapes();
    }
    c.shapes_known = true;
}

void* NodeCompute::engine_address(const OrtValue* value, const void* data, size_t bytes,
                                  const std::string& name) const {
    void* memory = const_cast<void*>(data); // inputs are only read
    if (bytes == 0) {
        return nothing;
    }
    if (device_ == nullptr) {
        return memory;
    }
    const OrtMemoryDevice* place = host_.ep->Value_GetMemoryDevice(value);
    require(host_.ep->MemoryDevice_GetDeviceType(place) == OrtMemoryInfoDeviceType_GPU,
            ErrorCode::Internal, "'", name, "' is in memory of the CPU, expected the GPU's");
    return device_->engine_address(memory);
}

void NodeCompute::set_outputs(RunContext& c, OrtKernelContext* kernel) {
    for (size_t i = 0; i < binding_.outputs.size(); ++i) {
        if (c.buffers.contains(i)) {
            continue;
        }
        const std::string& name = binding_.outputs[i];
        const nv::Dims& dims = c.output_shapes[i];
        OrtValue* value = nullptr;
        host_.check(host_.api->KernelContext_GetOutput(kernel, i, dims.d,
                                                       static_cast<size_t>(dims.nbDims), &value));
        require(value != nullptr, ErrorCode::Internal, "output '", name, "' has no memory");
        size_t bytes = 0;
        void* data = nullptr;
        host_.check(host_.api->GetTensorSizeInBytes(value, &bytes));
        host_.check(host_.api->GetTensorMutableData(value, &data));
        if (!c.context->setOutputTensorAddress(name.c_str(),
                                               engine_address(value, data, bytes, name))) {
            failed("an address cannot be set");
        }
    }
}

void NodeCompute::finish_outputs(RunContext& c, OrtKernelContext* kernel, void* stream) {
    for (const auto& [i, buffer] : c.buffers) {
        OrtValue* value = nullptr;
        const nv::Dims& dims = buffer->dims();
        host_.check(host_.api->KernelContext_GetOutput(kernel, i, dims.d,
                                                       static_cast<size_t>(dims.nbDims), &value));
        require(value != nullptr, ErrorCode::Internal, "output '", binding_.outputs[i],
                "' has no memory");
        size_t bytes = 0;
        void* data = nullptr;
        host_.check(host_.api->GetTensorSizeInBytes(value, &bytes));
        host_.check(host_.api->GetTensorMutableData(value, &data));
        if (bytes == 0) {
            continue;
        }
        if (device_ == nullptr) {
            std::memcpy(data, buffer->data(), bytes);
        } else {
            device_->copy(data, buffer->data(), bytes, stream);
        }
    }
}

} // namespace ingot::ort
