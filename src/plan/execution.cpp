// SPDX-License-Identifier: Apache-2.0
#include "plan/execution.h"

#include <algorithm>
#include <chrono>

namespace ingot::plan {

ProgramExecution::ProgramExecution(std::shared_ptr<const Program> program,
                                   std::shared_ptr<Device> device)
    : program_(std::move(program)), device_(std::move(device)), runner_(program_, *device_, {}) {
    pointers_.resize(program_->graph->inputs().size());
    slots_.resize(program_->graph->outputs().size());
    if (!device_->is_host()) {
        for (size_t i = 0; i < pointers_.size(); ++i) {
            input_buffers_.emplace_back(*device_);
        }
        for (size_t i = 0; i < slots_.size(); ++i) {
            output_buffers_.emplace_back(*device_);
        }
    }
}

void ProgramExecution::prepare(std::span<const Shape> inputs) {
    runner_.prepare(inputs);
    shapes_.assign(inputs.begin(), inputs.end());
}

std::optional<Shape> ProgramExecution::output_shape(size_t output) const {
    require(output < slots_.size(), ErrorCode::InvalidArgument, "output ", output,
            " does not exist, the graph has ", slots_.size());
    return shapes_.empty() && !pointers_.empty() ? std::nullopt : runner_.result_shape(output);
}

Status ProgramExecution::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept {
    error_.clear();
    try {
        run_or_throw(inputs, outputs);
        return {};
    } catch (const Error& e) {
        return failed(e.code(), e.what());
    } catch (const std::bad_alloc&) {
        return failed(ErrorCode::OutOfMemory, "the system has no memory left");
    } catch (const std::exception& e) {
        return failed(ErrorCode::Internal, e.what());
    }
}

Status ProgramExecution::failed(ErrorCode code, const char* text) noexcept {
    try {
        error_ = text;
    } catch (const std::exception&) {
        error_.clear();
    }
    return {code, "the run failed; error() says why"};
}

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
    device_->forget_times();
    int start = device_->mark_time();
    take_inputs(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
        aim_output(outputs[i], i);
    }
    int computes = device_->mark_time();
    auto enqueue = std::chrono::steady_clock::now();
    runner_.run(pointers_, slots_, watch_);
    std::chrono::duration<double, std::milli> enqueued = std::chrono::steady_clock::now() - enqueue;
    int computed = device_->mark_time();
    for (size_t i = 0; i < outputs.size(); ++i) {
        finish_output(outputs[i], i);
    }
    int end = device_->mark_time();
    device_->finish_run();
    if (end >= 0) {
        device_->synchronize();
        times_ = {device_->elapsed_ms(start, computes), device_->elapsed_ms(computes, computed),
                  device_->elapsed_ms(computed, end), enqueued.count()};
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

void ProgramExecution::aim_output(Tensor& t, size_t i) {
    slots_[i].data = nullptr;
    if (slots_[i].tensor.defined()) {
        slots_[i].tensor = {};
    }
    bool is_host = device_->is_host();
    if (is_host && !t.defined()) {
        return;
    }
    std::optional<Shape> shape = runner_.result_shape(i);
    if (!shape) {
        return;
    }
    if (t.defined()) {
        check_output(t, *shape, i);
    } else {
        const Graph& g = *program_->graph;
        t = Tensor::empty(g.type(g.outputs()[i]).dtype, *shape);
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
