// SPDX-License-Identifier: Apache-2.0
#include "workflow/plans.h"

#include "backends/backends.h"
#include "base/error.h"
#include "engine/properties.h"
#include "passes/pipeline.h"

#include <algorithm>

namespace ingot {

Graph lowered_graph(const Engine& engine, int capability, const CompileOptions& options) {
    Storage storage(engine.graph_ref(), engine.formats());
    CompileOptions all = with_properties(options, engine);
    return capability == 0 ? cpu_backend().compile(storage.graph(), all)->lowered()
                           : lower_ahead(*storage.graph(), capability, all);
}

std::string plan_text(const std::shared_ptr<const Engine>& engine, int capability,
                      std::span<const Shape> shapes, const CompileOptions& options) {
    if (capability == 0) {
        Context context(engine, cpu_backend(), options);
        context.prepare(shapes);
        return context.execution().plan_text();
    }
    Storage storage(engine->graph_ref(), engine->formats());
    CompileOptions all = with_properties(options, *engine);
    all.profiles = storage.profiles(engine->profiles());
    return plan_text_ahead(storage.graph(), storage.input_shapes(shapes), capability, all);
}

std::vector<std::string> pass_names() {
    std::vector<std::string> names = aot_pass_names();
    for (const auto& list : {cpu_lowering_passes(), cuda_lowering_passes()}) {
        for (const std::string& name : list) {
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                names.push_back(name);
            }
        }
    }
    return names;
}

void check_pass_names(std::span<const std::string> names) {
    std::vector<std::string> known = pass_names();
    for (const std::string& name : names) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            std::string near = nearest(name, known);
            fail(ErrorCode::InvalidArgument, "there is no pass '", name, "'",
                 near.empty() ? str(", expected one of ", known)
                              : str(", did you mean '", near, "'?"));
        }
    }
}

} // namespace ingot
