// SPDX-License-Identifier: Apache-2.0
// dead_code: the ahead-of-time pass, for lowering lists.
#include "lower/lowering.h"
#include "passes/passes.h"

namespace ingot::plan {

Pass dead_code(const KernelSet&) {
    return passes::dead_code;
}

} // namespace ingot::plan
