// SPDX-License-Identifier: Apache-2.0
#include "trtexec_runtime.h"

#include "NvInfer.h"
#include "api/options/run.h"
#include "api/tensorrt/runtime/lean_library.h"
#include "base/error.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "common.h"
#include "ingot.h"
#include "plan/run_settings.h"
#include "plugins.h"

#include <algorithm>
#include <chrono>

namespace ingot::tool {

namespace nv = nvinfer1;

namespace {

/// Keeps the library's errors and logs other messages.
class RuntimeLogger final : public nv::ILogger {
public:
    void log(Severity severity, const nv::AsciiChar* text) noexcept override {
        if (severity <= Severity::kERROR) {
            errors_ += (errors_.empty() ? "" : "; ") + std::string(text);
        } else if (severity == Severity::kWARNING) {
            warning(text);
        }
    }
    /// Errors: Unsupported with the logged errors, if `holds` is false.
    void check(bool holds, std::string_view what) {
        std::string text = std::exchange(errors_, {});
        require(holds, ErrorCode::Unsupported, text.empty() ? str(what, " failed") : text);
    }

private:
    std::string errors_;
};

Shape shape_of(const nv::Dims& d) {
    return Shape(d.d, d.d + std::max(d.nbDims, 0));
}

nv::Dims dims_of(const Shape& shape) {
    nv::Dims d{};
    require(shape.size() <= nv::Dims::MAX_DIMS, ErrorCode::Unsupported, "an input has ",
            shape.size(), " dimensions, the API has room for ", nv::Dims::MAX_DIMS);
    d.nbDims = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), d.d);
    return d;
}

/// Objects that outlive the engine's contexts, in the order of creation.
struct Loaded {
    const Backend* device = nullptr;
    RuntimeLogger logger;
    std::unique_ptr<nv::IRuntime> first;   // the library's own
    std::unique_ptr<nv::IRuntime> runtime; // of --leanDLLPath, for dispatch
    std::unique_ptr<nv::ICudaEngine> engine;
    std::shared_ptr<const Graph> graph;
    std::unique_ptr<const Storage> storage; // array shapes here differ from the API's
};

/// A growing block of device memory; also the output allocator of data-dependent outputs.
class Block final : public nv::IOutputAllocator {
public:
    explicit Block(const Backend& device) : device_(&device) {}
    ~Block() override { device_->release(memory_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::byte* reserve(int64_t bytes) {
        if (bytes > bytes_ || memory_ == nullptr) {
            device_->release(std::exchange(memory_, nullptr));
            memory_ = device_->allocate(std::max<int64_t>(bytes, 1));
            bytes_ = bytes;
        }
        return memory_;
    }
    std::byte* data() const { return memory_; }
    const Shape& shape() const { return shape_; }
    void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t,
                                cudaStream_t) override {
        return reserve(static_cast<int64_t>(size));
    }
    void notifyShape(const char*, const nv::Dims& dims) noexcept override {
        shape_ = shape_of(dims);
    }

private:
    const Backend* device_;
    std::byte* memory_ = nullptr;
    int64_t bytes_ = 0;
    Shape shape_;
};

class LibraryExecution final : public Execution, nv::IProfiler {
public:
    explicit LibraryExecution(std::shared_ptr<Loaded> loaded)
        : loaded_(std::move(loaded)), graph_(*loaded_->graph),
          context_(loaded_->engine->createExecutionContext()) {
        loaded_->logger.check(context_ != nullptr, "IEngine::createExecutionContext");
        for (size_t i = 0; i < graph_.inputs().size() + graph_.output_names().size(); ++i) {
            blocks_.push_back(std::make_unique<Block>(*loaded_->device));
        }
    }

    void prepare(std::span<const Shape> inputs) override {
        std::vector<Shape> shapes = loaded_->storage->tensor_shapes(inputs);
        for (size_t i = 0; i < shapes.size(); ++i) {
            check(context_->setInputShape(name_of(i), dims_of(shapes[i])), "setInputShape");
        }
    }
    std::optional<Shape> output_shape(size_t output) const override {
        Shape s = shape_of(context_->getTensorShape(graph_.output_names()[output].c_str()));
        bool known = std::find(s.begin(), s.end(), -1) == s.end();
        return known ? std::optional(stored(output, s)) : std::nullopt;
    }
    Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept override {
        try {
            run_or_throw(inputs, outputs);
            return {};
        } catch (const Error& e) {
            error_ = e.what();
            return {e.code(), "the runtime failed"};
        } catch (const std::exception& e) {
            error_ = e.what();
            return {ErrorCode::OutOfMemory, "the runtime failed"};
        }
    }
    Status enqueue(std::span<const Binding>, std::span<Binding>, void*,
                   const OutputMemory&) noexcept override {
        error_ = "runs of another runtime are not enqueued";
        return {ErrorCode::Unsupported, "not enqueued"};
    }
    Status wait() noexcept override { return {}; }
    const std::string& error() const noexcept override { return error_; }

