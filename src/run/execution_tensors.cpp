// SPDX-License-Identifier: Apache-2.0
// Runs on tensors of the host, which are copied where the device has memory of its own.
#include "run/execution.h"
#include "run/profiler_range.h"

#include <algorithm>
#include <chrono>

namespace ingot::plan {

void ProgramExecution::run_or_throw(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
    const Graph& g = *program_->graph;
    require(inputs.size() == pointers_.size() && outputs.size() == slots_.size(),
            ErrorCode::InvalidArgument, "got ", inputs.size(), " inputs and ", outputs.size(),
            " outputs, expected ", pointers_.size(), " and ", slots_.size());
    bool same = shapes_.size() == inputs.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
        Value v = g.inputs()[i];
        require(inputs[i].defined() && inputs[i].dtype() == g.type(v).dtype,
                ErrorCode::InvalidArgument, "input '", g.value_name(v), "' is ",
                inputs[i].defined() ? name(inputs[i].dtype()) : "not set", ", expected ",
                g.type(v).dtype);
        same = same && inputs[i].shape() == shapes_[i];
    }
    if (!same || inputs.empty()) {
        std::vector<Shape> shapes;
        for (const Tensor& t : inputs) {
            shapes.push_back(t.shape());
        }
        prepare(shapes);
    }
    if (CallerStreams* streams = device_->parts().streams) {
        streams->take_priority(nullptr);
    }
    ProfilerRange range(device_->parts().ranges, watch_.ranges, [] { return "ingot run"; });
    if (watch_.cache_limit != 0) {
        keep_in_cache();
    }
    DeviceClock* clock = device_->parts().clock;
    if (clock != nullptr) {
        clock->forget();
    }
    auto mark = [clock] { return clock == nullptr ? -1 : clock->mark(); };
    int start = mark();
    take_inputs(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
        bind_tensor(outputs[i], i, inputs);
    }
    end_uploads(); // of a run that failed
    int computes = mark();
    auto enqueue = std::chrono::steady_clock::now();
    runner_.run(pointers_, slots_, watch_);
    std::chrono::duration<double, std::milli> enqueued = std::chrono::steady_clock::now() - enqueue;
    device_->end_draws();
    int computed = mark();
    for (size_t i = 0; i < outputs.size(); ++i) {
        finish_output(outputs[i], i);
    }
    int end = mark();
    check_errors(true);
    if (clock != nullptr) {
        device_->synchronize();
        times_ = {clock->elapsed_ms(start, computes), clock->elapsed_ms(computes, computed),
                  clock->elapsed_ms(computed, end), enqueued.count()};
    }
}

void ProgramExecution::take_inputs(std::span<const Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
        std::span<const std::byte> bytes = inputs[i].bytes();
        if (device_->is_host()) {
            pointers_[i] = bytes.data();
            continue;
        }
        GrowingBuffer& buffer = input_buffers_[i];
        buffer.reserve(std::max<int64_t>(static_cast<int64_t>(bytes.size()), 1));
        device_->write(buffer.data(), bytes.data(), bytes.size());
        pointers_[i] = buffer.data();
    }
}

void ProgramExecution::check_output(const Tensor& t, const Shape& shape, size_t i) const {
    const Graph& g = *program_->graph;
    DType dtype = g.type(g.outputs()[i]).dtype;
    require(t.writable() && t.dtype() == dtype && t.shape() == shape, ErrorCode::InvalidArgument,
            "output '", g.output_names()[i], "' has to hold ", dtype, shape, ", got ", t.dtype(),
            t.shape(), t.writable() ? "" : ", which is read-only");
}

void ProgramExecution::bind_tensor(Tensor& t, size_t i, std::span<const Tensor> inputs) {
    slots_[i].data = nullptr;
    if (slots_[i].tensor.defined()) {
        slots_[i].tensor = {};
    }
    bool is_host = device_->is_host();
    if (is_host && !t.defined()) {
        return;
    }
    const std::optional<Shape>& shape = results_[i];
    if (!shape) {
        return;
    }
    if (t.defined()) {
        check_output(t, *shape, i);
    } else {
        const Graph& g = *program_->graph;
        t = Tensor::empty(g.type(g.outputs()[i]).dtype, *shape);
    }
    if (is_host && std::any_of(inputs.begin(), inputs.end(), [&t](const Tensor& in) {
            return overlap(in.bytes().data(), static_cast<int64_t>(in.bytes().size()),
                           t.bytes().data(), static_cast<int64_t>(t.bytes().size()));
        })) {
        return; // a tensor of its own is copied there at the end
    }
    slots_[i].data = t.mutable_bytes().data();
    if (!is_host) {
        GrowingBuffer& buffer = output_buffers_[i];
        buffer.reserve(std::max<int64_t>(static_cast<int64_t>(t.bytes().size()), 1));
        slots_[i].data = buffer.data();
    }
}

void ProgramExecution::finish_output(Tensor& t, size_t i) {
    Tensor& made = slots_[i].tensor;
    if (device_->is_host()) {
        if (!made.defined()) {
            return;
        }
        if (!t.defined()) {
            t = std::move(made);
            return;
        }
    }
    if (!made.defined()) {
        device_->read(t.mutable_bytes().data(), slots_[i].data, t.bytes().size());
        return;
    }
    if (t.defined()) {
        check_output(t, made.shape(), i);
    } else {
        t = Tensor::empty(made.dtype(), made.shape());
    }
    device_->read(t.mutable_bytes().data(), made.bytes().data(), made.bytes().size());
    made = {};
}

} // namespace ingot::plan
