// SPDX-License-Identifier: Apache-2.0
#include "run/execution.h"

#include "base/integers.h"
#include "base/log.h"
#include "ops/collective.h"
#include "ops/evaluator.h"

#include <algorithm>
#include <functional>

namespace ingot::plan {

ProgramExecution::ProgramExecution(std::shared_ptr<const Program> program,
                                   std::shared_ptr<Device> device)
    : program_(std::move(program)), device_(std::move(device)), runner_(program_, *device_, {}) {
    watch_.ranges = program_->options.ranges;
    pointers_.resize(program_->graph->inputs().size());
    slots_.resize(program_->graph->outputs().size());
    results_.resize(slots_.size());
    for (size_t i = 0; i < pointers_.size(); ++i) {
        input_buffers_.emplace_back(*device_);
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
        output_buffers_.emplace_back(*device_);
    }
}

void ProgramExecution::prepare(std::span<const Shape> inputs) {
    try {
        prepare_or_throw(inputs);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::OutOfMemory) {
            fail_for_memory(e, inputs);
        }
        throw;
    }
}

void ProgramExecution::prepare_or_throw(std::span<const Shape> inputs) {
    shapes_.clear(); // a failure leaves nothing prepared
    runner_.prepare(inputs);
    for (size_t i = 0; i < results_.size(); ++i) {
        results_[i] = runner_.result_shape(i);
    }
    shapes_.assign(inputs.begin(), inputs.end());
}

/// Throws the failure again with what these shapes need and what would fit.
void ProgramExecution::fail_for_memory(const Error& e, std::span<const Shape> inputs) {
    std::string advice;
    // Memory taken for these shapes already may be missing for the others.
    runner_.give_back_memory();
    for (std::deque<GrowingBuffer>* list : {&input_buffers_, &output_buffers_}) {
        for (GrowingBuffer& b : *list) {
            b.give_back();
        }
    }
    try {
        const DeviceBudget* budget = device_->parts().budget;
        int64_t available = budget == nullptr ? -1 : budget->available();
        if (available >= 0) {
            advice = what_would_fit(inputs, available);
        }
    } catch (const Error& other) {
        log(LogLevel::Verbose, "what would fit is not known: ", other.what());
    }
    shapes_.clear();
    fail(ErrorCode::OutOfMemory, e.what(), advice);
}

std::string ProgramExecution::what_would_fit(std::span<const Shape> inputs, int64_t available) {
    const Graph& g = *program_->graph;
    Symbols symbols;
    std::string list;
    std::vector<std::string_view> names; // of sizes, in order
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Type& t = g.type(g.inputs()[i]);
        bind_symbols(t.dims, inputs[i], symbols, "input");
        list += str(i == 0 ? "" : ", ", g.value_name(g.inputs()[i]), inputs[i]);
        for (const Dim& d : t.dims) {
            bool known = std::find(names.begin(), names.end(), d.symbol_name()) != names.end();
            if (!d.symbol_name().empty() && !known) {
                names.push_back(d.symbol_name());
            }
        }
    }
    auto needed = [&](std::string_view name, int64_t size) {
        Symbols other = symbols;
        other.insert_or_assign(std::string(name), size);
        std::vector<Shape> shapes;
        for (Value v : g.inputs()) {
            shapes.push_back(eval(g.type(v).dims, other));
        }
        return runner_.needed_bytes(shapes);
    };
    std::string text = str("; ", list, " take ", runner_.needed_bytes(inputs),
                           " bytes in all, and ", available, " can be had");
    for (std::string_view name : names) {
        int64_t now = symbols.find(name)->second;
        if (now < 2 || needed(name, 1) > available) {
            continue;
        }
        int64_t fits = 1;
        for (int64_t none = now; none - fits > 1;) {
            int64_t middle = fits + (none - fits) / 2;
            (needed(name, middle) <= available ? fits : none) = middle;
        }
        return str(text, ": ", name, " = ", fits, " instead of ", now, " fits, with ",
                   needed(name, fits));
    }
    return text;
}

