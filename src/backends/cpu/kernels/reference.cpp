// SPDX-License-Identifier: Apache-2.0
// reference: the op's own evaluation, for rare ops and types without another kernel.
#include "plan/reference.h"

#include "backends/cpu/kernel.h"

namespace ingot::cpu {

namespace {

const Kernel rows[] = {
    {.name = "reference", .refuse = plan::refuse_reference, .prepare = plan::make_reference_step}};

} // namespace

extern const KernelTable reference_kernels;
const KernelTable reference_kernels = rows;

} // namespace ingot::cpu
