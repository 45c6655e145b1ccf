// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

constexpr int32_t most_graphs = 16; // as many as a context keeps without a limit, and plans

/// 1, 2, 4, 8 ... and the limit.
std::vector<int64_t> powers_up_to(int64_t limit) {
    std::vector<int64_t> out;
    for (int64_t b = 1; b < limit; b *= 2) {
        out.push_back(b);
    }
    out.push_back(limit);
    return out;
}

/// Errors: Unsupported where no kernel can be compiled for the GPU. The log says what was tried;
/// clients may see the error, and it tells them no path.
void require_compiler(int32_t ordinal) {
    std::string ignored;
    std::vector<GpuInfo> gpus = find_gpus(ignored);
    auto i = static_cast<size_t>(ordinal);
    int capability = i < gpus.size() ? gpus[i].capability : 0;
    const char* problem = getCompilerProblem(capability);
    if (problem == nullptr) {
        return;
    }
    log(TRITONSERVER_LOG_ERROR, problem);
    fail(ErrorCode::Unsupported, "kernels have to be compiled for GPU ", ordinal,
         ", and nothing here can: install NVRTC 13 or 12 where the server runs, or name it in "
         "INGOT_NVRTC, or let the engine bring its kernels: 'ingot build --computeCapabilities=",
         capability, "' with --backend-config=ingot,trusted-keys=FILE or allow-engine-code=true");
}

} // namespace

void* OutputMemory::reallocateOutput(const char* /*name*/, void* /*current*/, uint64_t bytes,
                                     uint64_t /*alignment*/) noexcept {
    try {
        std::byte* memory = buffer_.reserve(bytes);
        return buffer_.gpu() == nullptr ? memory : buffer_.gpu()->engine_address(memory);
    } catch (...) {
        return nullptr;
    }
}

void OutputMemory::notifyShape(const char* /*name*/, const nv::Dims& dims) noexcept {
    dims_ = dims;
}

Runner::Runner(std::shared_ptr<const Engine> engine, const ModelConfig& config,
               std::unique_ptr<DeviceAllocator> device)
    : engine_(std::move(engine)), device_(std::move(device)),
      max_batch_size_(config.max_batch_size), buckets_(config.parameters.buckets),
      staging_(device_.get()) {
    if (max_batch_size_ > 0 && config.parameters.pads && !config.has_ragged()) {
        buckets_ = buckets_.empty() ? powers_up_to(max_batch_size_) : buckets_;
    }
    for (const EngineTensor& t : engine_->inputs) {
        std::vector<int64_t> dims = t.dims;
        for (const ConfigTensor& c : config.inputs) {
            if (c.name == t.name && !c.is_ragged && c.dims.size() <= dims.size()) {
                std::copy(c.dims.rbegin(), c.dims.rend(), dims.rbegin());
            }
        }
        for (const StateTensor& s : config.states) {
            if (s.input == t.name) {
                std::copy(s.dims.rbegin(), s.dims.rend(), dims.rbegin());
            }
        }
        configured_.push_back(dims);
        roles_.push_back({config.is_ragged(t.name), config.find_batch_input(t.name)});
        inputs_.emplace_back(t.on_host ? nullptr : device_.get());
    }
    make_context(config);
    if (device_ != nullptr) {
        stream_ = gpu()->create_stream(RunPriority::Normal);
    }
}

