// SPDX-License-Identifier: Apache-2.0
// Kernels ahead of time: makes plans for an absent GPU, and compiles their programs.
#include "backends/backends.h"
#include "backends/cuda/absent_gpu.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device.h"
#include "backends/device_memory.h"
#include "base/error.h"
#include "kernels/figures.h"
#include "run/execution.h"

#include <algorithm>

namespace ingot {

namespace cuda {

namespace {

constexpr int most_compile_threads = 8;

const kernels::Arch& known_arch(int compute_capability) {
    const kernels::Arch& arch = kernels::arch_of(compute_capability);
    require(arch.cc == compute_capability, ErrorCode::Unsupported, "compute capability ",
            compute_capability / 10, '.', compute_capability % 10, " is not known; known are ", [] {
                std::string list;
                for (const kernels::Arch& a : kernels::known_archs()) {
                    list += str(list.empty() ? "" : ", ", a.cc);
                }
                return list;
            }());
    return arch;
}

/// The results of planning for an absent GPU.
struct PlannedAhead {
    std::shared_ptr<ProgramCache> programs; // requested by the plans
    std::string text;                       // of the last plan
    std::vector<plan::StepReport> report;   // of the last plan, where asked for
};

/// Makes a plan for each of the shapes.
PlannedAhead plan_ahead(AbsentGpu& gpu, const std::shared_ptr<const Graph>& graph,
                        std::span<const std::vector<Shape>> shapes, const CompileOptions& options,
                        const std::shared_ptr<plan::RuntimeCache>& disk = nullptr,
                        bool reports = false) {
    int threads =
        std::min(static_cast<int>(std::thread::hardware_concurrency()), most_compile_threads);
    auto programs = std::make_shared<ProgramCache>(gpu, options.kernels, disk, threads);
    programs->enter(); // keeps the queue when plans are destroyed
    auto state = std::make_shared<CudaState>(gpu, programs, options);
    auto lowered = std::make_shared<const Graph>(lower(*graph, options, gpu.arch()));
    state->streamed.make_room(*lowered);
    auto program =
        plan::make_program(lowered, cuda_kernels(), std::make_shared<PackCache>(), options);
    ProfilePrograms::find(state, program);
    CudaDevice device(state);
    plan::Runner runner(program, device, {});
    for (const std::vector<Shape>& s : shapes) {
        runner.prepare(s);
    }
    return {std::move(programs), runner.plan_text(),
            reports ? runner.report() : std::vector<plan::StepReport>()};
}

} // namespace

} // namespace cuda

KernelBinaries compile_kernels_ahead(const std::shared_ptr<const Graph>& graph,
                                     std::span<const std::vector<Shape>> shapes,
                                     int compute_capability, const CompileOptions& options) {
    cuda::AbsentGpu gpu(cuda::known_arch(compute_capability), true);
    return cuda::plan_ahead(gpu, graph, shapes, options).programs->binaries();
}

std::vector<KernelUse> list_kernels_ahead(const std::shared_ptr<const Graph>& graph,
                                          std::span<const std::vector<Shape>> shapes,
                                          int compute_capability, const CompileOptions& options) {
    cuda::AbsentGpu gpu(cuda::known_arch(compute_capability), false);
    CompileOptions generic = options;
    generic.of<CudaOptions>().specialise = Specialise::None;
    return cuda::plan_ahead(gpu, graph, shapes, generic).programs->programs();
}

std::string plan_text_ahead(const std::shared_ptr<const Graph>& graph,
                            std::span<const Shape> shapes, int compute_capability,
                            const CompileOptions& options) {
    cuda::AbsentGpu gpu(cuda::known_arch(compute_capability), false);
    CompileOptions generic = options;
    generic.of<CudaOptions>().specialise = Specialise::None;
    std::vector<Shape> once(shapes.begin(), shapes.end());
    return cuda::plan_ahead(gpu, graph, std::span(&once, 1), generic).text;
}

std::vector<plan::StepReport> plan_report_ahead(const std::shared_ptr<const Graph>& graph,
                                                std::span<const Shape> shapes,
                                                int compute_capability,
                                                const CompileOptions& options, bool compiles) {
    cuda::AbsentGpu gpu(cuda::known_arch(compute_capability), compiles);
    CompileOptions generic = options;
    auto& own = generic.of<CudaOptions>();
    own.specialise = Specialise::None;
    std::string place =
        own.runtime_cache == "default" ? plan::RuntimeCache::default_folder() : own.runtime_cache;
    std::shared_ptr<plan::RuntimeCache> disk;
    if (compiles && !place.empty()) {
        disk = std::make_shared<plan::RuntimeCache>(place, plan::RuntimeCache::Kind::Folder);
    }
    std::vector<Shape> once(shapes.begin(), shapes.end());
    return cuda::plan_ahead(gpu, graph, std::span(&once, 1), generic, disk, true).report;
}

plan::DeviceFigures device_figures(int compute_capability, const CompileOptions& options) {
    return kernels::figures_of(cuda::known_arch(compute_capability),
                               options.of<CudaOptions>().tf32);
}

MemoryUse memory_ahead(const std::shared_ptr<const Graph>& graph,
                       std::span<const std::vector<Shape>> shapes, int compute_capability,
                       const CompileOptions& options) {
    cuda::AbsentGpu gpu(cuda::known_arch(compute_capability), false);
    CompileOptions generic = options;
    generic.of<CudaOptions>().specialise = Specialise::None;
    auto programs = std::make_shared<cuda::ProgramCache>(gpu, nullptr, nullptr, 1);
    auto state = std::make_shared<cuda::CudaState>(gpu, programs, generic);
    auto lowered = std::make_shared<const Graph>(cuda::lower(*graph, generic, gpu.arch()));
    state->streamed.make_room(*lowered);
    auto program = plan::make_program(lowered, cuda::cuda_kernels(),
                                      std::make_shared<plan::PackCache>(), generic);
    plan::ProgramExecution execution(program, std::make_shared<cuda::CudaDevice>(state));
    MemoryUse most;
    for (const std::vector<Shape>& s : shapes) {
        int64_t activations = execution.activation_bytes(s);
        MemoryUse use = execution.memory_use();
        most.persistent = std::max(most.persistent, use.persistent);
        most.scratch = std::max(most.scratch, use.scratch);
        most.activations = std::max(most.activations, activations);
    }
    return most;
}

Graph lower_ahead(const Graph& graph, int compute_capability, const CompileOptions& options) {
    return cuda::lower(graph, options, cuda::known_arch(compute_capability));
}

} // namespace ingot
