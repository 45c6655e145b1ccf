// SPDX-License-Identifier: Apache-2.0
#include "api/options/inspect.h"

#include "api/options/common.h"
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "common.h"
#include "ir/text.h"
#include "output.h"
#include "plugins.h"
#include "report_target.h"
#include "workflow/draw.h"
#include "workflow/plans.h"
#include "workflow/report/kernel_report.h"
#include "workflow/timing.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace ingot::tool {

namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, int> count_ops(const Graph& g) {
    std::map<std::string, int> counts;
    for (const Node& n : g.nodes()) {
        ++counts[std::string(n.def->name)];
    }
    return counts;
}

Json describe(const Engine& e, uint64_t file_bytes) {
    const Graph& g = e.graph();
    Json inputs = Json::array();
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        Value v = g.inputs()[i];
        inputs.push_back({{"name", g.value_name(v)},
                          {"type", to_text(g.type(v))},
                          {"format", e.formats().input(i).name}});
    }
    Json outputs = Json::array();
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        outputs.push_back({{"name", g.output_names()[i]},
                           {"type", to_text(g.type(g.outputs()[i]))},
                           {"format", e.formats().output(i).name}});
    }
    Json profiles = Json::array();
    for (const Profile& p : e.profiles()) {
        Json ranges = Json::array();
        for (const ShapeRange& r : p.inputs) {
            ranges.push_back({{"input", r.input},
                              {"min", shape_text(r.min)},
                              {"opt", shape_text(r.opt)},
                              {"max", shape_text(r.max)}});
        }
        profiles.push_back(ranges);
    }
    return {{"graph", g.name()},
            {"inputs", inputs},
            {"outputs", outputs},
            {"profiles", profiles},
            {"operators", count_ops(g)},
            {"nodes", g.nodes().size()},
            {"weightBytes", e.weight_bytes()},
            {"fileBytes", file_bytes},
            {"properties", e.metadata()}};
}

void print_description(const Json& j) {
    std::printf("Graph '%s': %zu nodes, %.2f MB of weights, file %.2f MB\n",
                j["graph"].get<std::string>().c_str(), j["nodes"].get<size_t>(),
                j["weightBytes"].get<double>() / 1e6, j["fileBytes"].get<double>() / 1e6);
    for (const char* kind : {"inputs", "outputs"}) {
        std::printf("%s:\n", kind);
        for (const Json& v : j[kind]) {
            auto format = v["format"].get<std::string>();
            std::printf("  %s: %s%s\n", v["name"].get<std::string>().c_str(),
                        v["type"].get<std::string>().c_str(),
                        format == row_major().name ? "" : (" " + format).c_str());
        }
    }
    int index = 0;
    for (const Json& p : j["profiles"]) {
        for (const Json& r : p) {
            std::printf("Model input %s (profile %d): min=%s, opt=%s, max=%s\n",
                        r["input"].get<std::string>().c_str(), index,
                        r["min"].get<std::string>().c_str(), r["opt"].get<std::string>().c_str(),
                        r["max"].get<std::string>().c_str());
        }
        ++index;
    }
    std::printf("operators:\n");
    for (const auto& [name, count] : j["operators"].items()) {
        std::printf("  %6d %s\n", count.get<int>(), name.c_str());
    }
    if (j.contains("signedBy") && !j["signedBy"].get<std::string>().empty()) {
        std::printf("signed by key %s\n", j["signedBy"].get<std::string>().c_str());
    }
    for (const auto& [name, value] : j["properties"].items()) {
        if (!value.get<std::string>().empty()) {
            std::printf("%s: %s\n", name.c_str(), value.get<std::string>().c_str());
        }
    }
}

/// The compute capability of --for; 0 (the CPU) without it.
int chosen_capability(const Options& o) {
    return target_capability(o).value_or(0);
}

// Builds and lowers again, and prints the graph after the named pass.
int dump_after(const Options& o) {
    std::vector<std::string> seen;
    std::string text;
    auto after_pass = [&](std::string_view pass, const Graph& g) {
        if (std::find(seen.begin(), seen.end(), pass) == seen.end()) {
            seen.emplace_back(pass);
        }
        if (pass == o.inspect().dump_after) {
            text = print(g);
        }
    };
    std::shared_ptr<const Engine> engine;
    if (is_engine_file(o.model)) {
        engine = open_model(o, o.model);
    } else {
        BuildConfig config = build_config(o, false);
        config.after_pass = after_pass;
        engine = build_model(o.model, config, o);
    }
    if (text.empty()) {
        CompileOptions options = compile_options(o, *engine);
        options.after_pass = after_pass;
        lowered_graph(*engine, chosen_capability(o), options);
    }
    if (o.inspect().dump_after == "list") {
        std::printf("%s\n", join(seen, "\n").c_str());
        return 0;
    }
    std::string near = nearest(o.inspect().dump_after, seen);
    require(!text.empty(), ErrorCode::InvalidArgument, "--dump-after: there is no pass '",
            o.inspect().dump_after, "'", near.empty() ? "." : str(", did you mean '", near, "'?"),
            " Passes: ", join(seen, ", "),
            is_engine_file(o.model) ? " (those before them ran when the engine was built)" : "");
    std::fputs(text.c_str(), stdout);
    return 0;
}

