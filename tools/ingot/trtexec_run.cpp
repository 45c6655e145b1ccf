// SPDX-License-Identifier: Apache-2.0
// trtexec: contexts, measurement and reports.
#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "base/error.h"
#include "base/file.h"
#include "common.h"
#include "plan/run_settings.h"
#include "trtexec.h"
#include "workflow/timing.h"

#include <algorithm>
#include <cstdio>

namespace ingot::tool {

namespace {

std::vector<Shape> shapes_of(const std::vector<Tensor>& tensors) {
    std::vector<Shape> shapes;
    for (const Tensor& t : tensors) {
        shapes.push_back(t.shape());
    }
    return shapes;
}

bool is_dynamic(const Dims& dims) {
    return std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return !d.is_const(); });
}

bool named(const InputSource& source, const std::string& input) {
    auto same = [&](const auto& entry) { return entry.first == input; };
    return std::any_of(source.shapes.begin(), source.shapes.end(), same) ||
           std::any_of(source.files.begin(), source.files.end(), same);
}

void say_overridden_shapes(const Engine& engine, const InputSource& source,
                           const std::vector<Tensor>& inputs) {
    const Graph& g = engine.graph();
    for (size_t i = 0; i < inputs.size(); ++i) {
        Value v = g.inputs()[i];
        if (is_dynamic(g.type(v).dims) && !named(source, g.value_name(v))) {
            warning(str("Dynamic dimensions required for input: ", g.value_name(v),
                        ", but no shapes were provided. Automatically overriding shape to: ",
                        shape_text(inputs[i].shape())));
        }
    }
}

/// --persistentCacheRatio: contexts share the GPU's persistent cache.
void keep_in_cache(const TrtexecRun& run, std::span<const std::unique_ptr<Context>> contexts) {
    double ratio = run.t.o.measure().cache_ratio;
    if (ratio <= 0) {
        return;
    }
    int64_t most = contexts[0]->execution().most_cache_bytes();
    if (most == 0) {
        warning(
            "--persistentCacheRatio has no effect: the device of the engine sets no cache aside");
        return;
    }
    auto limit = static_cast<int64_t>(static_cast<double>(most) * ratio);
    for (const auto& context : contexts) {
        context->execution().change([&](RunSettings& changed) {
            changed.cache_limit = limit / static_cast<int64_t>(contexts.size());
        });
    }
    info(str("Setting persistentCacheLimit to ", limit, " bytes."));
}

std::vector<std::unique_ptr<Context>> make_contexts(const TrtexecRun& run,
                                                    const std::vector<Tensor>& inputs) {
    std::vector<std::unique_ptr<Context>> contexts;
    for (int64_t i = 0; i < run.t.o.measure().streams; ++i) {
        contexts.push_back(i == 0 ? std::make_unique<Context>(run.engine, *run.backend, run.compile)
                                  : contexts[0]->sibling());
        if (run.t.o.run().nvtx_verbosity == "verbose") {
            contexts.back()->execution().change(
                [&](RunSettings& changed) { changed.ranges = Ranges::Detailed; });
        }
        contexts.back()->prepare(shapes_of(inputs));
        char size[40];
        std::snprintf(size, sizeof(size), "%g",
                      static_cast<double>(contexts.back()->execution().memory_use().activations) /
                          0x1p20);
        info(str("Created execution context with device memory size: ", size, " MiB"));
    }
    keep_in_cache(run, contexts);
    return contexts;
}

void print_performance(const TrtexecRun& run, Timing& t) {
    const Options& o = run.t.o;
    if (!o.measure().include_transfers && !t.on_caller) {
        leave_out_transfers(t);
        info("Inputs and outputs are copied all the same: Throughput includes that, the latencies "
             "below do not");
    }
    for (const std::string& line :
         performance_lines(t, parse_numbers(o.measure().percentile), o.measure().avg_runs)) {
        line.starts_with("* ") ? warning(line) : info(line);
    }
    info("");
}

