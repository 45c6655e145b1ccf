// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/compute.h"

#include <algorithm>
#include <cstring>

namespace ingot::ort {

namespace nv = nvinfer1;

namespace {

/// The memory of tensors without elements.
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

OutputBuffer::~OutputBuffer() {
    free();
}

void OutputBuffer::free() noexcept {
    if (memory_ != nullptr && device_ != nullptr) {
        device_->release(memory_);
    } else {
        ::operator delete(memory_, std::align_val_t(256));
    }
    memory_ = nullptr;
}

void* OutputBuffer::reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t,
                                          cudaStream_t) {
    if (memory_ == nullptr || size > size_) {
        free();
        size_ = std::max<uint64_t>(size, 256);
        try {
            memory_ = device_ == nullptr ? ::operator new(size_, std::align_val_t(256))
                                         : device_->allocate(size_);
        } catch (...) {
            return nullptr; // this fails the run
        }
    }
    return device_ == nullptr ? memory_ : device_->engine_address(memory_);
}

void OutputBuffer::notifyShape(const char*, const nv::Dims& dims) noexcept {
    dims_ = dims;
}

NodeBinding bind_node(const nv::ICudaEngine& engine, const std::string& what,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
    NodeBinding binding;
    binding.what = what;
    binding.outputs = outputs;
    std::vector<std::string> made;
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
        const char* name = engine.getIOTensorName(i);
        if (engine.getTensorIOMode(name) == nv::TensorIOMode::kOUTPUT) {
            made.emplace_back(name);
            continue;
        }
        auto it = std::find(inputs.begin(), inputs.end(), name);
        require(it != inputs.end(), ErrorCode::InvalidEngine, "engine/model mismatch: ", what,
                " has no input '", name, "', which the engine has; the node's inputs are ",
                join(inputs, ", "));
        binding.inputs.emplace_back(name, static_cast<size_t>(it - inputs.begin()));
    }
    for (const std::string& name : outputs) {
        require(std::find(made.begin(), made.end(), name) != made.end(), ErrorCode::InvalidEngine,
                "engine/model mismatch: the engine has no output '", name, "', which ", what,
                " has; its outputs are ", join(made, ", "));
    }
    return binding;
}

NoCompute::NoCompute(const Host& host, const char* why) : host_(host), why_(why) {
    ort_version_supported = host.version;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
        *state = self;
        return static_cast<OrtStatus*>(nullptr);
    };
    Compute = compute;
    ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

OrtStatus* NoCompute::compute(OrtNodeComputeInfo* self, void*, OrtKernelContext*) {
    const auto& me = *static_cast<NoCompute*>(self);
    return me.host_.status(ORT_NOT_IMPLEMENTED, me.why_);
}

void LayerTimes::reportLayerTime(const char* name, float ms) noexcept {
    try {
        layers_.push_back({name, static_cast<double>(ms) * 1000});
    } catch (...) { // without memory, the file lacks one layer
    }
}

std::vector<ProfileFile::Layer> LayerTimes::take() {
    std::vector<ProfileFile::Layer> taken;
    taken.swap(layers_);
    return taken;
}

NodeCompute::NodeCompute(const Host& host, LoadedEngine engine, NodeBinding binding,
                         std::shared_ptr<RunSettings> settings, std::unique_ptr<RuntimeCache> cache,
                         std::shared_ptr<DeviceMemory> device)
    : host_(host), device_(std::move(device)), settings_(std::move(settings)),
      cache_(std::move(cache)), engine_(std::move(engine)), binding_(std::move(binding)) {
    ort_version_supported = host.version;
    CreateState = create_state;
    Compute = compute;
    ReleaseState = release_state;
    profiles_ = engine_.engine->getNbOptimizationProfiles();
    for (const auto& [name, index] : binding_.inputs) {
        nv::Dims most =
            engine_.engine->getProfileShape(name.c_str(), 0, nv::OptProfileSelector::kMAX);
        nv::Dims declared = engine_.engine->getTensorShape(name.c_str());
        for (int32_t d = 0; d < most.nbDims; ++d) {
            has_profiles_ = has_profiles_ || (declared.d[d] < 0 && most.d[d] >= 0);
        }
    }
    engine_.logger->take_errors(""); // about inputs without limits
    if (settings_->profile != nullptr) {
        subgraph_ = settings_->profile->add_subgraph(binding_.what);
    }
    configure();
    give_back(take()); // fails here rather than in the first run
}