void Runner::make_context(const ModelConfig& config) {
    runtime_config_.reset(engine_->engine->createRuntimeConfig());
    if (runtime_config_ != nullptr && records()) {
        runtime_config_->setCudaGraphStrategy(nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
        setRecordFirstRun(*runtime_config_, true);
        setGraphLimit(*runtime_config_, most_graphs); // which counts them
        // Kernels are compiled when nobody else wants the CPU: other models serve meanwhile. Runs
        // are as urgent as their stream.
        setPriority(*runtime_config_, Priority::kLOW);
    }
    context_.reset(runtime_config_ == nullptr
                       ? nullptr
                       : engine_->engine->createExecutionContext(runtime_config_.get()));
    engine_->logger->require_done(context_ != nullptr, ErrorCode::Unsupported,
                                  "no execution context could be made");
    context_->setErrorRecorder(&errors_);
    if (device_ != nullptr && engine_->target.device == Device::kGPU) {
        context_->setTemporaryStorageAllocator(device_.get());
    }
    if (config.profile != 0 && !context_->setOptimizationProfileAsync(config.profile, nullptr)) {
        errors_.raise("the optimisation profile cannot be chosen");
    }
    for (const EngineTensor& t : engine_->outputs) {
        outputs_.push_back(std::make_unique<OutputMemory>(t.on_host ? nullptr : device_.get()));
        output_staging_.emplace_back(device_.get(), true);
        output_parts_.emplace_back();
        if (!context_->setOutputAllocator(t.name.c_str(), outputs_.back().get())) {
            errors_.raise("an output cannot be given memory");
        }
    }
}

void Runner::settle() noexcept {
    if (stream_ == nullptr) {
        return;
    }
    try {
        gpu()->wait_for_stream(stream_);
        staging_.reset();
    } catch (const std::exception&) { // the GPU is lost: nothing runs on it
    }
}

Runner::~Runner() {
    settle();
    context_.reset();
    if (stream_ != nullptr) {
        gpu()->release_stream(stream_);
    }
}

int64_t Runner::padded_rows(int64_t rows) const {
    auto at = std::lower_bound(buckets_.begin(), buckets_.end(), rows);
    return at == buckets_.end() ? rows : *at;
}

std::byte* Runner::input_memory(size_t input, size_t bytes) {
    parts_.clear(); // of an input that was not completed
    return inputs_[input].reserve(bytes);
}

/// The driver would copy from pageable memory through a buffer of its own too, and under its lock;
/// and a body's parts may have some KiB, for each of which a transfer would take longer than the
/// copy.
void Runner::send_parts(size_t input) {
    for_each_stretch(parts_, [&](size_t begin, size_t, PageableParts stretch) {
        staging_.send(stretch, inputs_[input].data() + begin, copier_, stream_);
    });
    parts_.clear();
}

void Runner::write_input(size_t input, size_t offset, const void* source, size_t bytes,
                         TRITONSERVER_MemoryType memory) {
    std::byte* target = inputs_[input].data() + offset;
    if (bytes == 0) {
        return;
    }
    if (!takes_host_memory(input) && memory == TRITONSERVER_MEMORY_CPU) {
        auto* pageable = static_cast<std::byte*>(const_cast<void*>(source));
        parts_.push_back({offset, pageable, bytes});
    } else if (!takes_host_memory(input)) {
        gpu()->copy(target, source, bytes, stream_);
    } else if (memory == TRITONSERVER_MEMORY_GPU) {
        gpu()->copy(target, source, bytes, nullptr); // the engine reads it when it is called
    } else {
        std::memcpy(target, source, bytes);
    }
}

void Runner::complete_input(size_t input, size_t offset, size_t bytes) {
    send_parts(input);
    if (bytes == 0) {
        return;
    }
    std::byte* target = inputs_[input].data() + offset;
    if (takes_host_memory(input)) {
        std::memset(target, 0, bytes);
    } else {
        gpu()->set_zero(target, bytes, stream_);
    }
}

void Runner::run(const Shapes& shapes, const std::vector<const void*>& addresses) {
    for (std::vector<PageablePart>& parts : output_parts_) {
        parts.clear(); // of a run that was not waited for
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
        const char* name = engine_->inputs[i].name.c_str();
        const void* address = addresses[i];
        if (!takes_host_memory(i)) {
            address = gpu()->engine_address(const_cast<void*>(address));
        }
        if (!context_->setInputShape(name, to_dims(shapes[i])) ||
            !context_->setInputTensorAddress(name, address)) {
            errors_.raise("an input was refused");
        }
    }
    bool is_first = !is_prepared(shapes);
    auto begin = std::chrono::steady_clock::now();
    // The CPU backend takes no stream: the run is complete when the call returns.
    void* stream = device_ == nullptr ? nullptr : gpu()->engine_stream(stream_);
    if (!context_->enqueueV3(static_cast<cudaStream_t>(stream))) {
        errors_.raise("the run failed");
    }
    if (is_first) {
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        preparing_seconds_ += taken.count();
        prepared_.insert(shapes);
    }
}

void Runner::read_output(size_t output, size_t offset, void* target, size_t bytes,
                         TRITONSERVER_MemoryType memory) {
    const Buffer& from = outputs_[output]->buffer();
    if (from.gpu() != nullptr && memory == TRITONSERVER_MEMORY_CPU) {
        reserve_output_staging(output);
        output_parts_[output].push_back({offset, static_cast<std::byte*>(target), bytes});
    } else if (from.gpu() != nullptr || memory == TRITONSERVER_MEMORY_GPU) {
        gpu()->copy(target, from.data() + offset, bytes, stream_);
    } else {
        std::memcpy(target, from.data() + offset, bytes);
    }
}

void Runner::reserve_output_staging(size_t output) {
    output_staging_[output].reserve(outputs_[output]->buffer().bytes());
}

/// A transfer into pageable memory would keep this thread in the driver until the run is complete,
/// and with it the runs and copies of other instances. Through pinned memory only the copy itself
/// is left to the host, while another instance's batch runs.
void Runner::fetch_outputs() {
    for (size_t i = 0; i < output_parts_.size(); ++i) {
        const std::byte* memory = outputs_[i]->buffer().data();
        for_each_stretch(output_parts_[i], [&](size_t begin, size_t bytes, PageableParts) {
            gpu()->copy(output_staging_[i].data() + begin, memory + begin, bytes, stream_);
        });
    }
    gpu()->wait_for_stream(stream_);
    staging_.reset();
    for (size_t i = 0; i < output_parts_.size(); ++i) {
        const std::byte* pinned = output_staging_[i].data();
        for_each_stretch(output_parts_[i], [&](size_t begin, size_t bytes, PageableParts stretch) {
            copier_.from_pinned(stretch, begin, begin + bytes, pinned + begin);
        });
        output_parts_[i].clear();
    }
}

int64_t Runner::bytes() const {
    if (device_ != nullptr) {
        return device_->bytes();
    }
    size_t bytes = 0;
    for (const Buffer& b : inputs_) {
        bytes += b.bytes();
    }
    for (const std::unique_ptr<OutputMemory>& o : outputs_) {
        bytes += o->buffer().bytes();
    }
    return static_cast<int64_t>(bytes);
}

void Runner::wait() {
    if (device_ != nullptr) {
        fetch_outputs();
    }
}

std::vector<int64_t> Runner::output_dims(size_t output) const {
    return to_vector(outputs_[output]->dims());
}

/// Shapes of a batch of so many rows, with sizes that the engine was tuned for where they are open.
bool Runner::warm_shapes(int64_t rows, Shapes& shapes, std::string& reason) const {
    shapes = configured_;
    for (size_t i = 0; i < shapes.size(); ++i) {
        const EngineTensor& t = engine_->inputs[i];
        if (may_lack(i)) {
            shapes[i] = t.initial->dims;
        }
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

/// So that no request waits for the driver to lock pages, or for threads to start.
void Runner::prepare_staging(const Shapes& shapes) {
    std::vector<size_t> sizes;
    for (size_t i = 0; i < shapes.size(); ++i) {
        if (!takes_host_memory(i)) {
            sizes.push_back(static_cast<size_t>(element_count(shapes[i])) *
                            element_bytes(engine_->inputs[i].type));
            copier_.expect(std::min(sizes.back(), InputStaging::most_half));
        }
    }
    staging_.prepare(sizes, stream_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i]->buffer().gpu() != nullptr) {
            reserve_output_staging(i);
            copier_.expect(output_staging_[i].bytes());
        }
    }
}

/// Whether runs are recorded as CUDA graphs.
bool Runner::records() const {
    return engine_->target.device == Device::kGPU;
}

void Runner::warm_one(const Shapes& shapes) {
    std::vector<const void*> addresses;
    for (size_t i = 0; i < shapes.size(); ++i) {
        size_t bytes =
            static_cast<size_t>(element_count(shapes[i])) * element_bytes(engine_->inputs[i].type);
        addresses.push_back(input_memory(i, bytes));
        size_t given = may_lack(i) ? bytes : 0; // else zeros
        if (given > 0) {
            write_input(i, 0, engine_->inputs[i].initial->bytes.data(), given,
                        TRITONSERVER_MEMORY_CPU);
        }
        complete_input(i, given, bytes - given);
    }
    int32_t graphs = countGraphs(*runtime_config_);
    run(shapes, addresses);
    wait();
    if (records() && countGraphs(*runtime_config_) == graphs) { // the second run may be recorded
        run(shapes, addresses);
        wait();
    }
    prepare_staging(shapes);
}

size_t Runner::warm_up(std::string& reason) {
    std::vector<int64_t> rows = buckets_;
    if (rows.empty()) {
        rows.push_back(std::max<int64_t>(max_batch_size_, 1));
    }
    size_t count = warm_all(rows, reason);
    if (device_ != nullptr) {
        take_precedence();
    }
    return count;
}

/// From here on runs go before warm-ups, which other models begin meanwhile, on the same GPU.
void Runner::take_precedence() {
    void* urgent = gpu()->create_stream(RunPriority::High);
    gpu()->release_stream(std::exchange(stream_, urgent));
}

size_t Runner::warm_all(std::vector<int64_t> rows, std::string& reason) {
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
            if (e.code() == ErrorCode::Unsupported && engine_->target.device == Device::kGPU) {
                require_compiler(engine_->target.ordinal);
            }
            reason = str("a run of zeros failed: ", e.what()); // values may matter to the model
        }
    }
    return count;
}

} // namespace ingot::triton
