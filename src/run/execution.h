// SPDX-License-Identifier: Apache-2.0
// ProgramExecution: an Execution on any Device. run() takes host tensors; where the device has
// memory of its own, they are copied. enqueue() takes addresses on the device.
#pragma once

#include "base/error.h"
#include "plan/backend.h"
#include "plan/run_settings.h"
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
    std::string plan_text() override { return runner_.plan_text(); }
    /// The plan of plan_text().
    std::vector<StepReport> report() { return runner_.report(); }
    MemoryUse memory_use() const override;
    void give_back_memory() override;
    int64_t activation_bytes(std::span<const Shape> inputs) override;
    const RunSettings& settings() const override { return watch_; }
    void configure(RunSettings settings) override;
    RunTimes times() const override { return times_; }
    bool capturable(std::span<const Shape> inputs) const override {
        return runner_.can_repeat(inputs) && !device_->is_host();
    }
    bool is_captured(void* stream) const override {
        CallerStreams* streams = device_->parts().streams;
        return streams != nullptr && streams->is_captured(stream);
    }
    int64_t most_cache_bytes() const override {
        const CacheWindow* cache = device_->parts().cache;
        return cache == nullptr ? 0 : cache->most_bytes();
    }
    bool report_times() override {
        return watch_.timer != nullptr && watch_.times_later && runner_.report_times(*watch_.timer);
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
    void check_errors(bool waits);
    void end_uploads();
    int64_t bytes_of(Value v, const Shape& shape) const;
    /// Whether two ranges of memory share bytes.
    static bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes);
    void bind_input(const Binding& b, size_t i);
    void bind_output(Binding& b, size_t i, std::span<const Binding> inputs,
                     const OutputMemory& memory);
    void give_output(Binding& b, size_t i, const OutputMemory& memory);
    void take_inputs(std::span<const Tensor> inputs);
    void check_output(const Tensor& t, const Shape& shape, size_t i) const;
    void bind_tensor(Tensor& t, size_t i, std::span<const Tensor> inputs);
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
    bool is_captured_ = false; // the run that goes on
    RunTimes times_;
    std::string error_;
};

} // namespace ingot::plan
