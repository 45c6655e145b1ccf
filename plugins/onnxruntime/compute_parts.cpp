// SPDX-License-Identifier: Apache-2.0
// The parts of a fused node's runs.
#include "plugins/onnxruntime/compute.h"

#include <algorithm>

namespace ingot::ort {

namespace nv = nvinfer1;

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

std::vector<LayerTime> LayerTimes::take() {
    std::vector<LayerTime> taken;
    taken.swap(layers_);
    return taken;
}

} // namespace ingot::ort
