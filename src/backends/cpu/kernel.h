// SPDX-License-Identifier: Apache-2.0
// The CPU backend's kernels. Each file in kernels/ defines one `<stem>_kernels`; CMake lists them.
#pragma once

#include "plan/kernel.h"
#include "plan/program.h"
#include "plan/stored_constant.h"

namespace ingot::cpu {

// Kernels use the planner's names throughout.
using plan::any_strides;
using plan::Device;
using plan::DynamicResults;
using plan::ErrorText;
using plan::Group;
using plan::group_of;
using plan::Kernel;
using plan::KernelSet;
using plan::KernelTable;
using plan::LayoutArgs;
using plan::Operand;
using plan::Order;
using plan::PackCache;
using plan::Program;
using plan::RunContext;
using plan::Step;
using plan::StepArgs;
using plan::View;

/// The base of an input's buffer when it is a graph constant, else null.
inline const std::byte* constant_base(const StepArgs& args, size_t input) {
    const plan::StoredConstant* c = args.constants[input];
    return c == nullptr ? nullptr : c->source().bytes().data();
}

std::span<const KernelTable* const> all_cpu_kernels();
const KernelSet& cpu_kernels();

} // namespace ingot::cpu
