// SPDX-License-Identifier: Apache-2.0
// Runs on addresses of the device, in the order of a caller's stream, captured ones among them.
#include "base/integers.h"
#include "base/log.h"
#include "run/execution.h"
#include "run/profiler_range.h"

#include <algorithm>

namespace ingot::plan {

namespace {

/// Kernels take an address for the start of a tensor where it is a multiple of this.
constexpr size_t tensor_alignment = 16;

} // namespace

/// Refuses a captured run that needs more: nothing may be allocated during a capture.
std::byte* ProgramExecution::room(GrowingBuffer& buffer, int64_t bytes) const {
    require(!is_captured_ || bytes <= buffer.bytes(), ErrorCode::InvalidArgument,
            "the run copies an input or output, for which memory is needed: run once with these "
            "addresses outside of the capture, or give addresses that are multiples of 16, and "
            "outputs apart from inputs");
    buffer.reserve(bytes);
    return buffer.data();
}

int64_t ProgramExecution::bytes_of(Value v, const Shape& shape) const {
    return static_cast<int64_t>(byte_size(program_->graph->type(v).dtype, count_of(shape)));
}

void ProgramExecution::bind_input(const Binding& b, size_t i) {
    const Graph& g = *program_->graph;
    int64_t bytes = bytes_of(g.inputs()[i], b.shape);
    require(b.address != nullptr || bytes == 0, ErrorCode::InvalidArgument, "input '",
            g.value_name(g.inputs()[i]), "' has no address");
    pointers_[i] = static_cast<const std::byte*>(b.address);
    if (!is_aligned(b.address, tensor_alignment)) {
        std::byte* copy = room(input_buffers_[i], bytes);
        device_->copy(copy, pointers_[i], static_cast<size_t>(bytes));
        pointers_[i] = copy;
    }
}

void ProgramExecution::bind_output(Binding& b, size_t i, std::span<const Binding> inputs,
                                   const OutputMemory& memory) {
    const Graph& g = *program_->graph;
    slots_[i].data = nullptr;
    slots_[i].tensor = {};
    if (!results_[i]) {
        require(memory != nullptr || b.own, ErrorCode::InvalidArgument, "the size of output '",
                g.output_names()[i], "' depends on data: give an allocator for it");
        return;
    }
    b.shape = *results_[i];
    int64_t bytes = bytes_of(g.outputs()[i], b.shape);
    if (b.own) {
        b.address = room(output_buffers_[i], std::max<int64_t>(bytes, 1));
    } else if (b.address == nullptr && memory != nullptr) {
        caller_is_asked_ = true;
        b.address = memory(i, b.shape, bytes);
        caller_is_asked_ = false;
    }
    require(b.address != nullptr || bytes == 0, ErrorCode::InvalidArgument, "output '",
            g.output_names()[i], "' has no address");
    bool shares = !is_aligned(b.address, tensor_alignment);
    for (size_t k = 0; k < inputs.size() && !shares; ++k) {
        shares =
            overlap(b.address, bytes, inputs[k].address, bytes_of(g.inputs()[k], inputs[k].shape));
    }
    slots_[i].data = static_cast<std::byte*>(b.address);
    if (shares || bytes == 0) {
        slots_[i].data = room(output_buffers_[i], std::max<int64_t>(bytes, 1));
    }
}

void ProgramExecution::give_output(Binding& b, size_t i, const OutputMemory& memory) {
    const Graph& g = *program_->graph;
    Tensor& made = slots_[i].tensor;
    if (!made.defined()) {
        int64_t bytes = bytes_of(g.outputs()[i], b.shape);
        if (slots_[i].data != b.address && bytes > 0) {
            device_->copy(static_cast<std::byte*>(b.address), slots_[i].data,
                          static_cast<size_t>(bytes));
        }
        return;
    }
    b.shape = made.shape();
    if (b.own) {
        b.address = made.mutable_bytes().data(); // it stays until the next run
        return;
    }
    auto bytes = static_cast<int64_t>(made.bytes().size());
    caller_is_asked_ = true;
    b.address = memory(i, b.shape, bytes);
    require(b.address != nullptr || bytes == 0, ErrorCode::OutOfMemory, "the allocator of output '",
            g.output_names()[i], "' gave no memory for ", bytes, " bytes");
    caller_is_asked_ = false;
    device_->copy(static_cast<std::byte*>(b.address), made.bytes().data(), made.bytes().size());
    made = {};
}

void ProgramExecution::enqueue_or_throw(std::span<const Binding> inputs, std::span<Binding> outputs,
                                        void* stream, const OutputMemory& memory) {
    require(inputs.size() == pointers_.size() && outputs.size() == slots_.size(),
            ErrorCode::InvalidArgument, "got ", inputs.size(), " inputs and ", outputs.size(),
            " outputs, expected ", pointers_.size(), " and ", slots_.size());
    bool same = shapes_.size() == inputs.size() && !inputs.empty();
    for (size_t i = 0; i < inputs.size() && same; ++i) {
        same = inputs[i].shape == shapes_[i];
    }
    if (!same) {
        std::vector<Shape> shapes;
        for (const Binding& b : inputs) {
            shapes.push_back(b.shape);
        }
        prepare(shapes);
    }
    check_errors(false);
    CallerStreams* streams = device_->parts().streams;
    if (streams != nullptr) {
        streams->take_priority(stream);
    }
    ProfilerRange range(device_->parts().ranges, watch_.ranges, [] { return "ingot run"; });
    if (is_captured(stream)) {
        run_captured(inputs, outputs, stream, memory);
        return;
    }
    if (watch_.cache_limit != 0) {
        keep_in_cache();
    }
    if (streams == nullptr) {
        run_bound(inputs, outputs, memory);
        return;
    }
    streams->wait_for(stream);
    try {
        run_bound(inputs, outputs, memory);
    } catch (...) {
        try {
            streams->let_wait(stream);
        } catch (const std::exception& e) {
            log(LogLevel::Verbose, "after a run that failed: ", e.what());
        }
        throw;
    }
    streams->let_wait(stream);
}

/// The caller's stream stays one that its capture can be ended on, whatever happens.
void ProgramExecution::run_captured(std::span<const Binding> inputs, std::span<Binding> outputs,
                                    void* stream, const OutputMemory& memory) {
    require(capturable(shapes_), ErrorCode::InvalidArgument, "the run cannot be captured: ",
            runner_.recordable() ? "enqueue one with these shapes outside of the capture first, "
                                   "which loads kernels and weights"
                                 : "it waits for sizes that depend on data, or for the host");
    require(watch_.timer == nullptr || watch_.times_later, ErrorCode::InvalidArgument,
            "the run cannot be captured, since it waits for the times of layers: take the profiler "
            "away, or let times be reported later");
    require(watch_.observer == nullptr, ErrorCode::InvalidArgument,
            "the run cannot be captured, since tensors that fusion left are read on the host: "
            "switch them off");
    struct Captured {
        ProgramExecution& e;
        void* stream;
        explicit Captured(ProgramExecution& x, void* s) : e(x), stream(s) {
            e.device_->parts().streams->wait_for(stream);
            e.is_captured_ = true;
            e.watch_.replay = false; // a graph of ours is no part of the caller's
        }
        ~Captured() {
            e.is_captured_ = false;
            e.watch_.replay = true;
            try {
                e.end_uploads();
                e.device_->parts().streams->let_wait(stream);
            } catch (const std::exception& error) {
                log(LogLevel::Warning, "a run that is captured: ", error.what());
            }
        }
        Captured(const Captured&) = delete;
        Captured& operator=(const Captured&) = delete;
    } captured(*this, stream);
    run_bound(inputs, outputs, memory);
}

void ProgramExecution::run_bound(std::span<const Binding> inputs, std::span<Binding> outputs,
                                 const OutputMemory& memory) {
    DeviceClock* clock = device_->parts().clock;
    if (watch_.times_later && clock != nullptr) {
        clock->forget();
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        bind_input(inputs[i], i);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        bind_output(outputs[i], i, inputs, memory);
    }
    end_uploads(); // of a run that failed
    runner_.run(pointers_, slots_, watch_);
    device_->end_draws();
    for (size_t i = 0; i < outputs.size(); ++i) {
        give_output(outputs[i], i, memory);
    }
}

} // namespace ingot::plan
