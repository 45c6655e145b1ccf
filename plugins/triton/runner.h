// SPDX-License-Identifier: Apache-2.0
// Runner: a context of an engine with memory for inputs and outputs, that has planned and run the
// row counts it is meant for before the first request comes. On a GPU its memory and stream are
// there, and runs are recorded as CUDA graphs.
#pragma once

#include "plugins/triton/config.h"
#include "plugins/triton/staging.h"

#include <memory>
#include <set>
#include <span>

namespace ingot::triton {

using Shapes = std::vector<std::vector<int64_t>>; // of all inputs, in the engine's order

/// Gives an output its memory, and keeps the shape that it turned out to have.
class OutputMemory final : public nvinfer1::IOutputAllocator {
public:
    explicit OutputMemory(DeviceAllocator* device) : buffer_(device) {}
    void* reallocateOutput(const char* name, void* current, uint64_t bytes,
                           uint64_t alignment) noexcept override;
    void notifyShape(const char* name, const nvinfer1::Dims& dims) noexcept override;
    const Buffer& buffer() const { return buffer_; }
    const nvinfer1::Dims& dims() const { return dims_; }

private:
    Buffer buffer_;
    nvinfer1::Dims dims_{-1, {}};
};

/// One thread at a time.
class Runner {
public:
    /// `device`: where the engine runs; null: the CPU. The configuration outlives it. Errors: those
    /// of making a context.
    Runner(std::shared_ptr<const Engine> engine, const ModelConfig& config,
           std::unique_ptr<DeviceAllocator> device);
    ~Runner();
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    const Engine& engine() const { return *engine_; }
    DeviceMemory* gpu() const { return device_ == nullptr ? nullptr : &device_->gpu(); }
    /// Bytes of its context and buffers on the GPU; on the CPU, of its buffers.
    int64_t bytes() const;
    /// Seconds of runs that were the first of their shapes, which plan and compile.
    double preparing_seconds() const { return preparing_seconds_; }
    /// Whether requests of other sizes are put one behind another in an input.
    bool is_ragged(size_t input) const { return roles_[input].is_ragged; }
    /// Null for an input that clients send.
    const BatchInput* batch_input(size_t input) const { return roles_[input].made; }
    /// Whether a request may leave an input out, for its default.
    bool may_lack(size_t input) const {
        return max_batch_size_ == 0 && engine_->inputs[input].initial.has_value();
    }
    /// How many rows a batch of so many is padded to.
    int64_t padded_rows(int64_t rows) const;
    /// Plans and runs each bucket. Returns how many, or why none could be in `reason`.
    /// Errors: those of the device and of memory.
    size_t warm_up(std::string& reason);
    /// Whether an input may be read where the host has it.
    bool takes_host_memory(size_t input) const { return inputs_[input].gpu() == nullptr; }
    /// Memory of the runner's own for an input, of `bytes` bytes.
    std::byte* input_memory(size_t input, size_t bytes);
    /// Copies into that memory at an offset, at complete_input() at the latest, which ends an
    /// input; offsets rise. `source` in memory of the GPU stays as it is until wait() returns.
    void write_input(size_t input, size_t offset, const void* source, size_t bytes,
                     TRITONSERVER_MemoryType memory);
    /// Fills the rest with zeros, `bytes` bytes from the offset on.
    void complete_input(size_t input, size_t offset, size_t bytes);
    /// Runs; on a GPU it only begins. `addresses` of all inputs. Errors: what the engine reports.
    void run(const Shapes& shapes, const std::vector<const void*>& addresses);
    /// Copies from an output after the run; complete when wait() returns. Errors: OutOfMemory.
    void read_output(size_t output, size_t offset, void* target, size_t bytes,
                     TRITONSERVER_MemoryType memory);
    /// Waits for what a run that failed has queued: it may still use memory.
    void settle() noexcept;
    /// Waits until the run and all copies are complete. Errors: Device.
    void wait();
    /// Whether these shapes were run before, so that nothing is planned for them.
    bool is_prepared(const Shapes& shapes) const { return prepared_.count(shapes) != 0; }
    // The shape in the last run, until the next.
    std::vector<int64_t> output_dims(size_t output) const;

private:
    void make_context(const ModelConfig& config);
    bool warm_shapes(int64_t rows, Shapes& shapes, std::string& reason) const;
    size_t warm_all(std::vector<int64_t> rows, std::string& reason);
    void warm_one(const Shapes& shapes);
    bool records() const;
    void take_precedence();
    void send_parts(size_t input);
    void prepare_staging(const Shapes& shapes);
    void reserve_output_staging(size_t output);
    void fetch_outputs();

    std::shared_ptr<const Engine> engine_;
    std::unique_ptr<DeviceAllocator> device_;
    void* stream_ = nullptr; // of the GPU
    int64_t max_batch_size_;
    std::vector<int64_t> buckets_;
    struct InputRole {
        bool is_ragged;
        const BatchInput* made; // of the configuration
    };
    std::vector<InputRole> roles_; // of all inputs
    Shapes configured_;            // with the rows of a batch in front, -1
    ErrorList errors_;
    std::vector<Buffer> inputs_;
    InputStaging staging_;            // for inputs that come in pageable memory
    std::vector<PageablePart> parts_; // of the present input
    HostCopier copier_;
    std::vector<std::unique_ptr<OutputMemory>> outputs_;
    std::vector<Buffer> output_staging_;                  // pinned, for targets in pageable memory
    std::vector<std::vector<PageablePart>> output_parts_; // of each output, until wait()
    std::set<Shapes> prepared_;
    double preparing_seconds_ = 0;
    std::unique_ptr<nvinfer1::IRuntimeConfig> runtime_config_; // of the context
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
};

} // namespace ingot::triton
