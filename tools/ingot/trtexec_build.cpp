// SPDX-License-Identifier: Apache-2.0
// trtexec: from options to an engine and the device that runs it.
#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "backends/backends.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "common.h"
#include "engine/container.h"
#include "plugins.h"
#include "trtexec.h"

#include <algorithm>
#include <charconv>

namespace ingot::tool {

namespace {

constexpr int level_that_times = 4;

std::string six_digits(double v) {
    char text[40];
    std::snprintf(text, sizeof(text), "%g", v);
    return text;
}

std::string mebibytes(uint64_t bytes) {
    return six_digits(static_cast<double>(bytes) / 0x1p20);
}

void choose_device(TrtexecRun& run) {
    const std::string& device = run.t.o.run().device;
    bool numbered = !device.empty() && device.size() < 4 &&
                    device.find_first_not_of("0123456789") == std::string::npos;
    std::string why;
    if (numbered) {
        const Backend* gpu = cuda_backend(std::stoi(device), why);
        std::string first;
        require(gpu != nullptr || cuda_backend(first) == nullptr, ErrorCode::InvalidArgument,
                "--device=", device, ": ", why);
        run.backend = gpu != nullptr ? gpu : &cpu_backend();
    } else {
        run.backend = &choose_backend(run.t.o);
    }
    info("=== Device Information ===");
    info(str("Selected Device: ", run.backend->description()));
    info("");
    if (!run.on_cpu()) {
        return;
    }
    if (device != "cpu" && (numbered || cuda_backend(why) == nullptr)) {
        warning(str("there is no ", numbered ? "GPU " + device : "GPU", " (", why,
                    "): the engine runs on the CPU, and 'GPU' below means the CPU"));
    }
    for (const char* field : {"runtime_cache_file", "timing_cache_file"}) {
        bool timed = field == std::string_view("timing_cache_file") &&
                     has_plugin_libraries(run.t.o); // tactics of plugins
        if (run.t.has(field) && !timed) {
            warning(str("no ",
                        field == std::string_view("timing_cache_file") ? "timing" : "runtime",
                        " cache is read or written: the CPU has no kernels to compile or time"));
        }
    }
    Options others = run.t.o; // these were reported above
    others.run().runtime_cache_file.clear();
    others.run().timing_cache_file.clear();
    warn_of_gpu_options(others, *run.backend);
    if (run.t.o.build().optimization_level >= level_that_times && !run.t.has("tune")) {
        warning(str("--builderOptimizationLevel=", run.t.o.build().optimization_level,
                    ": accepted, no effect, because the CPU has no tactics to time"));
    }
}

void set_compile_options(TrtexecRun& run) {
    Options o = run.t.o;
    o.run().threads = o.run().cpu_threads;
    if (o.run().no_compilation_cache) {
        o.run().runtime_cache = "none";
        o.run().runtime_cache_file.clear();
    }
    o.run().no_cuda_graph = o.run().no_cuda_graph || o.run().graph_strategy == "disable";
    bool times = o.build().optimization_level >= level_that_times ||
                 !o.run().timing_cache_file.empty() || o.build().error_on_timing_miss;
    if (times && !run.t.has("tune")) {
        o.run().tune = "full";
    }
    run.compile = compile_options(o);
    if (o.run().nvtx_verbosity != "none") {
        run.compile.ranges = Ranges::Names;
    }
    auto shared = run.t.pools.find("tacticSharedMem");
    if (shared != run.t.pools.end()) {
        run.compile.of<CudaOptions>().shared_memory = shared->second;
    }
    auto workspace = run.t.pools.find("workspace");
    if (workspace != run.t.pools.end()) {
        run.compile.workspace = workspace->second;
    }
}

bool quantises(const Graph& g) {
    return std::any_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) {
        return n.def->name == "quantize" || n.def->name == "dequantize";
    });
}

