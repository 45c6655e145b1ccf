// SPDX-License-Identifier: Apache-2.0
#include "api/options/build.h"

#include "api/options/common.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "commands.h"
#include "common.h"
#include "plugins.h"

#include <cstdio>

namespace ingot::tool {

int build(const Options& o) {
    require(!o.common().output.empty(), ErrorCode::InvalidArgument,
            "where should the engine go? give -o FILE");
    double start = seconds_now();
    BuildConfig config = build_config(o, true);
    config.keep_names = o.build().profiling_verbosity == "detailed";
    if (config.precision == DType::F16 && !config.half_ranges) {
        log(LogLevel::Warning, "--fp16: numbers above ", largest_f16,
            " become infinite, and no sample shows whether the model has any: give --input "
            "NAME=FILE or --calib FILE to keep such layers in f32; ingot compare --fp16 names "
            "them");
    }
    std::shared_ptr<const Engine> engine = build_model(o.model, config, o);
    if (!o.build().compute_capabilities.empty()) {
        engine = with_kernels_ahead(
            *engine, compute_capabilities("--computeCapabilities", o.build().compute_capabilities),
            compile_options(o, *engine));
        std::printf("%zu kernels compiled ahead.\n", engine->kernels()->size());
    }
    write_engine(o.common().output, *engine, as_built(*engine));
    std::printf("Engine built in %.3f sec.\n", seconds_now() - start);
    std::printf("%s: %zu inputs, %zu outputs, %zu nodes, %.1f MB of weights\n",
                o.common().output.c_str(), engine->graph().inputs().size(),
                engine->graph().outputs().size(), engine->graph().nodes().size(),
                static_cast<double>(engine->weight_bytes()) / 1e6);
    return 0;
}

} // namespace ingot::tool
