// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include "base/error.h"
#include "passes/passes.h"

#include <algorithm>

namespace ingot {

std::span<const Pass* const> aot_passes() {
    static const Pass* const list[] = {
#define INGOT_PASS(name) &passes::name,
#include "passes/pipeline.def"
#undef INGOT_PASS
    };
    return list;
}

std::vector<std::string> aot_pass_names() {
    std::vector<std::string> names;
    for (const Pass* p : aot_passes()) {
        if (std::find(names.begin(), names.end(), p->name) == names.end()) {
            names.emplace_back(p->name);
        }
    }
    return names;
}

const Pass& find_pass(std::string_view name) {
    for (const Pass* p : aot_passes()) {
        if (p->name == name) {
            return *p;
        }
    }
    std::vector<std::string> names = aot_pass_names();
    std::string near = nearest(name, names);
    fail(ErrorCode::InvalidArgument, "there is no pass '", name, "'",
         near.empty() ? str(", expected one of ", names) : str(", did you mean '", near, "'?"));
}

Graph run_aot_passes(const Graph& g, const PipelineOptions& options) {
    return run_passes(aot_passes(), g, options);
}

} // namespace ingot