std::optional<Shape> ProgramExecution::output_shape(size_t output) const {
    require(output < slots_.size(), ErrorCode::InvalidArgument, "output ", output,
            " does not exist, the graph has ", slots_.size());
    return shapes_.empty() && !pointers_.empty() ? std::nullopt : results_[output];
}

Status ProgramExecution::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept {
    return guarded([&] { run_or_throw(inputs, outputs); });
}

Status ProgramExecution::enqueue(std::span<const Binding> inputs, std::span<Binding> outputs,
                                 void* stream, const OutputMemory& memory) noexcept {
    return guarded([&] { enqueue_or_throw(inputs, outputs, stream, memory); });
}

Status ProgramExecution::wait() noexcept {
    return guarded([&] {
        device_->synchronize();
        check_errors(false);
    });
}

MemoryUse ProgramExecution::memory_use() const {
    MemoryUse use;
    use.activations = runner_.arena_bytes();
    use.scratch = runner_.scratch_bytes();
    use.streamed = runner_.streamed_bytes();
    for (const std::deque<GrowingBuffer>* list : {&input_buffers_, &output_buffers_}) {
        for (const GrowingBuffer& b : *list) {
            use.persistent += b.bytes();
        }
    }
    return use;
}

void ProgramExecution::give_back_memory() {
    device_->synchronize(); // what runs may use the memory before
    shapes_.clear();
    runner_.give_back_memory();
}

int64_t ProgramExecution::activation_bytes(std::span<const Shape> inputs) {
    shapes_.clear();
    return runner_.activation_bytes(inputs);
}

template <class F>
Status ProgramExecution::guarded(const F& run) noexcept {
    error_.clear();
    caller_is_asked_ = false;
    try {
        try {
            run();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::OutOfMemory && !shapes_.empty() && !caller_is_asked_) {
                fail_for_memory(e, std::vector<Shape>(shapes_));
            }
            throw;
        }
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
    } catch (const std::bad_alloc&) {
        error_.clear();
        return {ErrorCode::OutOfMemory, "the system has no memory left to say why the run failed"};
    }
    return {code, "the run failed; error() says why"};
}

void ProgramExecution::configure(RunSettings settings) {
    int64_t most = most_cache_bytes();
    require(settings.cache_limit >= 0 && settings.cache_limit <= most, ErrorCode::InvalidArgument,
            settings.cache_limit, " bytes of cache cannot be kept, at most ", most,
            " can on this device");
    if (settings.communicator != watch_.communicator) { // the last that may fail
        DeviceCommunication* communication = device_->parts().communication;
        require(communication != nullptr, ErrorCode::Unsupported,
                "data is exchanged between GPUs, and this runs on the CPU");
        if (settings.communicator != nullptr) {
            check_collectives(*program_->graph, communication->rank_in(settings.communicator));
        }
        communication->set_communicator(settings.communicator);
    }
    if (settings.memory != watch_.memory) {
        device_->set_memory(settings.memory);
    }
    if (settings.activations != watch_.activations) {
        device_->synchronize(); // what runs may use the memory before
        shapes_.clear();
        runner_.lend_memory(settings.activations.data, settings.activations.bytes);
    }
    bool other_limit = settings.cache_limit != watch_.cache_limit;
    static_cast<RunSettings&>(watch_) = std::move(settings);
    if (other_limit) {
        keep_in_cache();
    }
}

void ProgramExecution::keep_in_cache() {
    if (CacheWindow* cache = device_->parts().cache) {
        cache->keep(runner_.arena().data(), runner_.arena().bytes(), watch_.cache_limit);
    }
}

bool ProgramExecution::overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
    std::less<const std::byte*> before;
    const auto* x = static_cast<const std::byte*>(a);
    const auto* y = static_cast<const std::byte*>(b);
    return before(x, y + b_bytes) && before(y, x + a_bytes);
}

void ProgramExecution::check_errors(bool waits) {
    if (StepState* state = device_->parts().state) {
        state->check_errors(waits);
    }
}

void ProgramExecution::end_uploads() {
    if (ConstantUploads* uploads = device_->parts().uploads) {
        uploads->end_uploads();
    }
}

} // namespace ingot::plan
