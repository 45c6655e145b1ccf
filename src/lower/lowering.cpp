// SPDX-License-Identifier: Apache-2.0
#include "lower/lowering.h"

#include "plan/compile_options.h"

namespace ingot::plan {

Graph run_lowering(std::span<const Pass> list, const Graph& g, const CompileOptions& options,
                   const PassOptions& facts) {
    std::vector<const Pass*> passes;
    for (const Pass& p : list) {
        passes.push_back(&p);
    }
    PipelineOptions how;
    how.pass = facts;
    how.disabled = options.disabled_passes;
    how.verify = options.verify_passes;
    if (options.after_pass) {
        how.dump_after = [&options](const Pass& p, const Graph& now) {
            options.after_pass(p.name, now);
        };
    }
    return run_passes(passes, g, how);
}

} // namespace ingot::plan
