// SPDX-License-Identifier: Apache-2.0
// Runner: a context of an engine with memory for inputs and outputs, that has planned and run the
// row counts it is meant for before the first request comes.
#pragma once

#include "plugins/triton/config.h"

#include <cstdlib>
#include <memory>
#include <set>

namespace ingot::triton {

using Shapes = std::vector<std::vector<int64_t>>; // of all inputs, in the engine's order

/// Memory aligned for full speed, that only grows. Not thread safe.
class Buffer {
public:
    /// At least `bytes`; what was in it is lost. Errors: OutOfMemory.
    std::byte* reserve(size_t bytes);
    std::byte* data() const { return memory_.get(); }

private:
    struct Free {
        void operator()(std::byte* p) const { std::free(p); } // NOLINT(*-no-malloc)
    };
    std::unique_ptr<std::byte, Free> memory_;
    size_t bytes_ = 0;
};

/// Gives an output its memory, and keeps the shape that it turned out to have.
class OutputMemory final : public nvinfer1::IOutputAllocator {
public:
    void* reallocateOutput(const char* name, void* current, uint64_t bytes,
                           uint64_t alignment) noexcept override;
    void notifyShape(const char* name, const nvinfer1::Dims& dims) noexcept override;
    const std::byte* data() const { return buffer_.data(); }
    const nvinfer1::Dims& dims() const { return dims_; }

private:
    Buffer buffer_;
    nvinfer1::Dims dims_{-1, {}};
};

/// One thread at a time.
class Runner {
public:
    /// Errors: those of making a context.
    Runner(std::shared_ptr<const Engine> engine, const ModelConfig& config);
    ~Runner();
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    const Engine& engine() const { return *engine_; }
    /// How many rows a batch of so many is padded to.
    int64_t padded_rows(int64_t rows) const;
    /// Plans and runs each bucket. Returns how many, or why none could be in `reason`.
    /// Errors: those of the device and of memory.
    size_t warm_up(std::string& reason);
    /// Memory of the runner's own for an input.
    std::byte* input_memory(size_t input, size_t bytes);
    /// Runs and waits. `addresses` of all inputs. Errors: what the engine reports.
    void run(const Shapes& shapes, const std::vector<const void*>& addresses);
    /// Whether these shapes were run before, so that nothing is planned for them.
    bool is_prepared(const Shapes& shapes) const { return prepared_.count(shapes) != 0; }
    // The shape in the last run, until the next.
    std::vector<int64_t> output_dims(size_t output) const;
    const std::byte* output_data(size_t output) const;

private:
    bool warm_shapes(int64_t rows, Shapes& shapes, std::string& reason) const;
    void warm_one(const Shapes& shapes);

    std::shared_ptr<const Engine> engine_;
    int64_t max_batch_size_;
    std::vector<int64_t> buckets_;
    Shapes configured_; // with the rows of a batch in front, -1
    ErrorList errors_;
    std::vector<Buffer> inputs_;
    std::vector<std::unique_ptr<OutputMemory>> outputs_;
    std::set<Shapes> prepared_;
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
};

} // namespace ingot::triton