    std::string plan_text() override { return ""; } // the library reports layers only
    std::vector<StepInfo> steps() const override {
        std::unique_ptr<nv::IEngineInspector> inspector(loaded_->engine->createEngineInspector());
        inspector->setExecutionContext(context_.get());
        std::vector<StepInfo> all;
        for (int32_t i = 0; i < loaded_->engine->getNbLayers(); ++i) {
            const char* text =
                inspector->getLayerInformation(i, nv::LayerInformationFormat::kONELINE);
            StepInfo& s = all.emplace_back();
            s.name = text == nullptr ? "" : text;
            while (!s.name.empty() && s.name.back() == '\n') {
                s.name.pop_back();
            }
        }
        return all;
    }
    MemoryUse memory_use() const override {
        MemoryUse use;
        use.activations = std::max<int64_t>(loaded_->engine->getDeviceMemorySizeV2(), 0);
        return use;
    }
    void give_back_memory() override {}
    int64_t activation_bytes(std::span<const Shape> inputs) override {
        prepare(inputs);
        return memory_use().activations;
    }
    const RunSettings& settings() const override { return settings_; }
    void configure(RunSettings settings) override {
        if (settings.activations.data != nullptr || settings.memory != nullptr) {
            refuse("memory of the caller's");
        }
        if (settings.communicator != nullptr) {
            refuse("a communicator");
        }
        if (settings.observer) {
            refuse("writing tensors of the graph");
        }
        settings_ = std::move(settings);
        context_->setProfiler(settings_.timer == nullptr ? nullptr : this);
    }
    RunTimes times() const override { return times_; }

private:
    using Clock = std::chrono::steady_clock;

    [[noreturn]] static void refuse(std::string_view what) {
        fail(ErrorCode::Unsupported, what, " needs --useRuntime=full");
    }
    void check(bool holds, std::string_view what) const {
        loaded_->logger.check(holds, str("IExecutionContext::", what));
    }
    const char* name_of(size_t input) const {
        return graph_.value_name(graph_.inputs()[input]).c_str();
    }
    void reportLayerTime(const char* layer, float ms) noexcept override {
        if (settings_.timer != nullptr) {
            settings_.timer->step({layer, "", "", {}, {}}, static_cast<double>(ms));
        }
    }
    Shape stored(size_t output, const Shape& shape) const {
        return storage_shape(loaded_->storage->formats().output(output), shape);
    }
    Block& output_block(size_t i) { return *blocks_[graph_.inputs().size() + i]; }

    void run_or_throw(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
        auto ms = [from = Clock::now()]() mutable {
            std::chrono::duration<double, std::milli> part = Clock::now() - from;
            from = Clock::now();
            return part.count();
        };
        bind(inputs, outputs.size());
        times_.to_device = ms();
        check(context_->enqueueV3(nullptr), "enqueueV3");
        times_.enqueue = ms();
        std::byte last{};
        Block& any = inputs.empty() ? output_block(0) : *blocks_[0];
        loaded_->device->read(&last, any.data(), 1); // waits for the default stream
        times_.compute = times_.enqueue + ms();
        for (size_t i = 0; i < outputs.size(); ++i) {
            take_output(i, outputs[i]);
        }
        times_.to_host = ms();
    }
    void bind(std::span<const Tensor> inputs, size_t outputs) {
        std::vector<Shape> shapes;
        for (const Tensor& t : inputs) {
            shapes.push_back(t.shape());
        }
        prepare(shapes);
        inputs = inputs.subspan(loaded_->storage->sizes_before());
        for (size_t i = 0; i < inputs.size(); ++i) {
            std::span<const std::byte> bytes = inputs[i].bytes();
            std::byte* to = blocks_[i]->reserve(static_cast<int64_t>(bytes.size()));
            loaded_->device->write(to, bytes.data(), bytes.size());
            check(context_->setTensorAddress(name_of(i), to), "setTensorAddress");
        }
        for (size_t i = 0; i < outputs; ++i) {
            const char* name = graph_.output_names()[i].c_str();
            std::optional<Shape> shape = output_shape(i);
            Block& block = output_block(i);
            if (!shape) {
                check(context_->setOutputAllocator(name, &block), "setOutputAllocator");
                continue;
            }
            DType dtype = graph_.type(graph_.outputs()[i]).dtype;
            std::byte* to = block.reserve(static_cast<int64_t>(byte_size(dtype, count_of(*shape))));
            check(context_->setTensorAddress(name, to), "setTensorAddress");
        }
    }
    void take_output(size_t i, Tensor& to) {
        Block& block = output_block(i);
        std::optional<Shape> known = output_shape(i);
        Shape shape = known ? *known : stored(i, block.shape());
        if (!to.defined()) {
            to = Tensor::empty(graph_.type(graph_.outputs()[i]).dtype, shape);
        }
        std::span<std::byte> bytes = to.mutable_bytes();
        loaded_->device->read(bytes.data(), block.data(), bytes.size());
    }

