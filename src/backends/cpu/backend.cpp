// SPDX-License-Identifier: Apache-2.0
// The CPU backend's interface: compile, executions, and the translation of errors to Status.

#include "backends/backends.h"
#include "backends/cpu/lower.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/options.h"
#include "backends/cpu/simd/simd.h"
#include "backends/cpu/source_step.h"
#include "plan/copy.h"
#include "run/control.h"
#include "run/execution.h"
#include "run/plugin.h"

namespace ingot {

namespace cpu {

namespace {

std::span<const KernelTable* const> tables() {
    static const std::vector<const KernelTable*> all = [] {
        std::span<const KernelTable* const> own = all_cpu_kernels();
        std::vector<const KernelTable*> list(own.begin(), own.end());
        list.push_back(&plan::control_kernels);
        list.push_back(&plan::plugin_kernels);
        return list;
    }();
    return all;
}

class CpuExecutable : public Executable {
public:
    explicit CpuExecutable(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
    std::unique_ptr<Execution> create_execution() const override {
        return std::make_unique<plan::ProgramExecution>(
            program_, plan::make_host_device(program_->options.memory));
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

    std::string timing_device() const override { return description(); }

    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& given) const override {
        CompileOptions options = given;
        // oneDNN chooses its loops, and with them the order of sums, by the number of rows.
        auto& own = options.of<CpuOptions>();
        own.use_library = own.use_library && !options.batch_invariant;
        check_sources(*graph, options);
        auto lowered = std::make_shared<const Graph>(lower(*graph, options));
        return std::make_shared<CpuExecutable>(
            make_program(std::move(lowered), cpu_kernels(),
                         std::make_shared<PackCache>(options.memory), options));
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
