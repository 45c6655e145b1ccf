// SPDX-License-Identifier: Apache-2.0
// Kernels ahead of time: makes plans for an absent GPU, and compiles their programs.
#include "backends/backends.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device.h"
#include "base/error.h"
#include "run/runner.h"

#include <algorithm>

namespace ingot {

namespace cuda {

namespace {

constexpr int most_compile_threads = 8;

/// Discards all work.
class NoStream : public Stream {
public:
    void launch(const Function&, const LaunchShape&, void* const*) override { refuse(); }
    void copy(std::byte*, const std::byte*, size_t) override {}
    void fill(std::byte*, int, size_t) override {}
    void read(void*, const std::byte*, size_t) override { refuse(); }
    void write(std::byte*, const void*, size_t) override {}
    void synchronize() override {}

private:
    [[noreturn]] static void refuse() {
        fail(ErrorCode::Internal, "a plan made ahead of time was run");
    }
};

/// An architecture with a compiler, and addresses that must not be accessed.
class AbsentGpu : public Gpu {
public:
    AbsentGpu(const kernels::Arch& arch, bool compiles) : arch_(arch), compiles_(compiles) {}
    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return str("compute capability ", arch_.cc); }
    std::string compiler() const override { return str("cubin ", arch_.nvrtc); }
    std::string compile(const std::string& text) const override {
        return compiles_ ? nvrtc_compile(text, std::string(arch_.nvrtc)).cubin : "";
    }
    std::shared_ptr<const Function> load(std::string_view, const std::string&, int64_t) override {
        fail(ErrorCode::Internal, "there is no GPU to load kernels");
    }
    std::unique_ptr<Stream> create_stream() override { return std::make_unique<NoStream>(); }
    std::byte* allocate(int64_t bytes) override {
        constexpr uintptr_t alignment = 256;
        uintptr_t at = next_;
        next_ += (static_cast<uintptr_t>(bytes) + alignment) / alignment * alignment;
        return reinterpret_cast<std::byte*>(at);
    }
    void release(std::byte*) noexcept override {}
    void encode(const kernels::TensorMap&, std::byte*, std::byte*) const override {}

private:
    kernels::Arch arch_;
    bool compiles_;
    uintptr_t next_ = 1 << 20;
};

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
};

/// Makes a plan for each of the shapes.
PlannedAhead plan_ahead(AbsentGpu& gpu, const std::shared_ptr<const Graph>& graph,
                        std::span<const std::vector<Shape>> shapes, const CompileOptions& options) {
    int threads =
        std::min(static_cast<int>(std::thread::hardware_concurrency()), most_compile_threads);
    auto programs = std::make_shared<ProgramCache>(gpu, nullptr, nullptr, threads);
    programs->enter(); // keeps the queue when plans are destroyed
    auto state = std::make_shared<CudaState>(gpu, programs, options);
    auto lowered = std::make_shared<const Graph>(lower(*graph, options));
    state->streamed.make_room(*lowered);
    auto program =
        plan::make_program(lowered, cuda_kernels(), std::make_shared<PackCache>(), options);
    ProfilePrograms::find(state, program);
    CudaDevice device(state);
    plan::Runner runner(program, device, {});
    for (const std::vector<Shape>& s : shapes) {
        runner.prepare(s);
    }
    return {std::move(programs), runner.plan_text()};
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

Graph lower_ahead(const Graph& graph, const CompileOptions& options) {
    return cuda::lower(graph, options);
}

} // namespace ingot
