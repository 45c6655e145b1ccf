// SPDX-License-Identifier: Apache-2.0
// trtexec's printed options: the sections before a run, and --help.
#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "common.h"
#include "trtexec_options.h"
#include "workflow/build.h"

namespace ingot::tool {

namespace {

using Lines = std::vector<std::string>;

std::string_view enabled(bool on) {
    return on ? "Enabled" : "Disabled";
}

/// The given value of an option without effect, else its usual value.
std::string given(const TrtexecOptions& t, std::string_view name, std::string_view usual) {
    auto it = t.ignored.find(name);
    return it == t.ignored.end() ? std::string(usual) : it->second;
}

/// " a b"
std::string joined(const std::vector<std::string>& list) {
    std::string all;
    for (const std::string& s : list) {
        append(all, str(' ', s));
    }
    return all;
}

std::string number(double v) {
    std::string text = str(v);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string pool_text(const TrtexecOptions& t, const std::string& name) {
    auto it = t.pools.find(name);
    return it == t.pools.end() ? "default"
                               : str(number(static_cast<double>(it->second) / 0x1p20), " MiB");
}

std::string precision_text(const Options& o) {
    if (o.build().strongly_typed) {
        return "Strongly Typed";
    }
    return str("FP32", o.build().fp16 ? "+FP16" : "", o.build().bf16 ? "+BF16" : "",
               o.build().int8 ? "+INT8" : "");
}

std::string formats_text(std::string_view name, const std::string& list) {
    return list.empty() ? str(name, "s format: fp32:CHW") : str(name, ": ", list);
}

std::string verbosity_number(const Options& o) {
    return o.build().profiling_verbosity == "detailed" ? "2"
           : o.build().profiling_verbosity == "none"   ? "1"
                                                       : "0";
}

void build_shapes(const TrtexecOptions& t, Lines& out) {
    if (t.shape_specs.empty()) {
        out.emplace_back("Input build shapes: model");
    }
    for (size_t i = 0; i < t.shape_specs.size(); ++i) {
        const auto& s = t.shape_specs[i];
        for (const Profile& p : profile_from_specs(s[0], s[1], s[2])) {
            for (const ShapeRange& r : p.inputs) {
                out.push_back(str("Input build shape (profile ", i, "): ", r.input, "=",
                                  shape_text(r.min), "+", shape_text(r.opt), "+",
                                  shape_text(r.max)));
            }
        }
    }
    out.emplace_back("Input calibration shapes: model");
}

std::string budget_text(const TrtexecOptions& t) {
    const std::string& budget = t.o.build().streaming_budget;
    if (!t.has("streaming_budget")) {
        return "100.000000%";
    }
    if (budget == "-2" || budget == "-1") {
        return budget == "-2" ? "Disabled" : "Automatic";
    }
    bool bytes = !budget.empty() && budget.back() >= '0' && budget.back() <= '9';
    return str(budget, bytes ? " bytes" : "");
}

void build_section(const TrtexecOptions& t, Lines& out) {
    const Options& o = t.o;
    out.emplace_back("=== Build Options ===");
    out.push_back(str("Memory Pools: workspace: ", pool_text(t, "workspace"),
                      ", dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, "
                      "tacticSharedMem: ",
                      pool_text(t, "tacticSharedMem")));
    out.push_back(str("avgTiming: ", given(t, "--avgTiming", "8")));
    out.push_back(str("Precision: ", precision_text(o)));
    out.emplace_back("LayerPrecisions: ");
    out.emplace_back("Layer Device Types: ");
    out.push_back(str("Calibration: ", o.build().calib));
    out.push_back(str("Refit: ", enabled(o.build().refit || o.build().strip_all_weights)));
    out.push_back(
        str("Strip weights: ", enabled(o.build().strip_weights || o.build().strip_all_weights)));
    out.emplace_back("Version Compatible: Enabled");
    out.emplace_back("ONNX Plugin InstanceNorm: Disabled");
    out.push_back(str("TensorRT runtime: ", o.run().use_runtime));
    out.push_back(str("Lean DLL Path: ", o.run().lean_path));
    out.emplace_back("Tempfile Controls: { in_memory: allow, temporary: allow }");
    out.emplace_back("Exclude Lean Runtime: Enabled");
    for (std::string_view off :
         {"Sparsity", "Safe mode", "Build DLA standalone loadable", "Allow GPU fallback for DLA"}) {
        out.push_back(str(off, ": Disabled"));
    }
    out.push_back(str("DirectIO mode: ", enabled(o.build().direct_io)));
    out.emplace_back("Restricted mode: Disabled");
    out.push_back(str("Skip inference: ", enabled(o.build().skip_inference)));
    out.push_back(str("Save engine: ", o.common().output));
    out.push_back(str("Load engine: ", o.common().load_engine));
    out.push_back(str("Profiling verbosity: ", verbosity_number(o)));
    out.emplace_back("Tactic sources: Using default tactic sources");
    out.push_back(str("timingCacheMode: ", o.run().timing_cache_file.empty() ? "local" : "global"));
    out.push_back(str("timingCacheFile: ", o.run().timing_cache_file));
    out.push_back(str("Enable Compilation Cache: ", enabled(!o.run().no_compilation_cache)));
    out.push_back(str("Enable Monitor Memory: ", enabled(o.build().monitor_memory)));
    out.push_back(str("errorOnTimingCacheMiss: ", enabled(o.build().error_on_timing_miss)));
    out.emplace_back("Preview Features: Use default preview flags.");
    out.push_back(str("MaxAuxStreams: ", given(t, "--maxAuxStreams", "-1")));
    out.push_back(str("BuilderOptimizationLevel: ", o.build().optimization_level));
    out.push_back(str("MaxTactics: ", given(t, "--maxTactics", "-1")));
    out.push_back(str("Calibration Profile Index: ", given(t, "--calibProfile", "0")));
    out.push_back(str("Weight Streaming: ", enabled(o.build().allow_streaming)));
    out.push_back(str("Runtime Platform: ", o.build().runtime_platform == "SameAsBuild"
                                                ? "Same As Build"
                                                : o.build().runtime_platform));
    out.push_back(str("Debug Tensors: ", o.build().mark_debug));
    out.push_back(formats_text("Input(s)", o.build().input_formats));
    out.push_back(formats_text("Output(s)", o.build().output_formats));
    build_shapes(t, out);
}

void system_section(const TrtexecOptions& t, Lines& out) {
    out.emplace_back("=== System Options ===");
    out.push_back(str("Device: ", t.o.run().device == "auto" ? "0" : t.o.run().device));
    out.emplace_back("DLACore: ");
    out.push_back(str("Plugins:", joined(t.o.build().static_plugins)));
    out.emplace_back("setPluginsToSerialize:");
    out.push_back(str("dynamicPlugins:", joined(t.o.build().dynamic_plugins)));
    out.emplace_back("ignoreParsedPluginLibs: 0");
    out.emplace_back();
}

void inference_section(const TrtexecOptions& t, Lines& out) {
    const Options& o = t.o;
    out.emplace_back("=== Inference Options ===");
    out.emplace_back("Batch: Explicit");
    for (const auto& [name, shape] : parse_shapes(o.common().shapes)) {
        out.push_back(str("Input inference shape : ", name, "=", shape_text(shape)));
    }
    auto chosen = static_cast<size_t>(o.measure().use_profile);
    if (o.common().shapes.empty() && chosen < t.shape_specs.size()) {
        const auto& s = t.shape_specs[chosen];
        for (const Profile& p : profile_from_specs(s[0], s[1], s[2])) {
            for (const ShapeRange& r : p.inputs) {
                out.push_back(str("Input inference shape : ", r.input, "=", shape_text(r.opt)));
            }
        }
    } else if (o.common().shapes.empty()) {
        out.emplace_back("Input inference shapes: model");
    }
    out.push_back(str("Iterations: ", o.measure().iterations));
    out.push_back(str("Duration: ", number(o.measure().duration), "s (+ ", o.measure().warm_up,
                      "ms warm up)"));
    out.push_back(str("Sleep time: ", o.measure().sleep_time, "ms"));
    out.push_back(str("Idle time: ", o.measure().idle_time, "ms"));
    out.push_back(str("Inference Streams: ", o.measure().streams));
    out.emplace_back("ExposeDMA: Disabled");
    out.push_back(str("Data transfers: ", enabled(o.measure().include_transfers)));
    out.emplace_back("Spin-wait: Disabled");
    out.push_back(str("Multithreading: ", enabled(o.measure().streams > 1)));
    out.push_back(str("CUDA Graph: ",
                      enabled(!o.run().no_cuda_graph && o.run().graph_strategy != "disable")));
    out.emplace_back("Separate profiling: Enabled");
    out.push_back(str("Time Deserialize: ", enabled(o.measure().time_deserialize)));
    out.push_back(str("Time Refit: ", enabled(o.build().time_refit)));
    out.push_back(str("NVTX verbosity: ", o.run().nvtx_verbosity == "verbose" ? "2"
                                          : o.run().nvtx || o.run().nvtx_verbosity == "default"
                                              ? "1"
                                              : "0"));
    out.push_back(str("Persistent Cache Ratio: ", number(o.measure().cache_ratio)));
    out.push_back(str("Optimization Profile Index: ", o.measure().use_profile));
    out.push_back(str("Weight Streaming Budget: ", budget_text(t)));
    out.emplace_back("Inputs:");
    for (const ReferencePair& pair : t.pairs) {
        for (const auto& [name, file] : parse_files("--loadInputs", pair.inputs)) {
            out.push_back(str(name, "<-", file));
        }
    }
    out.push_back(str("Debug Tensor Save Destinations:", o.measure().save_debug.empty() ? "" : " ",
                      o.measure().save_debug));
}

void reporting_section(const Options& o, Lines& out) {
    out.emplace_back("=== Reporting Options ===");
    out.push_back(str("Verbose: ", enabled(o.common().verbose)));
    out.push_back(str("Averages: ", o.measure().avg_runs, " inferences"));
    out.push_back(str("Percentiles: ", o.measure().percentile));
    out.push_back(str("Dump refittable layers:", enabled(o.build().dump_refit)));
    out.push_back(str("Dump output: ", enabled(o.measure().dump_output)));
    out.push_back(str("Profile: ", enabled(o.measure().dump_profile)));
    out.push_back(str("Export timing to JSON file: ", o.measure().export_times));
    out.push_back(str("Export output to JSON file: ", o.measure().export_output));
    out.push_back(str("Export profile to JSON file: ", o.measure().export_profile));
    out.emplace_back();
}

/// "  --name=VALUE", padded to a column, then the text, wrapped there.
void help_row(const std::string& names, std::string_view value, std::string_view text,
              std::string& out) {
    constexpr size_t column = 34;
    constexpr size_t width = 100;
    std::string line = str("  ", names, value.empty() || value.front() == '[' ? "" : "=", value);
    line.resize(std::max(line.size() + 2, column), ' ');
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(' ', at), text.size());
        std::string_view word = text.substr(at, end - at);
        if (line.size() + word.size() > width && line.find_first_not_of(' ') != std::string::npos) {
            append(out, str(line, "\n"));
            line.assign(column, ' ');
        }
        append(line, str(word, " "));
        at = end + 1;
    }
    line.pop_back();
    append(out, str(line, "\n"));
}

} // namespace

