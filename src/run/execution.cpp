// SPDX-License-Identifier: Apache-2.0
#include "run/execution.h"

#include "base/integers.h"
#include "base/log.h"
#include "ops/collective.h"
#include "ops/evaluator.h"

#include <algorithm>
#include <chrono>
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

namespace {

/// A run, for profilers.
struct Range {
    ProfilerRanges* told = nullptr;
    Range(const Device& d, Ranges ranges) {
        ProfilerRanges* all = d.parts().ranges;
        if (ranges != Ranges::None && all != nullptr && all->active()) {
            told = all;
            told->begin("ingot run");
        }
    }
    ~Range() {
        if (told != nullptr) {
            told->end();
        }
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

/// Whether two ranges of memory share bytes.
bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
    std::less<const std::byte*> before;
    const auto* x = static_cast<const std::byte*>(a);
    const auto* y = static_cast<const std::byte*>(b);
    return before(x, y + b_bytes) && before(y, x + a_bytes);
}

bool overlap(const Tensor& a, const Tensor& b) {
    return overlap(a.bytes().data(), static_cast<int64_t>(a.bytes().size()), b.bytes().data(),
                   static_cast<int64_t>(b.bytes().size()));
}

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
    Range range(*device_, watch_.ranges);
    if (is_captured(stream)) {
        run_captured(inputs, outputs, stream, memory);
        return;
    }
    if (watch_.cache_limit != 0) {
        keep_in_cache();
    }
    if (streams != nullptr) {
        streams->wait_for(stream);
    }
    run_bound(inputs, outputs, memory);
    if (streams != nullptr) {
        streams->let_wait(stream);
    }
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
    Range range(*device_, watch_.ranges);
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
    if (is_host && std::any_of(inputs.begin(), inputs.end(),
                               [&t](const Tensor& in) { return overlap(in, t); })) {
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
