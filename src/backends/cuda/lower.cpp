// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lower.h"

#include "backends/cuda/kernel_set.h"
#include "backends/cuda/options.h"
#include "base/trace.h"

namespace ingot {

namespace plan {
#define INGOT_PASS(name) Pass name(const KernelSet& kernels);
#include "backends/cuda/lowering.def"
#undef INGOT_PASS
} // namespace plan

namespace cuda {

std::span<const Pass> lowering_passes() {
    static const Pass list[] = {
#define INGOT_PASS(name) plan::name(cuda_kernels()),
#include "backends/cuda/lowering.def"
#undef INGOT_PASS
    };
    return list;
}

Graph lower(const Graph& g, const CompileOptions& options, const kernels::Arch& arch) {
    TraceSpan span("lower", g.name());
    const auto& of_cuda = options.of<CudaOptions>();
    const kernels::Arch& target = of_cuda.arch != 0 ? kernels::arch_of(of_cuda.arch) : arch;
    PassOptions facts;
    facts.f8_products = target.has_fp8_mma();
    facts.rounds_products = of_cuda.tf32;
    facts.depth_parts = options.batch_invariant ? 0 : 64;
    if (target.has_wgmma()) { // which convolves over three axes in one volume alone
        constexpr double from = 2e8;
        facts.flat_convolutions = from;
        facts.flat_f32_convolutions = of_cuda.tf32 ? from : facts.flat_f32_convolutions;
        facts.volume_slab = options.batch_invariant ? 0 : 128;
    }
    return plan::run_lowering(lowering_passes(), g, options, facts);
}

Graph lower(const Graph& g, const CompileOptions& options) {
    return lower(g, options, kernels::Arch{});
}

} // namespace cuda

std::vector<std::string> cuda_lowering_passes() {
    std::vector<std::string> names;
    for (const Pass& p : cuda::lowering_passes()) {
        names.emplace_back(p.name);
    }
    return names;
}

} // namespace ingot
