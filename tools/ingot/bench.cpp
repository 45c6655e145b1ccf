// SPDX-License-Identifier: Apache-2.0
#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "common.h"
#include "workflow/timing.h"

#include <cstdio>
#include <ctime>

namespace ingot::tool {

namespace {

void info(const std::string& line) {
    std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof(stamp), "%m/%d/%Y-%H:%M:%S", &local);
    std::printf("[%s] [I] %s\n", stamp, line.c_str());
}

std::string seconds_text(double s) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", s);
    return text;
}

std::string model_path(const Options& o) {
    int given = (o.model.empty() ? 0 : 1) + (o.common().onnx.empty() ? 0 : 1) +
                (o.common().load_engine.empty() ? 0 : 1);
    require(given == 1, ErrorCode::InvalidArgument,
            "give one model: --loadEngine=FILE, --onnx=FILE, or a path; got ", given);
    return !o.model.empty()           ? o.model
           : !o.common().onnx.empty() ? o.common().onnx
                                      : o.common().load_engine;
}

void report(const Options& o, Context& context, const std::vector<Tensor>& inputs,
            const Timing& t) {
    if (o.measure().dump_profile || !o.measure().export_profile.empty()) {
        LayerProfile p =
            profile_layers(context, inputs, std::max<int64_t>(10, o.measure().iterations));
        if (o.measure().dump_profile) {
            info("");
            for (const std::string& line : profile_lines(p)) {
                info(line);
            }
        }
        if (!o.measure().export_profile.empty()) {
            write_file(o.measure().export_profile, profile_json(p));
        }
    }
    bool detailed = o.build().profiling_verbosity == "detailed";
    if (o.measure().dump_layer_info) {
        info("Layer Information:");
        info(layers_json(context, context.execution().steps(), detailed));
    }
    if (!o.measure().export_layer_info.empty()) {
        write_file(o.measure().export_layer_info,
                   layers_json(context, context.execution().steps(), detailed));
    }
    if (!o.measure().export_times.empty()) {
        write_file(o.measure().export_times, times_json(t));
    }
    std::string outputs = o.measure().dump_output || !o.measure().export_output.empty()
                              ? outputs_json(context.engine().graph(), t.outputs)
                              : "";
    if (o.measure().dump_output) {
        std::printf("%s\n", outputs.c_str());
    }
    if (!o.measure().export_output.empty()) {
        write_file(o.measure().export_output, outputs);
    }
}

} // namespace

int bench(const Options& o) {
    std::vector<double> percentiles = parse_numbers(o.measure().percentile);
    std::string path = model_path(o);
    double start = seconds_now();
    bool loaded = is_engine_file(path);
    std::shared_ptr<const Engine> engine = open_model(o, path);
    info(str("Engine ", loaded ? "deserialized" : "built", " in ",
             seconds_text(seconds_now() - start), " sec."));
    const Backend& backend = choose_backend(o);
    info(str("Device: ", backend.name(), " (", backend.description(), ")"));
    warn_of_gpu_options(o, backend);
    Context context(engine, backend, compile_options(o, *engine));
    LoadedInputs inputs = load_inputs(*engine, input_source(o));
    for (const std::string& n : inputs.random) {
        info(str("Using random values for input ", n));
    }
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs.tensors) {
        shapes.push_back(t.shape());
    }
    context.prepare(shapes);
    info(str(
        "Created execution context with device memory size: ",
        seconds_text(static_cast<double>(context.execution().memory_use().activations) / 1048576),
        " MiB"));
    info("Starting inference");
    TimingOptions timing{o.measure().iterations, static_cast<double>(o.measure().warm_up),
                         o.measure().duration, o.measure().sleep_time, o.measure().idle_time};
    Timing t = measure(context, inputs.tensors, timing);
    for (const std::string& line : performance_lines(t, percentiles, o.measure().avg_runs)) {
        info(line);
    }
    report(o, context, inputs.tensors, t);
    return 0;
}

} // namespace ingot::tool
