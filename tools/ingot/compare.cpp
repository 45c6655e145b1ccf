// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/compare.h"

#include "api/options/common.h"
#include "api/options/inspect.h"
#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ingot::tool {

namespace {

void print(const TensorDifference& d, const char* kind, const char* otherwise) {
    std::printf("  %-4s %s %s: %s\n", d.within ? "ok" : otherwise, kind, d.place().c_str(),
                d.text().c_str());
}

void print_not_compared(const std::vector<std::string>& names) {
    constexpr size_t most = 8;
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), most); ++i) {
        text += str(i == 0 ? "'" : ", '", names[i], "'");
    }
    if (!names.empty()) {
        std::printf(
            "  not compared, as no step writes them alone (fused or folded): %zu values: %s%s\n",
            names.size(), text.c_str(), names.size() > most ? ", ...; --json lists all" : "");
    }
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
    if (!decides) {
        return;
    }
    print_not_compared(f.not_compared);
    if (std::string line = f.first_wrong(); !line.empty()) {
        std::printf("%s\n", line.c_str());
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
        nlohmann::json entry = {{"name", d.name},
                                {"type", std::string(name(d.dtype))},
                                {"shape", d.shape},
                                {"maxAbsolute", d.max_absolute},
                                {"maxRelative", d.max_relative},
                                {"elements", d.elements},
                                {"mismatchedNan", d.mismatched.count},
                                {"firstMismatch", d.mismatched.text},
                                {"tied", d.tied},
                                {"roundingSpread", d.spread},
                                {"problem", d.problem},
                                {"within", d.within}};
        if (d.step >= 0) {
            entry["node"] = d.node;
            entry["step"] = d.step;
        }
        if (!d.within && d.wrong > 0) {
            entry["wrong"] = d.wrong;
            entry["firstWrong"] = d.first_wrong;
        }
        out.push_back(std::move(entry));
    }
    return out;
}

nlohmann::json to_json(const CompareReport& r) {
    nlohmann::json list = nlohmann::json::array();
    for (const ReferenceReport& f : r.references) {
        list.push_back({{"reference", f.reference},
                        {"skipped", f.skipped},
                        {"outputs", to_json(f.outputs)},
                        {"layers", to_json(f.layers)},
                        {"firstWrong", f.first_wrong()},
                        {"notCompared", f.not_compared},
                        {"off", f.off},
                        {"decides", &f == r.deciding()}});
    }
    return {{"gflop", r.gflop},
            {"references", list},
            {"fp16Overflows", to_json(r.overflows)},
            {"fault", r.fault},
            {"ok", r.ok()}};
}

/// Prints what is known before the model runs.
void print_start(const Options& o, const CompareReport& r, bool kept) {
    std::printf("%s: %.3g GFLOP a run\n", o.model.c_str(), r.gflop);
    for (const std::string& n : r.random_inputs) {
        std::printf("Using random values for input %s (seed %lld)\n", n.c_str(),
                    static_cast<long long>(o.common().seed));
    }
    print_overflows(r, kept);
}

int print_end(const CompareReport& r) {
    for (const ReferenceReport& f : r.references) {
        print(f, &f == r.deciding());
    }
    if (!r.fault.empty()) {
        std::printf("--verify-passes finds: %s\n", r.fault.c_str());
    }
    std::printf("%s\n", r.deciding() == nullptr ? "NOT COMPARED: no reference ran, see above"
                        : r.ok()                ? "agrees"
                                 : "DIFFERS; how to find the reason: docs/inspecting.md, "
                                   "Wrong results");
    return r.ok() ? 0 : 1;
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
    c.layers = o.inspect().compare_layers;
    c.full = o.inspect().full;
    c.atol = o.inspect().atol;
    c.rtol = o.inspect().rtol;
    const options::Inspect usual;
    c.excuse_rounding = c.atol == usual.atol && c.rtol == usual.rtol;
    const Backend& backend = choose_backend(o);
    warn_of_gpu_options(o, backend);
    if (!o.common().json) {
        print_lines_at_once();
        bool kept = c.build.half_ranges.has_value();
        c.started = [&o, kept](const CompareReport& r) { print_start(o, r, kept); };
    }
    CompareReport r = compare_model(o.model, backend, c);
    if (o.common().json) {
        std::printf("%s\n", to_json(r).dump(2).c_str());
        return r.ok() ? 0 : 1;
    }
    return print_end(r);
}

} // namespace ingot::tool