void print_profile(const Options& o, Context& context, const std::vector<Tensor>& inputs) {
    if (!o.measure().dump_profile && o.measure().export_profile.empty()) {
        return;
    }
    LayerProfile p = profile_layers(context, inputs, std::max<int64_t>(10, o.measure().iterations));
    if (o.measure().dump_profile) {
        info("");
        for (const std::string& line : profile_lines(p)) {
            info(line);
        }
        info("");
    }
    if (!o.measure().export_profile.empty()) {
        write_file(o.measure().export_profile, profile_json(p));
    }
}

void print_layers(const Options& o, const Context& context, const std::vector<StepInfo>& steps) {
    if (!o.measure().dump_layer_info && o.measure().export_layer_info.empty()) {
        return;
    }
    if (o.build().profiling_verbosity == "none") {
        warning("--profilingVerbosity=none leaves out the details of layers");
        return;
    }
    bool detailed = o.build().profiling_verbosity == "detailed";
    if (o.measure().dump_layer_info) {
        info("Layer Information:");
        for (const std::string& line : layer_lines(context, steps, detailed)) {
            info(line);
        }
    }
    if (!o.measure().export_layer_info.empty()) {
        write_file(o.measure().export_layer_info, layers_json(context, steps, detailed));
    }
}

void print_profiles(const Engine& engine) {
    const Graph& g = engine.graph();
    for (Value v : g.inputs()) {
        const std::string& name = g.value_name(v);
        size_t count = std::max<size_t>(1, engine.profiles().size());
        for (size_t i = 0; i < count; ++i) {
            const ShapeRange* r =
                engine.profiles().empty() ? nullptr : engine.profiles()[i].find(name);
            if (r != nullptr) {
                info(str("Model input ", name, " (profile ", i, "): min=", shape_text(r->min),
                         ", opt=", shape_text(r->opt), ", max=", shape_text(r->max)));
            } else if (is_dynamic(g.type(v).dims)) {
                info(str("Model input ", name, " (profile ", i, "): any shape ", g.type(v).dims));
            } else {
                std::string s = shape_text(default_shape(g, 0, {}));
                for (size_t k = 0; k < g.inputs().size(); ++k) {
                    s = g.inputs()[k] == v ? shape_text(default_shape(g, k, {})) : s;
                }
                info(str("Model input ", name, " (profile ", i, "): min=", s, ", opt=", s,
                         ", max=", s));
            }
        }
    }
}

void write_reports(TrtexecRun& run, Context& context, const std::vector<Tensor>& inputs,
                   const Timing& t) {
    const Options& o = run.t.o;
    const Graph& g = run.engine->graph();
    std::vector<Tensor> outputs(t.outputs); // without debug outputs
    outputs.resize(std::min(outputs.size(), run.engine->result_count()));
    if (o.measure().dump_output) {
        print_outputs(g, outputs);
    }
    if (!o.measure().export_output.empty()) {
        write_file(o.measure().export_output, outputs_json(g, outputs));
    }
    if (!o.measure().export_times.empty()) {
        write_file(o.measure().export_times, times_json(t));
    }
    if (o.measure().dump_raw) {
        dump_raw(*run.engine, inputs, outputs);
    }
    print_profile(o, context, inputs);
    print_layers(o, context, context.execution().steps());
    if (!o.measure().save_debug.empty() || !o.measure().save_all_debug.empty()) {
        save_debug_tensors(o, context, inputs);
    }
}

} // namespace

InputSource trtexec_inputs(const TrtexecOptions& t, const Engine& engine,
                           const ReferencePair& pair) {
    const std::vector<Profile>& profiles = engine.profiles();
    auto index = static_cast<size_t>(t.o.measure().use_profile);
    require(index == 0 || index < profiles.size(), ErrorCode::InvalidArgument,
            "--useProfile=", index, ": the engine has ", profiles.size(), " profiles");
    InputSource s;
    s.seed = static_cast<uint64_t>(t.o.common().seed);
    s.shapes = parse_shapes(t.o.common().shapes);
    s.files = parse_files("--loadInputs", pair.inputs);
    for (const ShapeRange& r :
         profiles.empty() ? std::vector<ShapeRange>{} : profiles[index].inputs) {
        bool npy = std::any_of(s.files.begin(), s.files.end(), [&](const auto& f) {
            return f.first == r.input && f.second.ends_with(".npy"); // the file has its shape
        });
        if (!npy && std::none_of(s.shapes.begin(), s.shapes.end(),
                                 [&](const auto& given) { return given.first == r.input; })) {
            s.shapes.emplace_back(r.input, r.opt);
        }
    }
    return s;
}

