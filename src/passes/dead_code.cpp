// SPDX-License-Identifier: Apache-2.0
// dead_code: removes nodes that nothing uses.
#include "passes/passes.h"

namespace ingot::passes {

const Pass dead_code = {
    .name = "dead_code",
    .summary = "remove nodes that nothing uses",
    .run = [](const Graph& g, const PassOptions&) { return ingot::dead_code(g); },
    .structural = true,
};

} // namespace ingot::passes