std::vector<std::string> option_lines(const TrtexecOptions& t) {
    Lines out;
    out.emplace_back("=== Model Options ===");
    out.push_back(str("Format: ", t.loads() ? "*" : "ONNX"));
    out.push_back(str("Model: ", t.loads() ? std::string() : t.o.common().onnx));
    out.emplace_back("Output:");
    if (t.loads()) {
        out.emplace_back();
    } else {
        build_section(t, out);
    }
    system_section(t, out);
    inference_section(t, out);
    reporting_section(t.o, out);
    return out;
}

std::string trtexec_help() {
    std::string out = "trtexec --onnx=FILE [options]         builds an engine and measures it\n"
                      "trtexec --loadEngine=FILE [options]   measures an engine\n\nOptions:\n";
    for (const OptionRow& r : option_rows()) {
        if ((r.commands & command::Trtexec) != 0) {
            bool plain = r.standard == "false" || r.standard == "{}" || r.standard == "\"\"";
            help_row(join(split_names(r.names), ", "), r.value,
                     plain ? std::string(r.help) : str(r.help, " (default ", r.standard, ")"), out);
        }
    }
    append(out, "\nAccepted without effect:\n");
    for (const IgnoredRow& r : ignored_rows()) {
        help_row(join(split_names(r.names), ", "), r.value, r.reason, out);
    }
    return out;
}

} // namespace ingot::tool
