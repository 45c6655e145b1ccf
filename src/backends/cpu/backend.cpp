// SPDX-License-Identifier: Apache-2.0
// The CPU backend's face: compile, executions, and the translation of errors at the run's edge.

#include "backends/cpu/library.h"
#include "backends/cpu/lower.h"
#include "backends/cpu/simd/simd.h"
#include "plan/control.h"
#include "plan/copy.h"
#include "plan/runner.h"

namespace ingot {

namespace cpu {

namespace {

std::span<const KernelTable* const> tables() {
    static const std::vector<const KernelTable*> all = [] {
        std::span<const KernelTable* const> own = all_cpu_kernels();
        std::vector<const KernelTable*> list(own.begin(), own.end());
        list.push_back(&plan::control_kernels);
        return list;
    }();
    return all;
}

class CpuExecution : public Execution {
public:
    explicit CpuExecution(std::shared_ptr<const Program> program)
        : program_(std::move(program)), runner_(program_, host_device(), {}) {
        pointers_.resize(program_->graph->inputs().size());
        slots_.resize(program_->graph->outputs().size());
    }

    void prepare(std::span<const Shape> inputs) override {
        runner_.prepare(inputs);
        shapes_.assign(inputs.begin(), inputs.end());
    }

    std::optional<Shape> output_shape(size_t output) const override {
        require(output < slots_.size(), ErrorCode::InvalidArgument, "output ", output,
                " does not exist, the graph has ", slots_.size());
        return shapes_.empty() && !pointers_.empty() ? std::nullopt : runner_.result_shape(output);
    }

    Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept override {
        error_.clear();
        try {
            run_or_throw(inputs, outputs);
            return {};
        } catch (const Error& e) {
            return failed(e.code(), e.what());
        } catch (const std::bad_alloc&) {
            return failed(ErrorCode::OutOfMemory, "the system has no memory left");
        } catch (const std::exception& e) {
            return failed(ErrorCode::Internal, e.what());
        }
    }

    const std::string& error() const noexcept override { return error_; }
    std::vector<StepInfo> steps() const override { return runner_.steps(); }
    size_t arena_bytes() const override { return static_cast<size_t>(runner_.arena_bytes()); }
    void set_timer(StepTimer* timer) override { watch_.timer = timer; }
    void set_observer(std::function<void(std::string_view, const Tensor&)> f) override {
        watch_.observer = std::move(f);
    }

private:
    Status failed(ErrorCode code, const char* text) noexcept {
        try {
            error_ = text;
        } catch (const std::exception&) {
            error_.clear();
        }
        return {code, "the run failed; error() says why"};
    }

    void run_or_throw(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
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
            pointers_[i] = inputs[i].bytes().data();
        }
        if (!same || inputs.empty()) {
            std::vector<Shape> shapes;
            for (const Tensor& t : inputs) {
                shapes.push_back(t.shape());
            }
            prepare(shapes);
        }
        for (size_t i = 0; i < outputs.size(); ++i) {
            aim_output(outputs[i], i);
        }
        runner_.run(pointers_, slots_, watch_);
        for (size_t i = 0; i < outputs.size(); ++i) {
            finish_output(outputs[i], i);
        }
    }

    void check_output(const Tensor& t, const Shape& shape, size_t i) const {
        const Graph& g = *program_->graph;
        DType dtype = g.type(g.outputs()[i]).dtype;
        require(t.writable() && t.dtype() == dtype && t.shape() == shape,
                ErrorCode::InvalidArgument, "output '", g.output_names()[i], "' has to hold ",
                dtype, shape, ", got ", t.dtype(), t.shape(),
                t.writable() ? "" : ", which is read-only");
    }

    void aim_output(Tensor& t, size_t i) {
        slots_[i].data = nullptr;
        if (slots_[i].tensor.defined()) {
            slots_[i].tensor = {};
        }
        if (!t.defined()) {
            return;
        }
        if (std::optional<Shape> shape = runner_.result_shape(i)) {
            check_output(t, *shape, i);
            slots_[i].data = t.mutable_bytes().data();
        }
    }

    void finish_output(Tensor& t, size_t i) {
        if (!slots_[i].tensor.defined()) {
            return;
        }
        if (!t.defined()) {
            t = std::move(slots_[i].tensor);
            return;
        }
        check_output(t, slots_[i].tensor.shape(), i);
        std::span<const std::byte> from = slots_[i].tensor.bytes();
        std::copy(from.begin(), from.end(), t.mutable_bytes().data());
    }

    std::shared_ptr<const Program> program_;
    Runner runner_;
    std::vector<Shape> shapes_;
    std::vector<const std::byte*> pointers_;
    std::vector<ResultSlot> slots_;
    RunWatch watch_;
    std::string error_;
};

class CpuExecutable : public Executable {
public:
    explicit CpuExecutable(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
    std::unique_ptr<Execution> create_execution() const override {
        return std::make_unique<CpuExecution>(program_);
    }
    const Graph& lowered() const override { return *program_->graph; }
    size_t packed_bytes() const override { return program_->packs->bytes(); }

private:
    std::shared_ptr<const Program> program_;
};

class CpuBackend : public Backend {
public:
    std::string_view name() const override { return "cpu"; }

    std::string description() const override {
        const onednn::Library* library = onednn_library();
        return str(cpu_model(), ", ", ThreadPool::shared().size(), " threads, ",
                   cpu::name(instruction_set()),
                   library == nullptr ? std::string() : str(", ", library->name));
    }

    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        auto lowered = std::make_shared<const Graph>(lower(*graph, options));
        return std::make_shared<CpuExecutable>(make_program(
            std::move(lowered), cpu_kernels(), std::make_shared<PackCache>(), options));
    }
};

} // namespace

const KernelSet& cpu_kernels() {
    static const KernelSet set{"cpu", tables, plan::make_copy};
    return set;
}

} // namespace cpu

const Backend& cpu_backend() {
    static const cpu::CpuBackend backend;
    return backend;
}

} // namespace ingot