std::vector<Profile> profiles_of(const TrtexecOptions& t) {
    std::vector<Profile> all;
    for (const auto& s : t.shape_specs) {
        std::vector<Profile> one = profile_from_specs(s[0], s[1], s[2]);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all.empty() ? profile_from_specs("", t.o.common().shapes, "") : all;
}

/// The profiles without the inputs whose values they give: the run sets those.
std::vector<Profile> shape_profiles(const Graph& g, std::vector<Profile> profiles) {
    for (Profile& p : profiles) {
        std::erase_if(p.inputs,
                      [&](const ShapeRange& r) { return states_values(g, r.input, r.opt); });
    }
    std::erase_if(profiles, [](const Profile& p) { return p.inputs.empty(); });
    return profiles;
}

void print_profile_shapes(const Graph& g, const std::vector<Profile>& profiles) {
    for (size_t i = 0; i < profiles.size(); ++i) {
        check_profile(g, profiles[i]);
        for (const ShapeRange& r : profiles[i].inputs) {
            info(str("Set shape of input tensor ", r.input, " for optimization profile ", i,
                     " to: MIN=", shape_text(r.min), " OPT=", shape_text(r.opt),
                     " MAX=", shape_text(r.max)));
        }
    }
}

BuildConfig config_of(const TrtexecRun& run) {
    const Options& o = run.t.o;
    BuildConfig c = build_config(o, false);
    c.profiles = profiles_of(run.t);
    c.keep_names = o.build().profiling_verbosity == "detailed" || debugs_tensors(o);
    c.debug_tensors = parse_names(o.build().mark_debug);
    return c;
}

/// The compute capabilities for ahead-of-time kernels.
std::vector<int> capabilities_of(const TrtexecRun& run) {
    const Options& o = run.t.o;
    std::vector<int> all;
    if (!o.build().compute_capabilities.empty()) {
        all = compute_capabilities("--computeCapabilities", o.build().compute_capabilities);
    }
    auto old = std::stable_partition(all.begin(), all.end(),
                                     [](int cc) { return cc >= lowest_capability(); });
    for (auto it = old; it != all.end(); ++it) {
        warning(str("--computeCapabilities: ", *it, " is left out, kernels exist from ",
                    lowest_capability(), " on"));
    }
    all.erase(old, all.end());
    if (!o.build().use_gpu) {
        return all;
    }
    int here = run.backend->compute_capability();
    if (here == 0) {
        warning("--useGpu is ignored: there is no GPU here whose kernels could be compiled ahead");
        return all;
    }
    all.push_back(here);
    return all;
}

void build(TrtexecRun& run) {
    const Options& o = run.t.o;
    double start = seconds_now();
    BuildConfig config = config_of(run);
    info("Start parsing network model.");
    config.after_pass = [&](std::string_view pass, const Graph& g) {
        if (pass != "import") {
            return;
        }
        info(
            str("Finished parsing network model. Parse time: ", six_digits(seconds_now() - start)));
        if (o.build().int8 && o.build().calib.empty() && !o.build().uncalibrated_int8 &&
            quantises(g)) {
            info("--int8: the model's own QuantizeLinear and DequantizeLinear nodes are used");
        }
        print_profile_shapes(g, shape_profiles(g, config.profiles));
    };
    config.choose_profiles = shape_profiles;
    run.engine = build_model(o.common().onnx, config, o);
    run.compile.plugins = plugins_of(*run.engine);
    std::vector<int> capabilities = capabilities_of(run);
    if (!capabilities.empty()) {
        CompileOptions ahead = run.compile;
        ahead.of<CudaOptions>().tune = Tune::Off; // the GPUs may be absent
        run.engine = with_kernels_ahead(*run.engine, capabilities, ahead);
        info(str("Compiled ", run.engine->kernels()->size(), " kernels ahead of time"));
    }
    run.built_s = seconds_now() - start;
    info(str("Engine built in ", six_digits(run.built_s), " sec."));
    if (o.build().monitor_memory) {
        info(str("Peak host memory after building: ", mebibytes(peak_memory_bytes()), " MiB"));
    }
}

void save(TrtexecRun& run) {
    const std::string& path = run.t.o.common().output;
    write_engine(path, *run.engine, as_built(*run.engine));
    info(str("Created engine with size: ", mebibytes(MappedFile::open(path)->bytes().size()),
             " MiB"));
}

void load(TrtexecRun& run, const std::string& path) {
    double start = seconds_now();
    run.engine = Engine::load(path, check_weights(run.t.o), engine_trust(run.t.o));
    run.compile.plugins = plugins_of(*run.engine);
    if (run.t.o.build().skip_inference) { // else the first run waits for it
        run.engine->check_weights();
    }
    info(str("Loaded engine with size: ", mebibytes(MappedFile::open(path)->bytes().size()),
             " MiB"));
    info(str("Engine deserialized in ", six_digits(seconds_now() - start), " sec."));
}

} // namespace

bool debugs_tensors(const Options& o) {
    return !o.build().mark_debug.empty() || o.build().mark_all_debug ||
           !o.measure().save_debug.empty() || !o.measure().save_all_debug.empty();
}

void open_engine(TrtexecRun& run) {
    Options& o = run.t.o;
    choose_device(run);
    watch_external_data(o);
    load_plugin_libraries(o);
    set_compile_options(run);
    if (run.t.loads()) {
        load(run, o.common().load_engine);
        refit_engine(run);
        if (!o.common().output.empty()) {
            save(run);
        }
        return;
    }
    require(!is_engine_file(o.common().onnx), ErrorCode::InvalidArgument, o.common().onnx,
            " is an engine, not an ONNX model: give it as --loadEngine=", o.common().onnx);
    build(run);
    if (!o.common().output.empty()) {
        save(run);
        if (!o.build().skip_inference && as_built(*run.engine).weights) {
            load(run, o.common().output);
        }
    }
    refit_engine(run);
}

void time_deserialization(const Options& o) {
    constexpr int runs = 20;
    const std::string& path =
        o.common().load_engine.empty() ? o.common().output : o.common().load_engine;
    require(!path.empty(), ErrorCode::InvalidArgument,
            "--timeDeserialize needs an engine file: give --loadEngine or --saveEngine");
    auto once = [&] {
        double start = seconds_now();
        Engine::load(path, check_weights(o), engine_trust(o))->check_weights();
        return (seconds_now() - start) * 1000;
    };
    info("Begin deserialization warmup...");
    once();
    once();
    info("Begin deserialization engine timing...");
    double first = once();
    info(str("First deserialization time = ", six_digits(first), " milliseconds"));
    double total = 0;
    for (int i = 0; i < runs; ++i) {
        total += once();
    }
    info(str("Total deserialization time = ", six_digits(total), " milliseconds in ", runs,
             " iterations, average time = ", six_digits(total / runs),
             " milliseconds, first time = ", six_digits(first), " milliseconds."));
    info(str("Deserialization Bandwidth = ",
             six_digits(static_cast<double>(MappedFile::open(path)->bytes().size()) * 1e-6 * runs /
                        total),
             " GB/s"));
}

} // namespace ingot::tool
