// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/compare.h"

#include "api/options/common.h"
#include "api/options/inspect.h"
#include "commands.h"
#include "common.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace ingot::tool {

namespace {

void print(const TensorDifference& d, const char* kind, const char* otherwise) {
    std::printf("  %-4s %s %s: %s\n", d.within ? "ok" : otherwise, kind, d.name.c_str(),
                d.text().c_str());
}

void print(const ReferenceReport& f, bool decides) {
    std::printf("against %s%s%s\n", f.reference.c_str(),
                f.skipped.empty() ? "" : ": not run: ", f.skipped.c_str());
    const char* otherwise = decides ? "FAIL" : "differs";
    for (const TensorDifference& d : f.outputs) {
        print(d, "output", otherwise);
    }
    for (const TensorDifference& d : f.layers) {
        print(d, "layer", otherwise);
    }
    for (const std::string& line : f.off) {
        std::printf("  %s\n", line.c_str());
    }
}

/// Names the first layer that overflows in f16.
void print_overflows(const CompareReport& r, bool kept) {
    if (r.overflows.empty()) {
        return;
    }
    const Overflow& first = r.overflows[0];
    std::printf("fp16: %s reaches %.3g, above %.0f: the first of %zu that overflow; %s\n",
                first.layer.c_str(), first.magnitude, largest_f16, r.overflows.size(),
                kept ? "they keep f32" : "a build with --input keeps them in f32");
}

nlohmann::json to_json(const std::vector<Overflow>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const Overflow& o : list) {
        out.push_back({{"layer", o.layer}, {"magnitude", o.magnitude}});
    }
    return out;
}

nlohmann::json to_json(const std::vector<TensorDifference>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const TensorDifference& d : list) {
        out.push_back({{"name", d.name},
                       {"maxAbsolute", d.max_absolute},
                       {"maxRelative", d.max_relative},
                       {"elements", d.elements},
                       {"mismatchedNan", d.mismatched.count},
                       {"firstMismatch", d.mismatched.text},
                       {"tied", d.tied},
                       {"roundingSpread", d.spread},
                       {"problem", d.problem},
                       {"within", d.within}});
    }
    return out;
}

} // namespace

int compare(const Options& o) {
    CompareOptions c;
    c.build = build_config(o, false);
    c.compile = compile_options(o);
    c.inputs = input_source(o);
    if (c.build.profiles.empty()) {
        c.build.run_shapes = known_shapes(c.inputs);
    }
    c.layers = o.inspect().layers;
    c.full = o.inspect().full;
    c.atol = o.inspect().atol;
    c.rtol = o.inspect().rtol;
    const options::Inspect usual;
    c.excuse_rounding = c.atol == usual.atol && c.rtol == usual.rtol;
    const Backend& backend = choose_backend(o);
    warn_of_gpu_options(o, backend);
    CompareReport r = compare_model(o.model, backend, c);
    if (o.common().json) {
        nlohmann::json list = nlohmann::json::array();
        for (const ReferenceReport& f : r.references) {
            list.push_back({{"reference", f.reference},
                            {"skipped", f.skipped},
                            {"outputs", to_json(f.outputs)},
                            {"layers", to_json(f.layers)},
                            {"off", f.off},
                            {"decides", &f == r.deciding()}});
        }
        std::printf("%s\n", nlohmann::json{{"gflop", r.gflop},
                                           {"references", list},
                                           {"fp16Overflows", to_json(r.overflows)},
                                           {"ok", r.ok()}}
                                .dump(2)
                                .c_str());
        return r.ok() ? 0 : 1;
    }
    std::printf("%s: %.3g GFLOP a run\n", o.model.c_str(), r.gflop);
    for (const std::string& n : r.random_inputs) {
        std::printf("Using random values for input %s (seed %lld)\n", n.c_str(),
                    static_cast<long long>(o.common().seed));
    }
    print_overflows(r, c.build.half_ranges.has_value());
    for (const ReferenceReport& f : r.references) {
        print(f, &f == r.deciding());
    }
    std::printf("%s\n", r.deciding() == nullptr ? "NOT COMPARED: no reference ran, see above"
                        : r.ok()                ? "agrees"
                                                : "DIFFERS");
    return r.ok() ? 0 : 1;
}

} // namespace ingot::tool