/// For contexts that are made from here on.
void NodeCompute::configure() {
    std::lock_guard<std::mutex> lock(settings_->mutex);
    config_.reset(engine_.engine->createRuntimeConfig());
    if (config_ == nullptr) {
        failed("contexts cannot be configured");
    }
    if (settings_->options.enable_cuda_graph && settings_->profile == nullptr) {
        config_->setCudaGraphStrategy(nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    }
    setPriority(*config_, settings_->low_priority ? Priority::kLOW : Priority::kNORMAL);
    if (cache_ != nullptr) {
        cache_->attach(*config_);
    }
    int64_t streamable = engine_.engine->getStreamableWeightsSize();
    if (streamable > 0) {
        int64_t bytes =
            settings_->budget.bytes(streamable, engine_.engine->getWeightStreamingAutomaticBudget())
                .value_or(streamable);
        if (!engine_.engine->setWeightStreamingBudgetV2(bytes)) {
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
        with_place([&] { return str("running ", me.binding_.what); },
                   [&] {
                       std::unique_ptr<RunContext> c = me.take();
                       me.run(*c, kernel);
                       me.give_back(std::move(c)); // a failed context is not used again
                   });
    });
}

void NodeCompute::failed(const char* otherwise) {
    fail(ErrorCode::Device, engine_.logger->take_errors(otherwise));
}

std::unique_ptr<RunContext> NodeCompute::take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (budget_changes_ != settings_->changes) {
        idle_.clear(); // a budget can be set only without contexts
        configure();
    }
    if (!idle_.empty()) {
        std::unique_ptr<RunContext> c = std::move(idle_.back());
        idle_.pop_back();
        return c;
    }
    auto c = std::make_unique<RunContext>();
    c->changes = budget_changes_;
    c->context.reset(engine_.engine->createExecutionContext(config_.get()));
    if (c->context == nullptr) {
        failed("a context cannot be made");
    }
    if (settings_->profile != nullptr) {
        c->times = std::make_unique<LayerTimes>();
        c->context->setProfiler(c->times.get());
    }
    c->shapes.assign(binding_.inputs.size(), nv::Dims{-1, {}});
    return c;
}

void NodeCompute::give_back(std::unique_ptr<RunContext> c) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (c->changes == settings_->changes) {
        idle_.push_back(std::move(c));
    }
}

void NodeCompute::run(RunContext& c, OrtKernelContext* kernel) {
    set_inputs(c, kernel);
    if (!c.shapes_known) {
        learn_outputs(c);
    }
    set_outputs(c, kernel);
    void* stream = nullptr;
    if (device_ != nullptr) {
        host_.check(host_.api->KernelContext_GetGPUComputeStream(kernel, &stream));
    }
    void* given = device_ == nullptr ? nullptr : device_->engine_stream(stream);
    if (!c.context->enqueueV3(static_cast<cudaStream_t>(given))) {
        failed("the run failed");
    }
    finish_outputs(c, kernel, stream);
    if (c.times != nullptr) {
        settings_->profile->add_run(subgraph_, c.times->take());
    }
}

bool NodeCompute::fits(int32_t profile, const std::vector<nv::Dims>& shapes) const {
    for (size_t i = 0; i < shapes.size(); ++i) {
        const char* name = binding_.inputs[i].first.c_str();
        nv::Dims least =
            engine_.engine->getProfileShape(name, profile, nv::OptProfileSelector::kMIN);
        nv::Dims most =
            engine_.engine->getProfileShape(name, profile, nv::OptProfileSelector::kMAX);
        for (int32_t d = 0; d < shapes[i].nbDims && d < least.nbDims; ++d) {
            if (shapes[i].d[d] < least.d[d] || shapes[i].d[d] > most.d[d]) {
                return false;
            }
        }
    }
    return true;
}

