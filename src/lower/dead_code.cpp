// SPDX-License-Identifier: Apache-2.0
// dead_code: the pass that runs ahead of time too.
#include "lower/lowering.h"
#include "passes/passes.h"

namespace ingot::plan {

Pass dead_code(const KernelSet&) {
    return passes::dead_code;
}

} // namespace ingot::plan
