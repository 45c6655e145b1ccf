// SPDX-License-Identifier: Apache-2.0
#include "plan/planned.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/lower.h"
#include "backends/cpu/options.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/run/device.h"
#include "backends_cuda/fake_driver.h"

namespace ingot::test {

const plan::SegmentPlan& Planned::plan(const Symbols& symbols) {
    for (const auto& [name, size] : symbols) {
        symbols_.insert_or_assign(name, size);
    }
    auto segment = static_cast<int>(own_.size());
    own_.push_back(plan::plan_segment(program(), device(), segment, symbols_,
                                      own_.empty() ? nullptr : own_.back().get()));
    segments_.push_back(own_.back().get());
    return *own_.back();
}

namespace {

std::shared_ptr<const Graph> shared(Graph g) {
    return std::make_shared<const Graph>(std::move(g));
}

class OnCpu : public Planned {
public:
    OnCpu(const Graph& g, const CompileOptions& options)
        : program_(plan::make_program(shared(cpu::lower(g, options)), cpu::cpu_kernels(),
                                      std::make_shared<plan::PackCache>(), options)) {}
    const plan::Program& program() const override { return *program_; }
    plan::Device& device() override { return plan::host_device(); }

private:
    std::shared_ptr<const plan::Program> program_;
};

class OnGpu : public Planned {
public:
    OnGpu(const Graph& g, const CompileOptions& options)
        : state_(std::make_shared<cuda::CudaState>(
              *gpu_, std::make_shared<cuda::ProgramCache>(*gpu_, nullptr, nullptr, 1), options)) {
        auto lowered = shared(cuda::lower(g, options));
        state_->streamed.make_room(*lowered);
        program_ = plan::make_program(std::move(lowered), cuda::cuda_kernels(),
                                      std::make_shared<plan::PackCache>(), options);
        cuda::ProfilePrograms::find(state_, program_);
        device_ = std::make_unique<cuda::CudaDevice>(state_);
    }
    ~OnGpu() override { forget(); }
    OnGpu(const OnGpu&) = delete;
    OnGpu& operator=(const OnGpu&) = delete;
    const plan::Program& program() const override { return *program_; }
    plan::Device& device() override { return *device_; }

private:
    std::unique_ptr<cuda::Gpu> gpu_ = fake::make_gpu();
    std::shared_ptr<cuda::CudaState> state_;
    std::shared_ptr<const plan::Program> program_;
    std::unique_ptr<cuda::CudaDevice> device_;
};

} // namespace

std::unique_ptr<Planned> planned_for_cpu(const Graph& g, const CompileOptions& options) {
    CompileOptions own = options;
    own.of<CpuOptions>().use_library = false;
    return std::make_unique<OnCpu>(g, own);
}

std::unique_ptr<Planned> planned_for_gpu(const Graph& g, const CompileOptions& options) {
    return std::make_unique<OnGpu>(g, options);
}

} // namespace ingot::test
