// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lower.h"

#include "backends/backends.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/simd.h"
#include "base/trace.h"

namespace ingot {

namespace plan {
#define INGOT_PASS(name) Pass name(const KernelSet& kernels);
#include "backends/cpu/lowering.def"
#undef INGOT_PASS
} // namespace plan

namespace cpu {

std::span<const Pass> lowering_passes() {
    static const Pass list[] = {
#define INGOT_PASS(name) plan::name(cpu_kernels()),
#include "backends/cpu/lowering.def"
#undef INGOT_PASS
    };
    return list;
}

Graph lower(const Graph& g, const CompileOptions& options) {
    TraceSpan span("lower", g.name());
    PassOptions facts;
    facts.byte_convolutions = instruction_set() == InstructionSet::Avx512Vnni;
    return plan::run_lowering(lowering_passes(), g, options, facts);
}

} // namespace cpu

std::vector<std::string> cpu_lowering_passes() {
    std::vector<std::string> names;
    for (const Pass& p : cpu::lowering_passes()) {
        names.emplace_back(p.name);
    }
    return names;
}

} // namespace ingot
