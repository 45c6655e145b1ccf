// SPDX-License-Identifier: Apache-2.0
// ProgramExecution: an Execution on any Device. run() takes host tensors; where the device has
// memory of its own, they are copied. enqueue() takes addresses on the device.
#pragma once

#include "base/error.h"
#include "plan/backend.h"
#include "run/runner.h"

#include <deque>

namespace ingot::plan {

class ProgramExecution : public Execution {
public:
    ProgramExecution(std::shared_ptr<const Program> program, std::shared_ptr<Device> device);

    void prepare(std::span<const Shape> inputs) override;
    std::optional<Shape> output_shape(size_t output) const override;
    Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept override;
    Status enqueue(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                   const OutputMemory& memory) noexcept override;
    Status wait() noexcept override;
    const std::string& error() const noexcept override { return error_; }
    std::vector<StepInfo> steps() const override { return runner_.steps(); }
    size_t arena_bytes() const override { return static_cast<size_t>(runner_.arena_bytes()); }
    int64_t scratch_bytes() const override { return runner_.scratch_bytes(); }
    int64_t streamed_bytes() const override { return runner_.streamed_bytes(); }
    int64_t persistent_bytes() const override;
    int64_t activation_bytes(std::span<const Shape> inputs) override;
    void lend_memory(void* memory, int64_t bytes) override;
    void set_memory(std::shared_ptr<MemorySource> source) override {
        device_->set_memory(std::move(source));
    }
    RunTimes times() const override { return times_; }
    bool capturable(std::span<const Shape> inputs) const override {
        return runner_.can_repeat(inputs) && !device_->is_host();
    }
    bool is_captured(void* stream) const override { return device_->is_captured(stream); }
    void set_inputs_event(void* event) override { watch_.inputs_event = event; }
    void set_communicator(void* communicator) override;
    void set_cache_limit(int64_t bytes) override;
    int64_t most_cache_bytes() const override { return device_->most_cache_bytes(); }
    void set_timer(StepTimer* timer, bool later) override {
        watch_.timer = timer;
        watch_.later = later;
    }
    bool report_times() override {
        return watch_.timer != nullptr && watch_.later && runner_.report_times(*watch_.timer);
    }
    void set_ranges(Ranges ranges) override { watch_.ranges = ranges; }
    void set_observer(std::function<void(std::string_view, const Tensor&)> f) override {
        watch_.observer = std::move(f);
    }

private:
    template <class F>
    Status guarded(const F& run) noexcept;
    Status failed(ErrorCode code, const char* text) noexcept;
    void prepare_or_throw(std::span<const Shape> inputs);
    void run_or_throw(std::span<const Tensor> inputs, std::span<Tensor> outputs);
    [[noreturn]] void fail_for_memory(const Error& e, std::span<const Shape> inputs);
    std::string what_would_fit(std::span<const Shape> inputs, int64_t available);
    void enqueue_or_throw(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                          const OutputMemory& memory);
    void run_captured(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                      const OutputMemory& memory);
    void run_bound(std::span<const Binding> inputs, std::span<Binding> outputs,
                   const OutputMemory& memory);
    std::byte* room(GrowingBuffer& buffer, int64_t bytes) const;
    void keep_in_cache();
    int64_t bytes_of(Value v, const Shape& shape) const;
    void bind_input(const Binding& b, size_t i);
    void bind_output(Binding& b, size_t i, std::span<const Binding> inputs,
                     const OutputMemory& memory);
    void give_output(Binding& b, size_t i, const OutputMemory& memory);
    void take_inputs(std::span<const Tensor> inputs);
    void check_output(const Tensor& t, const Shape& shape, size_t i) const;
    void aim_output(Tensor& t, size_t i, std::span<const Tensor> inputs);
    void finish_output(Tensor& t, size_t i);

    std::shared_ptr<const Program> program_;
    std::shared_ptr<Device> device_;
    Runner runner_;
    bool caller_is_asked_ = false; // for an output's memory: a refusal says nothing of the device
    std::vector<Shape> shapes_;
    std::vector<std::optional<Shape>> results_; // by output, under those shapes
    std::vector<const std::byte*> pointers_;
    std::vector<ResultSlot> slots_;
    std::deque<GrowingBuffer> input_buffers_; // on a device of its own
    std::deque<GrowingBuffer> output_buffers_;
    RunWatch watch_;
    int64_t cache_limit_ = 0;
    bool is_captured_ = false; // the run that goes on
    RunTimes times_;
    std::string error_;
};

} // namespace ingot::plan
