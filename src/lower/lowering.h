// SPDX-License-Identifier: Apache-2.0
// The passes of the lowering lists: they turn an engine's graph into nodes that a
// backend's kernels run. Each keeps the meaning. A file here defines one, as
// `Pass <name>(const KernelSet& kernels)`; a row in the lowering.def of a backend puts it into that
// backend's list.
#pragma once

#include "passes/pass.h"
#include "plan/kernel.h"

namespace ingot::plan {

/// Runs a backend's list under the options, for a device with these facts. Errors: Unsupported
/// naming a node; the trail names the pass.
Graph run_lowering(std::span<const Pass> list, const Graph& g, const CompileOptions& options,
                   const PassOptions& facts = {});

} // namespace ingot::plan
