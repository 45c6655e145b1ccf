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
    int wanted = options.of<CudaOptions>().arch;
    PassOptions facts;
    facts.f8_products = (wanted != 0 ? kernels::arch_of(wanted) : arch).has_fp8_mma();
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