bool states_values(const Graph& g, std::string_view input, const Shape& shape) {
    for (Value v : g.inputs()) {
        if (g.value_name(v) == input) {
            const Type& t = g.type(v);
            return is_integer(t.dtype) && t.rank() <= 1 && !is_dynamic(t.dims) &&
                   static_cast<int64_t>(shape.size()) == (t.rank() == 0 ? 1 : t.dims[0].value());
        }
    }
    return false;
}

LoadedInputs trtexec_load_inputs(const TrtexecOptions& t, const Engine& engine,
                                 InputSource source) {
    const Graph& g = engine.graph();
    std::map<std::string, Shape> values;
    auto profile = static_cast<size_t>(t.o.measure().use_profile);
    if (profile < t.shape_specs.size()) { // the engine keeps no values in its profiles
        const auto& s = t.shape_specs[profile];
        for (const Profile& p : profile_from_specs(s[0], s[1], s[2])) {
            for (const ShapeRange& r : p.inputs) {
                if (states_values(g, r.input, r.opt)) {
                    values[r.input] = r.opt;
                }
            }
        }
    }
    for (const auto& [name, shape] : source.shapes) {
        if (states_values(g, name, shape)) {
            values[name] = shape;
        }
    }
    std::erase_if(source.shapes, [&](const auto& s) { return values.count(s.first) != 0; });
    for (const auto& [name, file] : source.files) {
        values.erase(name);
    }
    LoadedInputs loaded = load_inputs(engine, source);
    for (size_t i = 0; i < loaded.tensors.size(); ++i) {
        auto it = values.find(g.value_name(g.inputs()[i]));
        for (size_t k = 0; it != values.end() && k < it->second.size(); ++k) {
            loaded.tensors[i].set_i64(static_cast<int64_t>(k), it->second[k]);
        }
    }
    std::erase_if(loaded.random, [&](const std::string& n) { return values.count(n) != 0; });
    return loaded;
}

void run_inference(TrtexecRun& run) {
    const Options& o = run.t.o;
    InputSource source = trtexec_inputs(run.t, *run.engine, run.t.pairs[0]);
    LoadedInputs inputs = trtexec_load_inputs(run.t, *run.engine, source);
    say_overridden_shapes(*run.engine, source, inputs.tensors);
    for (const std::string& n : inputs.random) {
        info(str("Using random values for input ", n));
    }
    std::vector<std::unique_ptr<Context>> contexts = make_contexts(run, inputs.tensors);
    info("Starting inference");
    Timing t = measure(contexts, inputs.tensors,
                       {o.measure().iterations, static_cast<double>(o.measure().warm_up),
                        o.measure().duration, o.measure().sleep_time, o.measure().idle_time});
    print_performance(run, t);
    if (o.measure().dump_profiles) {
        print_profiles(*run.engine);
    }
    write_reports(run, *contexts[0], inputs.tensors, t);
    check_accuracy(run.t, *contexts[0], source);
}

void report_engine(TrtexecRun& run) {
    const Options& o = run.t.o;
    if (o.measure().dump_profiles) {
        print_profiles(*run.engine);
    }
    if (!o.measure().dump_layer_info && o.measure().export_layer_info.empty()) {
        return;
    }
    Context context(run.engine, *run.backend, run.compile);
    LoadedInputs inputs =
        trtexec_load_inputs(run.t, *run.engine, trtexec_inputs(run.t, *run.engine, run.t.pairs[0]));
    context.prepare(shapes_of(inputs.tensors));
    print_layers(o, context, context.execution().steps());
}

} // namespace ingot::tool
