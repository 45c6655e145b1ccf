// SPDX-License-Identifier: Apache-2.0
// Runs of a context.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/context.h"

#include <algorithm>

namespace ingot::api {

void* ContextObject::output_memory(size_t output, int64_t bytes) {
    size_t tensor = inputs_.size() + output;
    const std::string& name = state_->tensors()[tensor].name;
    nvinfer1::IOutputAllocator* allocator = allocators_[output];
    if (allocator == nullptr) {
        require(given_[tensor] != nullptr, ErrorCode::InvalidArgument, "output '", name,
                "' has no memory: call setTensorAddress() or, where its size depends on data, "
                "setOutputAllocator()");
        // The application has no other way to know the required size.
        std::optional<int64_t> most = most_bytes(state_->tensors()[tensor]);
        require(most.has_value(), ErrorCode::InvalidArgument, "the size of output '", name,
                "' depends on data, and nothing bounds it: setTensorAddress() cannot say how much "
                "memory there is; call setOutputAllocator()");
        require(bytes <= *most, ErrorCode::Internal, "output '", name, "' takes ", bytes,
                " bytes, its bound is ", *most);
        return given_[tensor];
    }
    constexpr uint64_t alignment = 256;
    void* memory = allocator->reallocateOutputAsync(
        name.c_str(), addresses_[tensor], static_cast<uint64_t>(bytes), alignment, stream_);
    require(memory != nullptr || bytes == 0, ErrorCode::OutOfMemory, "the allocator of output '",
            name, "' gave no memory for ", bytes, " bytes");
    return memory;
}

/// During stream capture nothing can be read, and the graph will run on other values: captured
/// steps have no data-dependent sizes.
void ContextObject::check_values(cudaStream_t stream) const {
    const auto& profiles = state_->build_settings().values;
    auto profile = static_cast<size_t>(profile_);
    if (profile >= profiles.size() || context_->execution().is_captured(stream)) {
        return;
    }
    for (const auto& [name, range] : profiles[profile]) {
        const IoTensor& t = state_->tensor(name.c_str());
        const auto& [least, expected, most] = range;
        auto count = static_cast<size_t>(t.is_input ? count_of(*shapes_[t.index]) : 0);
        require(t.is_input && least.size() == count && most.size() == count,
                ErrorCode::InvalidEngine, "profile ", profile_, " has ", least.size(),
                " values for '", name, "', which has ", count, ": build the engine again");
        Tensor values = Tensor::empty(t.type.dtype, *shapes_[t.index]);
        const void* address = inputs_[t.index].address;
        require(address != nullptr, ErrorCode::InvalidArgument, "input '", name,
                "' has no address");
        state_->place().backend->read(values.mutable_bytes().data(), address, values.bytes().size(),
                                      stream);
        for (size_t i = 0; i < count; ++i) {
            int64_t value = values.get_i64(static_cast<int64_t>(i));
            require(value >= least[i] && value <= most[i], ErrorCode::InvalidArgument, "input '",
                    name, "' has the value ", value, " at index ", i, ", profile ", profile_,
                    " allows ", least[i], " to ", most[i],
                    ": give a value in this range, select another profile, or build the engine "
                    "with a profile that has it (IOptimizationProfile::setShapeValuesV2)");
        }
    }
}

void ContextObject::run(void* const* addresses, cudaStream_t stream) {
    state_->check_weights();
    follow_refit();
    for (size_t i = 0; i < inputs_.size(); ++i) {
        require(shapes_[i].has_value(), ErrorCode::InvalidArgument, "the shape of input '",
                state_->tensors()[i].name, "' is not set: call setInputShape()");
        inputs_[i].address = addresses[i];
        inputs_[i].shape = *shapes_[i];
    }
    for (size_t i = 0; i < allocators_.size(); ++i) {
        bool asks = allocators_[i] != nullptr;
        outputs_[i].address = asks ? nullptr : addresses[inputs_.size() + i];
    }
    stream_ = stream;
    given_ = addresses;
    times_.clear();
    require(!debug_sync_ || !context_->execution().is_captured(stream), ErrorCode::InvalidArgument,
            "the run cannot be captured, since setDebugSync(true) makes it wait");
    check_values(stream);
    context_->enqueue(inputs_, outputs_, stream, memory_);
    for (size_t i = 0; i < allocators_.size(); ++i) {
        if (allocators_[i] != nullptr) {
            allocators_[i]->notifyShape(state_->tensors()[inputs_.size() + i].name.c_str(),
                                        api_dims(outputs_[i].shape));
        }
    }
    if (debug_sync_) {
        wait();
    }
    show_debug_tensors();
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

} // namespace ingot::api
