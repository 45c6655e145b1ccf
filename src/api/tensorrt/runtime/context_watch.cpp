// SPDX-License-Identifier: Apache-2.0
// Observers of a context's runs: profilers and debug listeners.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/context.h"

#include <utility>

namespace ingot::api {

void LayerTimes::step(const StepInfo& info, double milliseconds) noexcept {
    try {
        times_.emplace_back(info.name.empty() ? info.kernel : info.name,
                            static_cast<float>(milliseconds));
    } catch (const std::exception&) {
        times_.clear(); // no times rather than incomplete ones
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
        time_layers();
        return 0;
    });
}

void ContextObject::setEnqueueEmitsProfile(bool emits) noexcept {
    call("IExecutionContext::setEnqueueEmitsProfile", 0, [&] {
        emits_profile_ = emits;
        time_layers();
        return 0;
    });
}

void ContextObject::time_layers() {
    times_.clear();
    change_settings([&](RunSettings& s) {
        s.timer = profiler_ == nullptr ? nullptr : &times_;
        s.times_later = !emits_profile_;
    });
}

bool ContextObject::reportToProfiler() const noexcept {
    return call("IExecutionContext::reportToProfiler", false, [&] {
        require(profiler_ != nullptr, ErrorCode::InvalidArgument, "there is no profiler");
        if (!emits_profile_) {
            LayerTimes before = std::exchange(times_, LayerTimes());
            if (context_ == nullptr || !context_->execution().report_times()) {
                times_ = std::move(before); // times of a run that waited for a debug listener
            }
        }
        require(!times_.empty(), ErrorCode::InvalidArgument,
                "nothing was run since the profiler was set");
        times_.report(*profiler_);
        return true;
    });
}

void ContextObject::watch_tensors() {
    bool watches = listener_ != nullptr && debug_unfused_;
    change_settings([&](RunSettings& s) {
        s.observer = {};
        if (watches) {
            s.observer = [this](const ObservedValue& v) { observe(v.name, v.tensor); };
        }
    });
}

void ContextObject::observe(std::string_view name, const Tensor& t) {
    std::string owned(name);
    if (!engine_.isDebugTensor(owned.c_str())) { // debug outputs are shown after the run
        show(owned, t.dtype(), t.shape(), t.bytes().data(), true);
    }
}

void ContextObject::show(const std::string& name, DType dtype, const Shape& shape,
                         const void* address, bool on_host) {
    bool goes_on = listener_->processDebugTensor(
        address, on_host ? nvinfer1::TensorLocation::kHOST : nvinfer1::TensorLocation::kDEVICE,
        data_type_of(dtype), api_dims(shape), name.c_str(), stream_);
    require(goes_on, ErrorCode::Interrupted, "the debug listener returned false for tensor '", name,
            "'");
}

void ContextObject::show_debug_tensors() {
    if (listener_ == nullptr || debug_tensors_.empty()) {
        return;
    }
    const Graph& g = state_->graph();
    const IoFormats& formats = state_->engine().formats();
    auto show_if_on = [&](const std::string& name, Value v, const Binding& b, const IoFormat& f) {
        if (debug_tensors_.find(name) == debug_tensors_.end()) {
            return;
        }
        DType dtype = g.type(v).dtype;
        if (f.is_row_major()) {
            show(name, dtype, b.shape, b.address, !state_->place().is_gpu);
            return;
        }
        // listeners expect row-major data
        Tensor array = Tensor::empty(dtype, storage_shape(f, b.shape));
        state_->place().backend->read(array.mutable_bytes().data(), b.address, array.bytes().size(),
                                      stream_);
        Tensor t = from_storage(f, array, b.shape);
        show(name, dtype, b.shape, t.bytes().data(), true);
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
        show_if_on(g.value_name(g.inputs()[i]), g.inputs()[i], inputs_[i], formats.input(i));
    }
    auto show_output = [&](size_t i) {
        show_if_on(g.output_names()[i], g.outputs()[i], outputs_[i], formats.output(i));
    };
    for (size_t i = allocators_.size(); i < outputs_.size(); ++i) {
        show_output(i);
    }
    for (size_t i = 0; i < allocators_.size(); ++i) {
        show_output(i);
    }
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
        const std::vector<std::string>& marked = state_->build_settings().debug_tensors;
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
        require(!flag || state_->build_settings().debug_unfused, ErrorCode::InvalidArgument,
                "the build did not mark them with markUnfusedTensorsAsDebugTensors()");
        debug_unfused_ = flag;
        watch_tensors();
        return true;
    });
}

} // namespace ingot::api
