// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernel_set.h"

#include "backends/cuda/run/steps.h"
#include "kernels/scan_sort/dynamic.h"
#include "plan/reference.h"
#include "run/control.h"
#include "run/plugin.h"

namespace ingot::cuda {

namespace {

std::optional<std::string> accept(const Group&) {
    return std::nullopt;
}

/// A step without launches.
class PlacedStep : public Step {
public:
    Status run(const RunContext&) noexcept override {
        return {ErrorCode::Internal, "a plan that only places values was run"};
    }
};

std::unique_ptr<Step> make_placed_step(const StepArgs&) {
    return std::make_unique<PlacedStep>();
}

std::unique_ptr<Step> make_placed_copy(const Operand&, const Operand&, Device&) {
    return std::make_unique<PlacedStep>();
}

std::vector<Kernel> family_kernels() {
    std::vector<Kernel> all;
    for (const kernels::FamilyTable* table : kernels::all_families()) {
        for (const kernels::Family& f : *table) {
            all.push_back({.name = f.name,
                           .refuse = f.refuse,
                           .prepare = make_family_step,
                           .layout = f.layout,
                           .strided_results = f.strided_results,
                           .aligned_rows = f.aligned_rows,
                           .takes_groups = f.takes_groups,
                           .reads_casts = f.reads_casts,
                           .in_place = f.in_place,
                           .family = &f});
        }
    }
    for (std::string_view name : {"nonzero", "nms"}) {
        all.push_back({.name = name,
                       .refuse = kernels::refuse_dynamic,
                       .prepare = make_dynamic_step,
                       .layout = plan::any_strides});
    }
    all.push_back({.name = "cuda_source", .refuse = accept, .prepare = make_source_step});
    all.push_back({.name = "collective", .refuse = accept, .prepare = make_collective_step});
    all.push_back({.name = "reference",
                   .refuse = plan::refuse_reference,
                   .prepare = plan::make_reference_step});
    return all;
}

std::span<const KernelTable* const> tables() {
    static const std::vector<Kernel> rows = family_kernels();
    static const KernelTable families = rows;
    static const KernelTable* const all[] = {&families, &plan::control_kernels,
                                             &plan::plugin_kernels};
    return all;
}

std::span<const KernelTable* const> placing_tables() {
    static const std::vector<Kernel> rows = [] {
        std::vector<Kernel> all = family_kernels();
        for (Kernel& k : all) {
            k.prepare = make_placed_step;
        }
        return all;
    }();
    static const KernelTable families = rows;
    static const KernelTable* const all[] = {&families, &plan::control_kernels,
                                             &plan::plugin_kernels};
    return all;
}

} // namespace

const plan::KernelSet& placing_kernels() {
    static const KernelSet set{"cuda", placing_tables, make_placed_copy};
    return set;
}

const plan::KernelSet& cuda_kernels() {
    static const KernelSet set{"cuda", tables, make_device_copy};
    return set;
}

} // namespace ingot::cuda
