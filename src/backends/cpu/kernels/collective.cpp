// SPDX-License-Identifier: Apache-2.0
// collective: refused, with the remedy.
#include "ops/collective.h"

#include "backends/cpu/kernel.h"
#include "base/error.h"

namespace ingot::cpu {

namespace {

std::optional<std::string> refuse(const Group& group) {
    const auto& c = group.first().as<Collective>();
    return str("it exchanges data between ", c.ranks,
               " GPUs by NCCL; run it on GPUs, each rank in a thread or process of its own");
}

const Kernel rows[] = {{.name = "collective", .refuse = refuse, .prepare = nullptr}};

} // namespace

extern const KernelTable collective_kernels;
const KernelTable collective_kernels = rows;

} // namespace ingot::cpu
