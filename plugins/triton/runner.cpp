// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/runner.h"

#include <algorithm>
#include <cstring>

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

constexpr size_t alignment = 256;

/// 1, 2, 4, 8 ... and the limit.
std::vector<int64_t> powers_up_to(int64_t limit) {
    std::vector<int64_t> out;
    for (int64_t b = 1; b < limit; b *= 2) {
        out.push_back(b);
    }
    out.push_back(limit);
    return out;
}

} // namespace

std::byte* Buffer::reserve(size_t bytes) {
    if (bytes > bytes_ || memory_ == nullptr) {
        size_t rounded = (std::max(bytes, alignment) + alignment - 1) / alignment * alignment;
        memory_.reset();
        bytes_ = 0;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
        require(memory_ != nullptr, ErrorCode::OutOfMemory, "no host memory for ", rounded,
                " bytes");
        bytes_ = rounded;
    }
    return memory_.get();
}

void* OutputMemory::reallocateOutput(const char* /*name*/, void* /*current*/, uint64_t bytes,
                                     uint64_t /*alignment*/) noexcept {
    try {
        return buffer_.reserve(bytes);
    } catch (...) {
        return nullptr;
    }
}

void OutputMemory::notifyShape(const char* /*name*/, const nv::Dims& dims) noexcept {
    dims_ = dims;
}

Runner::Runner(std::shared_ptr<const Engine> engine, const ModelConfig& config)
    : engine_(std::move(engine)), max_batch_size_(config.max_batch_size),
      buckets_(config.parameters.buckets), inputs_(engine_->inputs.size()) {
    if (max_batch_size_ > 0 && config.parameters.pads) {
        buckets_ = buckets_.empty() ? powers_up_to(max_batch_size_) : buckets_;
    }
    for (const EngineTensor& t : engine_->inputs) {
        std::vector<int64_t> dims = t.dims;
        for (const ConfigTensor& c : config.inputs) {
            if (c.name == t.name && c.dims.size() <= dims.size()) {
                std::copy(c.dims.rbegin(), c.dims.rend(), dims.rbegin());
            }
        }
        configured_.push_back(dims);
    }
    context_.reset(engine_->engine->createExecutionContext());
    require(context_ != nullptr, ErrorCode::Unsupported,
            engine_->logger->take_errors("no execution context could be made"));
    context_->setErrorRecorder(&errors_);
    if (config.profile != 0 && !context_->setOptimizationProfileAsync(config.profile, nullptr)) {
        errors_.raise("the optimisation profile cannot be chosen");
    }
    for (const EngineTensor& t : engine_->outputs) {
        outputs_.push_back(std::make_unique<OutputMemory>());
        if (!context_->setOutputAllocator(t.name.c_str(), outputs_.back().get())) {
            errors_.raise("an output cannot be given memory");
        }
    }
}

Runner::~Runner() = default;

int64_t Runner::padded_rows(int64_t rows) const {
    auto at = std::lower_bound(buckets_.begin(), buckets_.end(), rows);
    return at == buckets_.end() ? rows : *at;
}

std::byte* Runner::input_memory(size_t input, size_t bytes) {
    return inputs_[input].reserve(bytes);
}

void Runner::run(const Shapes& shapes, const std::vector<const void*>& addresses) {
    for (size_t i = 0; i < shapes.size(); ++i) {
        const char* name = engine_->inputs[i].name.c_str();
        if (!context_->setInputShape(name, to_dims(shapes[i])) ||
            !context_->setInputTensorAddress(name, addresses[i])) {
            errors_.raise("an input was refused");
        }
    }
    // The CPU backend takes no stream: the run is complete when the call returns.
    if (!context_->enqueueV3(nullptr)) {
        errors_.raise("the run failed");
    }
    prepared_.insert(shapes);
}

std::vector<int64_t> Runner::output_dims(size_t output) const {
    return to_vector(outputs_[output]->dims());
}

const std::byte* Runner::output_data(size_t output) const {
    return outputs_[output]->data();
}

/// Shapes of a batch of so many rows, with sizes that the engine was tuned for where they are open.
bool Runner::warm_shapes(int64_t rows, Shapes& shapes, std::string& reason) const {
    shapes = configured_;
    for (size_t i = 0; i < shapes.size(); ++i) {
        const EngineTensor& t = engine_->inputs[i];
        for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
            int64_t& size = shapes[i][axis];
            if (axis == 0 && max_batch_size_ > 0) {
                size = rows;
            } else if (size == -1 && !t.usual.empty()) {
                size = t.usual[axis];
            }
            if (size == -1) {
                reason = str("input '", t.name, "' has the open shape ", dims_text(t.dims),
                             " and the engine no profile that says which sizes to expect");
                return false;
            }
        }
    }
    return true;
}

void Runner::warm_one(const Shapes& shapes) {
    std::vector<const void*> addresses;
    for (size_t i = 0; i < shapes.size(); ++i) {
        size_t bytes =
            static_cast<size_t>(element_count(shapes[i])) * element_bytes(engine_->inputs[i].type);
        std::byte* memory = input_memory(i, bytes);
        std::memset(memory, 0, bytes);
        addresses.push_back(memory);
    }
    run(shapes, addresses);
}

size_t Runner::warm_up(std::string& reason) {
    std::vector<int64_t> rows = buckets_;
    if (rows.empty()) {
        rows.push_back(std::max<int64_t>(max_batch_size_, 1));
    }
    size_t count = 0;
    std::reverse(rows.begin(), rows.end()); // the largest first: memory grows once
    for (int64_t r : rows) {
        Shapes shapes;
        if (!warm_shapes(r, shapes, reason)) {
            return count;
        }
        try {
            warm_one(shapes);
            ++count;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::OutOfMemory || e.code() == ErrorCode::Device) {
                throw;
            }
            reason = str("a run of zeros failed: ", e.what()); // values may matter to the model
        }
    }
    return count;
}

} // namespace ingot::triton
