// SPDX-License-Identifier: Apache-2.0
#include "report_target.h"

#include "api/options/common.h"
#include "api/options/inspect.h"
#include "backends/backends.h"
#include "base/error.h"
#include "common.h"
#include "workflow/inputs/inputs.h"

#include <algorithm>

namespace ingot::tool {

std::optional<int> target_capability(const Options& o) {
    const std::string& target = o.inspect().target;
    if (target.empty()) {
        return std::nullopt;
    }
    if (target == "cpu") {
        return 0;
    }
    std::string number = target.starts_with("sm_") ? target.substr(3) : target;
    bool digits = !number.empty() && number.find_first_not_of("0123456789.") == std::string::npos;
    require(digits, ErrorCode::InvalidArgument, "--for ", target,
            ": expected cpu, or a compute capability such as sm_90, 90 or 9.0");
    return compute_capabilities("--for", number).front();
}

/// The shapes of --shapes; else the opt shapes of the profile.
std::vector<Shape> input_shapes(const Options& o, const Engine& engine) {
    const Graph& g = engine.graph();
    auto given = parse_shapes(o.common().shapes);
    std::vector<Shape> shapes;
    std::vector<std::string> names;
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        const std::string& name = names.emplace_back(g.value_name(g.inputs()[i]));
        auto it = std::find_if(given.begin(), given.end(),
                               [&name](const auto& s) { return s.first == name; });
        shapes.push_back(it != given.end() ? it->second : default_shape(g, i, engine.profiles()));
    }
    for (const auto& [name, shape] : given) {
        require(std::find(names.begin(), names.end(), name) != names.end(),
                ErrorCode::InvalidArgument, "--shapes: there is no input '", name,
                "', expected one of ", names);
    }
    return shapes;
}

static bool is_here(const Backend& backend, int capability) {
    return backend.compute_capability() == capability;
}

ReportRequest report_request(const Options& o, const Engine& engine, bool time) {
    constexpr int64_t runs = 10;
    ReportRequest q;
    q.shapes = input_shapes(o, engine);
    std::optional<int> capability = target_capability(o);
    std::string why;
    const Backend* gpu = capability == 0 ? nullptr : cuda_backend(why);
    if (capability.value_or(0) == 0) {
        q.backend = gpu != nullptr ? gpu : &cpu_backend();
    } else if (gpu != nullptr && is_here(*gpu, *capability)) {
        q.backend = gpu;
    }
    if (q.backend == nullptr) {
        require(!o.inspect().time, ErrorCode::InvalidArgument, "--time: there is no GPU of --for ",
                o.inspect().target, " here, and its times can only be predicted; leave --time out");
        q.capability = *capability;
        q.compiles = !o.inspect().no_compile && !kernel_compiler().empty();
        return q;
    }
    if (time || q.backend != &cpu_backend()) {
        q.timed_runs = runs;
        InputSource source;
        source.seed = static_cast<uint64_t>(o.common().seed);
        const Graph& g = engine.graph();
        for (size_t i = 0; i < q.shapes.size(); ++i) {
            source.shapes.emplace_back(g.value_name(g.inputs()[i]), q.shapes[i]);
        }
        q.inputs = load_inputs(engine, source).tensors;
    }
    return q;
}

} // namespace ingot::tool
