// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "common.h"

#include <cstdio>

namespace ingot::tool {

int build(const Options& o) {
    require(!o.output.empty(), ErrorCode::InvalidArgument,
            "where should the engine go? give -o FILE");
    require(o.profiling_verbosity == "layer_names_only" || o.profiling_verbosity == "detailed" ||
                o.profiling_verbosity == "none",
            ErrorCode::InvalidArgument, "--profilingVerbosity ", o.profiling_verbosity,
            ": expected layer_names_only, detailed or none");
    double start = seconds_now();
    BuildConfig config = build_config(o, true);
    config.keep_names = o.profiling_verbosity == "detailed";
    std::shared_ptr<const Engine> engine = build_engine(o.model, config);
    if (!o.compute_capabilities.empty()) {
        engine = with_kernels_ahead(
            *engine, compute_capabilities("--computeCapabilities", o.compute_capabilities),
            compile_options(o, *engine));
        std::printf("%zu kernels compiled ahead.\n", engine->kernels()->size());
    }
    write_engine(o.output, *engine, as_built(*engine));
    std::printf("Engine built in %.3f sec.\n", seconds_now() - start);
    std::printf("%s: %zu inputs, %zu outputs, %zu nodes, %.1f MB of weights\n", o.output.c_str(),
                engine->graph().inputs().size(), engine->graph().outputs().size(),
                engine->graph().nodes().size(), static_cast<double>(engine->weight_bytes()) / 1e6);
    return 0;
}

} // namespace ingot::tool
