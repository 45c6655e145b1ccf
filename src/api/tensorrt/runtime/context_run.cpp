// SPDX-License-Identifier: Apache-2.0
// Runs of a context, and who watches them.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/context.h"

#include <algorithm>

namespace ingot::api {

void LayerTimes::step(const StepInfo& info, double milliseconds) noexcept {
    try {
        times_.emplace_back(info.name.empty() ? info.kernel : info.name,
                            static_cast<float>(milliseconds));
    } catch (const std::exception&) {
        times_.clear(); // rather none than some
    }
}

void LayerTimes::report(nvinfer1::IProfiler& profiler) const {
    for (const auto& [name, ms] : times_) {
        profiler.reportLayerTime(name.c_str(), ms);
    }
}

void ContextObject::setProfiler(nvinfer1::IProfiler* profiler) noexcept {
    call("IExecutionContext::setProfiler", 0, [&] {
        profiler_ = profiler;
        times_.clear();
        context_->execution().set_timer(profiler == nullptr ? nullptr : &times_);
        return 0;
    });
}

bool ContextObject::reportToProfiler() const noexcept {
    return call("IExecutionContext::reportToProfiler", false, [&] {
        require(profiler_ != nullptr, ErrorCode::InvalidArgument, "there is no profiler");
        require(!times_.empty(), ErrorCode::InvalidArgument,
                "nothing was run since the profiler was set");
        times_.report(*profiler_);
        return true;
    });
}

void* ContextObject::output_memory(size_t output, int64_t bytes) {
    size_t tensor = inputs_.size() + output;
    const std::string& name = state_->tensors()[tensor].name;
    nvinfer1::IOutputAllocator* allocator = allocators_[output];
    require(allocator != nullptr, ErrorCode::InvalidArgument, "output '", name,
            "' has no memory: call setTensorAddress() or, where its size depends on data, "
            "setOutputAllocator()");
    constexpr uint64_t alignment = 256;
    void* memory = allocator->reallocateOutputAsync(
        name.c_str(), addresses_[tensor], static_cast<uint64_t>(bytes), alignment, stream_);
    require(memory != nullptr || bytes == 0, ErrorCode::OutOfMemory, "the allocator of output '",
            name, "' gave no memory for ", bytes, " bytes");
    return memory;
}

void ContextObject::run(void* const* addresses, cudaStream_t stream) {
    require(state_->weights_loaded(), ErrorCode::InvalidArgument,
            "the weights are not loaded: call ICudaEngine::loadWeights() first");
    for (size_t i = 0; i < inputs_.size(); ++i) {
        require(shapes_[i].has_value(), ErrorCode::InvalidArgument, "the shape of input '",
                state_->tensors()[i].name, "' is not set: call setInputShape()");
        inputs_[i].address = addresses[i];
        inputs_[i].shape = *shapes_[i];
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
        bool asks = allocators_[i] != nullptr;
        outputs_[i].address = asks ? nullptr : addresses[inputs_.size() + i];
    }
    stream_ = stream;
    times_.clear();
    context_->enqueue(inputs_, outputs_, stream, memory_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
        if (allocators_[i] != nullptr) {
            allocators_[i]->notifyShape(state_->tensors()[inputs_.size() + i].name.c_str(),
                                        api_dims(outputs_[i].shape));
        }
    }
    if (debug_sync_) {
        wait();
    }
    if (profiler_ != nullptr && emits_profile_) {
        times_.report(*profiler_);
    }
}

void ContextObject::wait() {
    Execution& execution = context_->execution();
    Status s = execution.wait();
    if (!s.ok()) {
        throw Error(s.code(), execution.error().empty() ? s.text() : execution.error());
    }
}

bool ContextObject::enqueueV3(cudaStream_t stream) noexcept {
    return call("IExecutionContext::enqueueV3", false, [&] {
        run(addresses_.data(), stream);
        return true;
    });
}

bool ContextObject::executeV2(void* const* bindings) noexcept {
    return call("IExecutionContext::executeV2", false, [&] {
        require(bindings != nullptr, ErrorCode::InvalidArgument, "the array of addresses is null");
        run(bindings, nullptr);
        wait();
        return true;
    });
}

void ContextObject::watch_tensors() {
    bool watches = listener_ != nullptr && (debug_unfused_ || !debug_tensors_.empty());
    Execution& execution = context_->execution();
    if (watches) {
        execution.set_observer(
            [this](std::string_view name, const Tensor& t) { observe(name, t); });
    } else {
        execution.set_observer({});
    }
}

void ContextObject::observe(std::string_view name, const Tensor& t) {
    if (!debug_unfused_ && debug_tensors_.find(name) == debug_tensors_.end()) {
        return;
    }
    bool goes_on = listener_->processDebugTensor(t.bytes().data(), nvinfer1::TensorLocation::kHOST,
                                                 data_type_of(t.dtype()), api_dims(t.shape()),
                                                 std::string(name).c_str(), stream_);
    require(goes_on, ErrorCode::Interrupted, "the debug listener ended the run at tensor '", name,
            "'");
}

bool ContextObject::setDebugListener(nvinfer1::IDebugListener* listener) noexcept {
    return call("IExecutionContext::setDebugListener", false, [&] {
        listener_ = listener;
        watch_tensors();
        return true;
    });
}

bool ContextObject::setTensorDebugState(const char* name, bool flag) noexcept {
    return call("IExecutionContext::setTensorDebugState", false, [&] {
        require(engine_.isDebugTensor(name), ErrorCode::InvalidArgument, "tensor '",
                name == nullptr ? "" : name, "' was not marked with markDebug()");
        if (flag) {
            debug_tensors_.emplace(name);
        } else {
            debug_tensors_.erase(name);
        }
        watch_tensors();
        return true;
    });
}

bool ContextObject::getDebugState(const char* name) const noexcept {
    return call("IExecutionContext::getDebugState", false, [&] {
        return name != nullptr && debug_tensors_.find(name) != debug_tensors_.end();
    });
}

bool ContextObject::setAllTensorsDebugState(bool flag) noexcept {
    return call("IExecutionContext::setAllTensorsDebugState", false, [&] {
        const std::vector<std::string>& marked = state_->facts().debug_tensors;
        debug_tensors_.clear();
        if (flag) {
            debug_tensors_.insert(marked.begin(), marked.end());
        }
        watch_tensors();
        return true;
    });
}

bool ContextObject::setUnfusedTensorsDebugState(bool flag) noexcept {
    return call("IExecutionContext::setUnfusedTensorsDebugState", false, [&] {
        require(!flag || state_->facts().debug_unfused, ErrorCode::InvalidArgument,
                "the build did not mark them with markUnfusedTensorsAsDebugTensors()");
        debug_unfused_ = flag;
        watch_tensors();
        return true;
    });
}

} // namespace ingot::api