    std::shared_ptr<Loaded> loaded_;
    const Graph& graph_;
    std::unique_ptr<nv::IExecutionContext> context_;
    std::vector<std::unique_ptr<Block>> blocks_; // of inputs, then of outputs
    RunSettings settings_;
    RunTimes times_;
    std::string error_;
};

class LibraryExecutable final : public Executable {
public:
    explicit LibraryExecutable(std::shared_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
    std::unique_ptr<Execution> create_execution() const override {
        return std::make_unique<LibraryExecution>(loaded_);
    }
    const Graph& lowered() const override { return *loaded_->graph; }
    size_t packed_bytes() const override { return 0; }

private:
    std::shared_ptr<Loaded> loaded_;
};

class LibraryBackend final : public Backend {
public:
    explicit LibraryBackend(std::shared_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
    std::string_view name() const override { return loaded_->device->name(); }
    std::string description() const override { return loaded_->device->description(); }
    int compute_capability() const override { return loaded_->device->compute_capability(); }
    DeviceMemoryInfo memory() const override { return loaded_->device->memory(); }
    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph>,
                                              const CompileOptions&) const override {
        return std::make_shared<LibraryExecutable>(loaded_);
    }

private:
    std::shared_ptr<Loaded> loaded_;
};

/// A library of this release: beside the command, in lib/ next to its folder, or on the loader's
/// path.
api::LeanLibrary open_library(const std::string& file) {
    for (const std::string& path :
         {str(own_folder(), '/', file), str(own_folder(), "/../lib/", file)}) {
        std::string problem;
        if (SharedLibrary::open(path, problem)) {
            return api::LeanLibrary::open(path);
        }
    }
    return api::LeanLibrary::open(file);
}

/// Gives the command's plugins to the library's engines.
void lend_plugins(nv::IRuntime& runtime) {
    int32_t count = 0;
    nv::IPluginCreatorInterface* const* all = getPluginRegistry()->getAllCreators(&count);
    for (int32_t i = 0; i < count; ++i) {
        runtime.getPluginRegistry().registerCreator(*all[i], "");
    }
}

void say_what_is_left_out(const TrtexecRun& run) {
    std::vector<std::string> names;
    for (std::string_view field :
         {"tune", "tune_budget", "force_tactic", "specialise", "arch", "memory_limit", "no_library",
          "runtime_cache_file", "timing_cache_file", "error_on_timing_miss", "no_cuda_graph",
          "graph_strategy", "priority", "cpu_threads", "no_tf32", "streaming_budget", "nvtx",
          "cache_ratio", "timeline"}) {
        for (const OptionRow& r : option_rows()) {
            if (r.field == field && run.t.has(field)) {
                names.push_back(split_names(r.names).front());
            }
        }
    }
    if (!names.empty()) {
        warning(str(join(names, ", "), names.size() == 1 ? " has" : " have",
                    " no effect with --useRuntime=", run.t.o.run().use_runtime,
                    ": that library runs the engine with its own defaults"));
    }
}

} // namespace

void choose_runtime(TrtexecRun& run) {
    const Options& o = run.t.o;
    if (o.run().use_runtime == "full") {
        return;
    }
    require(run.engine->result_count() == run.engine->graph().outputs().size(),
            ErrorCode::Unsupported, "tensors for debugging need --useRuntime=full");
    bool lean = o.run().use_runtime == "lean";
    api::LeanLibrary library = lean && !o.run().lean_path.empty()
                                   ? api::LeanLibrary::open(o.run().lean_path)
                                   : open_library(str("libingot_", o.run().use_runtime, ".so"));
    auto loaded = std::make_shared<Loaded>();
    loaded->device = run.backend;
    loaded->first = library.create_runtime(&loaded->logger);
    loaded->logger.check(loaded->first != nullptr, "createInferRuntime");
    nv::IRuntime* runtime = loaded->first.get();
    if (!lean && !o.run().lean_path.empty()) {
        loaded->runtime.reset(runtime->loadRuntime(o.run().lean_path.c_str()));
        loaded->logger.check(loaded->runtime != nullptr, "IRuntime::loadRuntime");
        runtime = loaded->runtime.get();
    }
    bool numbered = o.run().device.find_first_not_of("0123456789") == std::string::npos;
    bool cpu = run.on_cpu();
    library.set_device(*runtime, static_cast<int32_t>(cpu ? Device::kCPU : Device::kGPU),
                       cpu || !numbered ? 0 : std::stoi(o.run().device));
    lend_plugins(*runtime);
    AlignedBytes bytes = engine_bytes(*run.engine);
    loaded->engine.reset(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    loaded->logger.check(loaded->engine != nullptr, "IRuntime::deserializeCudaEngine");
    loaded->graph = run.engine->graph_ref();
    loaded->storage = std::make_unique<const Storage>(loaded->graph, run.engine->formats());
    info(str("The engine is run by ", library.path(), " of Ingot ", library.version()));
    say_what_is_left_out(run);
    static std::unique_ptr<LibraryBackend> backend;
    backend = std::make_unique<LibraryBackend>(std::move(loaded));
    run.backend = backend.get();
}

} // namespace ingot::tool