void print_plan(const Options& o, const std::shared_ptr<const Engine>& engine) {
    std::string text = plan_text(engine, chosen_capability(o), input_shapes(o, *engine),
                                 compile_options(o, *engine));
    std::fputs(text.c_str(), stdout);
}

void print_layers(const Options& o, const std::shared_ptr<const Engine>& engine) {
    Context context(engine, choose_backend(o), compile_options(o, *engine));
    context.prepare(input_shapes(o, *engine));
    std::vector<StepInfo> steps = context.execution().steps();
    if (o.common().json) {
        std::printf("%s\n", layers_json(context, steps, true).c_str());
        return;
    }
    for (const StepInfo& s : steps) {
        std::printf("%-12s %-32s %s\n", s.kernel.c_str(), s.implementation.c_str(), s.name.c_str());
    }
}

int print_kernels(const Options& o, const std::shared_ptr<const Engine>& engine) {
    ReportRequest q = report_request(o, *engine, o.inspect().time);
    KernelReport r = kernel_report(engine, q, compile_options(o, *engine));
    if (o.inspect().source.empty()) {
        std::printf("%s%s", o.common().json ? report_json(r, true).c_str() : report_text(r).c_str(),
                    o.common().json ? "\n" : "");
        return 0;
    }
    const std::string& wanted = o.inspect().source;
    std::vector<std::string> entries;
    size_t printed = 0;
    for (const ReportedKernel& k : kernels_of(r)) {
        entries.push_back(k.entry);
        if (wanted == "all" || wanted == k.entry || wanted == k.hash) {
            std::printf("// %s %s, %lld launches\n%s\n", k.entry.c_str(), k.hash.c_str(),
                        static_cast<long long>(k.launches), k.text.c_str());
            ++printed;
        }
    }
    require(printed > 0, ErrorCode::InvalidArgument, "--source ", wanted,
            ": no kernel has this entry or hash",
            entries.empty() ? " (the plan launches none; --for names a GPU)"
                            : str(", expected 'all' or one of ", entries));
    return 0;
}

/// --for names the device of some outputs alone; beside another it would be ignored.
void check_target(const Options& o) {
    const options::Inspect& i = o.inspect();
    bool of_a_target = i.kernels || i.plan || !i.dump_after.empty() || !i.source.empty();
    require(i.target.empty() || (of_a_target && i.graph.empty() && !i.layers),
            ErrorCode::InvalidArgument, "--for ", i.target,
            ": belongs to --kernels, --source, --plan or --dump-after",
            i.layers ? "; --layers lists the steps on the device that is here, --kernels or --plan "
                       "those of another"
                     : "");
}

} // namespace

int inspect(const Options& o) {
    print_lines_at_once();
    check_target(o);
    if (!o.inspect().dump_after.empty()) {
        return dump_after(o);
    }
    std::shared_ptr<const Engine> engine = open_model(o, o.model);
    engine->check_weights();
    if (!o.inspect().graph.empty()) {
        bool svg = o.inspect().graph.ends_with(".svg");
        require(svg || o.inspect().graph.ends_with(".dot"), ErrorCode::InvalidArgument, "--graph ",
                o.inspect().graph, ": expected a name ending in .svg or .dot");
        write_file(o.inspect().graph, svg ? draw_svg(engine->graph()) : draw_dot(engine->graph()));
        std::printf("wrote %s\n", o.inspect().graph.c_str());
        return 0;
    }
    if (o.inspect().layers) {
        print_layers(o, engine);
        return 0;
    }
    if (o.inspect().plan) {
        print_plan(o, engine);
        return 0;
    }
    if (o.inspect().kernels || !o.inspect().source.empty()) {
        return print_kernels(o, engine);
    }
    auto file = MappedFile::open(o.model);
    Json j = describe(*engine, file->bytes().size());
    if (is_engine_file(o.model)) {
        std::optional<Ed25519PublicKey> signer = signer_of(Container(file->bytes(), file));
        j["signedBy"] = signer ? key_name(*signer) : std::string();
    }
    if (o.common().json) {
        std::printf("%s\n", j.dump(2).c_str());
    } else {
        print_description(j);
    }
    return 0;
}

} // namespace ingot::tool