void NodeCompute::outside(const std::vector<nv::Dims>& shapes,
                          std::optional<int32_t> profile) const {
    std::string text;
    for (size_t i = 0; i < shapes.size(); ++i) {
        const char* name = binding_.inputs[i].first.c_str();
        for (int32_t d = 0; d < shapes[i].nbDims; ++d) {
            std::string limits;
            bool ever = false;
            for (int32_t p = profile.value_or(0); p < (profile ? *profile + 1 : profiles_); ++p) {
                int64_t least =
                    engine_.engine->getProfileShape(name, p, nv::OptProfileSelector::kMIN).d[d];
                int64_t most =
                    engine_.engine->getProfileShape(name, p, nv::OptProfileSelector::kMAX).d[d];
                ever = ever || (shapes[i].d[d] >= least && shapes[i].d[d] <= most);
                limits +=
                    str(limits.empty() ? "" : ", ", least, " to ", most, " (profile ", p, ")");
            }
            if (!ever) {
                text += str(text.empty() ? "" : "; ", "input '", name, "' has size ",
                            shapes[i].d[d], " in dimension ", d, ", expected ", limits);
            }
        }
    }
    fail(ErrorCode::InvalidArgument,
         text.empty() ? std::string("no profile fits the shapes of all inputs together") : text,
         "; give other shapes, or add a profile (nv_profile_min_shapes, nv_profile_opt_shapes, "
         "nv_profile_max_shapes)");
}

/// The profile that the run names; else the present one if it fits, else the first that fits.
void NodeCompute::choose_profile(RunContext& c, const std::vector<nv::Dims>& shapes) {
    int32_t chosen = c.profile;
    if (std::optional<int64_t> named = settings_->profile_of_run()) {
        require(*named >= 0 && *named < profiles_, ErrorCode::InvalidArgument,
                "nv_profile_index is ", *named, ", but the engine has ", profiles_,
                " profiles, counted from 0");
        chosen = static_cast<int32_t>(*named);
        if (!fits(chosen, shapes)) {
            outside(shapes, chosen);
        }
    } else if (!fits(chosen, shapes)) {
        for (chosen = 0; chosen < profiles_ && !fits(chosen, shapes);) {
            ++chosen;
        }
        if (chosen == profiles_) {
            outside(shapes, std::nullopt);
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
    std::vector<const OrtValue*> values;
    std::vector<TensorView> tensors;
    std::vector<nv::Dims> shapes;
    for (const auto& [name, index] : binding_.inputs) {
        const OrtValue* value = nullptr;
        host_.check(host_.api->KernelContext_GetInput(kernel, index, &value));
        require(value != nullptr, ErrorCode::InvalidArgument, "input '", name, "' is missing");
        values.push_back(value);
        TensorView& t = tensors.emplace_back(view_of(host_, value));
        require(t.dims.size() <= nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument, "input '", name,
                "' has rank ", t.dims.size(), ", expected at most ", nv::Dims::MAX_DIMS);
        nv::Dims& dims = shapes.emplace_back();
        dims.nbDims = static_cast<int32_t>(t.dims.size());
        std::copy(t.dims.begin(), t.dims.end(), dims.d);
    }
    if (has_profiles_) {
        choose_profile(c, shapes);
    }
    for (size_t i = 0; i < binding_.inputs.size(); ++i) {
        const char* name = binding_.inputs[i].first.c_str();
        if (!same(c.shapes[i], shapes[i])) {
            c.shapes_known = false;
            c.shapes[i] = nv::Dims{-1, {}};
            if (!c.context->setInputShape(name, shapes[i])) {
                failed(str("input '", name, "' cannot be ", text_of(shapes[i])).c_str());
            }
            c.shapes[i] = shapes[i];
        }
        const void* data = engine_address(values[i], tensors[i].data, tensors[i].bytes, name);
        if (!c.context->setInputTensorAddress(name, data)) {
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
