// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/compute.h"

#include <algorithm>
#include <cstring>

namespace ingot::ort {

namespace nv = nvinfer1;

namespace {

/// Stands for the memory of tensors without elements.
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
    ::operator delete(memory_, std::align_val_t(256));
}

void* OutputBuffer::reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t,
                                          cudaStream_t) {
    if (memory_ == nullptr || size > size_) {
        ::operator delete(memory_, std::align_val_t(256));
        size_ = std::max<uint64_t>(size, 256);
        memory_ = ::operator new(size_, std::align_val_t(256), std::nothrow);
    }
    return memory_;
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

NoCompute::NoCompute(const Host& host) : host_(host) {
    ort_version_supported = host.version;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
        *state = self;
        return static_cast<OrtStatus*>(nullptr);
    };
    Compute = compute;
    ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

OrtStatus* NoCompute::compute(OrtNodeComputeInfo* self, void*, OrtKernelContext*) {
    return static_cast<NoCompute*>(self)->host_.status(
        ORT_NOT_IMPLEMENTED,
        "[NvTensorRTRTX EP] inference is not available in a compile-only session");
}

NodeCompute::NodeCompute(const Host& host, LoadedEngine engine, NodeBinding binding)
    : host_(host), engine_(std::move(engine)), binding_(std::move(binding)) {
    ort_version_supported = host.version;
    CreateState = create_state;
    Compute = compute;
    ReleaseState = release_state;
    for (const auto& [name, input] : binding_.inputs) {
        declared_.push_back(engine_.engine->getTensorShape(name.c_str()));
    }
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
                       me.give_back(std::move(c)); // one that failed is not used again
                   });
    });
}

void NodeCompute::failed(const char* otherwise) {
    fail(ErrorCode::Device, engine_.logger->take_errors(otherwise));
}

std::unique_ptr<RunContext> NodeCompute::take() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!idle_.empty()) {
            std::unique_ptr<RunContext> c = std::move(idle_.back());
            idle_.pop_back();
            return c;
        }
    }
    auto c = std::make_unique<RunContext>();
    c->context.reset(engine_.engine->createExecutionContext());
    if (c->context == nullptr) {
        failed("a context cannot be made");
    }
    c->shapes.assign(binding_.inputs.size(), nv::Dims{-1, {}});
    return c;
}

void NodeCompute::give_back(std::unique_ptr<RunContext> c) {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(c));
}

void NodeCompute::run(RunContext& c, OrtKernelContext* kernel) {
    set_inputs(c, kernel);
    if (!c.shapes_known) {
        learn_outputs(c);
    }
    set_outputs(c, kernel);
    if (!c.context->enqueueV3(nullptr)) {
        failed("the run failed");
    }
    finish_outputs(c, kernel);
}

void NodeCompute::set_inputs(RunContext& c, OrtKernelContext* kernel) {
    for (size_t i = 0; i < binding_.inputs.size(); ++i) {
        const auto& [name, index] = binding_.inputs[i];
        const OrtValue* value = nullptr;
        host_.check(host_.api->KernelContext_GetInput(kernel, index, &value));
        require(value != nullptr, ErrorCode::InvalidArgument, "input '", name, "' is missing");
        TensorView t = view_of(host_, value);
        nv::Dims dims{static_cast<int32_t>(t.dims.size()), {}};
        require(t.dims.size() <= nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument, "input '", name,
                "' has rank ", t.dims.size(), ", expected at most ", nv::Dims::MAX_DIMS);
        std::copy(t.dims.begin(), t.dims.end(), dims.d);
        if (!same(c.shapes[i], dims)) {
            c.shapes_known = false;
            c.shapes[i] = nv::Dims{-1, {}};
            if (!c.context->setInputShape(name.c_str(), dims)) {
                failed(str("input '", name, "' cannot be ", text_of(dims)).c_str());
            }
            c.shapes[i] = dims;
        }
        const void* data = t.bytes == 0 ? nothing : t.data;
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
            allocator = c.buffers.emplace(i, std::make_unique<OutputBuffer>()).first->second.get();
        }
        if (!c.context->setOutputAllocator(name, allocator)) {
            failed("an output cannot be bound");
        }
    }
    c.shapes_known = true;
}

namespace {

void* output_data(const Host& host, OrtKernelContext* kernel, size_t index, const nv::Dims& dims) {
    OrtValue* value = nullptr;
    host.check(host.api->KernelContext_GetOutput(kernel, index, dims.d,
                                                 static_cast<size_t>(dims.nbDims), &value));
    void* data = nullptr;
    if (value != nullptr) {
        host.check(host.api->GetTensorMutableData(value, &data));
    }
    return data == nullptr ? nothing : data;
}

} // namespace

void NodeCompute::set_outputs(RunContext& c, OrtKernelContext* kernel) {
    for (size_t i = 0; i < binding_.outputs.size(); ++i) {
        if (c.buffers.contains(i)) {
            continue;
        }
        void* data = output_data(host_, kernel, i, c.output_shapes[i]);
        if (!c.context->setOutputTensorAddress(binding_.outputs[i].c_str(), data)) {
            failed("an address cannot be set");
        }
    }
}

void NodeCompute::finish_outputs(RunContext& c, OrtKernelContext* kernel) {
    for (const auto& [i, buffer] : c.buffers) {
        OrtValue* value = nullptr;
        const nv::Dims& dims = buffer->dims();
        host_.check(host_.api->KernelContext_GetOutput(kernel, i, dims.d,
                                                       static_cast<size_t>(dims.nbDims), &value));
        if (value == nullptr) {
            continue;
        }
        size_t bytes = 0;
        void* data = nullptr;
        host_.check(host_.api->GetTensorSizeInBytes(value, &bytes));
        host_.check(host_.api->GetTensorMutableData(value, &data));
        if (bytes != 0) {
            std::memcpy(data, buffer->data(), bytes);
        }
    }
}

} // namespace ingot::ort
