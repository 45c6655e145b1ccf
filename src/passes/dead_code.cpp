// SPDX-License-Identifier: Apache-2.0
// dead_code: removes nodes that nothing uses.
#include "passes/passes.h"

namespace ingot::passes {

const Pass dead_code = {"dead_code", "remove nodes that nothing uses",
                        [](const Graph& g, const PassOptions&) { return ingot::dead_code(g); },
                        true};

} // namespace ingot::passes
