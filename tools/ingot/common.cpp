// SPDX-License-Identifier: Apache-2.0
#include "common.h"

#include "backends/backends.h"
#include "base/error.h"
#include "base/log.h"
#include "onnx/input_sizes.h"
#include "plugins.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace ingot::tool {

namespace {

void draw_bar(std::string_view phase, double fraction) {
    constexpr int width = 30;
    auto full = static_cast<int>(fraction * width);
    std::string bar(static_cast<size_t>(full), '#');
    bar.resize(width, '.');
    std::fprintf(stderr, "\r[%s] %3d%% %-24.*s%s", bar.c_str(), static_cast<int>(fraction * 100),
                 static_cast<int>(phase.size()), phase.data(), fraction >= 1 ? "\n" : "");
    std::fflush(stderr);
}

Tune tune_mode(const std::string& text) {
    require(text == "off" || text == "background" || text == "full", ErrorCode::InvalidArgument,
            "--tune ", text, ": expected off, background or full");
    return text == "off" ? Tune::Off : text == "full" ? Tune::Full : Tune::Background;
}

Specialise specialise_mode(const std::string& text) {
    require(text.empty() || text == "lazy" || text == "eager" || text == "none",
            ErrorCode::InvalidArgument, "--specialisation ", text,
            ": expected lazy, eager or none");
    return text.empty()      ? Specialise::Auto
           : text == "lazy"  ? Specialise::Lazy
           : text == "eager" ? Specialise::Eager
                             : Specialise::None;
}

RunPriority run_priority(const std::string& text) {
    require(text == "low" || text == "normal" || text == "high", ErrorCode::InvalidArgument,
            "--priority ", text, ": expected low, normal or high");
    return text == "low"    ? RunPriority::Low
           : text == "high" ? RunPriority::High
                            : RunPriority::Normal;
}

} // namespace

static LayerTypes layer_types(const Options& o) {
    const std::string& text = o.precision_constraints;
    require(text == "none" || text == "prefer" || text == "obey", ErrorCode::InvalidArgument,
            "--precisionConstraints ", text, ": expected none, prefer or obey");
    LayerTypeRule rule = text == "none"     ? LayerTypeRule::None
                         : text == "prefer" ? LayerTypeRule::Prefer
                                            : LayerTypeRule::Obey;
    if (rule == LayerTypeRule::None &&
        !(o.layer_precisions.empty() && o.layer_output_types.empty())) {
        log(LogLevel::Warning, "--layerPrecisions and --layerOutputTypes change nothing without "
                               "--precisionConstraints=prefer or obey");
    }
    return {o.layer_precisions, o.layer_output_types, rule};
}

BuildConfig build_config(const Options& o, bool progress) {
    BuildConfig c;
    c.profiles = profile_from_specs(o.min_shapes, o.opt_shapes, o.max_shapes);
    require(!(o.fp16 && o.bf16), ErrorCode::InvalidArgument,
            "--fp16 and --bf16 exclude each other; give one");
    c.precision = o.fp16 ? DType::F16 : o.bf16 ? DType::BF16 : DType::F32;
    c.input_types = o.input_formats;
    c.output_types = o.output_formats;
    c.formats.direct = o.direct_io;
    c.layer_types = layer_types(o);
    c.disabled_passes = o.disable_passes;
    c.weight_streaming = o.allow_streaming;
    bool refits =
        o.refit || o.strip_all_weights || !o.refit_from.empty() || o.time_refit || o.dump_refit;
    if (refits || o.strip_weights) {
        c.refit.emplace();
        c.refit->identical = !refits;
        c.refit->stripped = o.strip_weights || o.strip_all_weights;
    }
    if (o.int8) {
        c.calibration.emplace();
        c.calibration->guess_ranges = o.uncalibrated_int8;
        if (!o.calib.empty()) {
            c.calibration->cache = read_calibration_cache(o.calib);
        }
    }
    if (progress && isatty(STDERR_FILENO) != 0) {
        c.progress = draw_bar;
    }
    take_plugins(c, o);
    return c;
}

CheckWeights check_weights(const Options& o) {
    require(!o.verify || !o.no_verify_weights, ErrorCode::InvalidArgument,
            "--verify and --noVerifyWeights are given: leave one of them out");
    return o.no_verify_weights ? CheckWeights::Never
           : o.verify          ? CheckWeights::First
                               : CheckWeights::Beside;
}

std::shared_ptr<const Engine> open_model(const Options& o, const std::string& path) {
    if (is_engine_file(path)) {
        bool shaped = !o.min_shapes.empty() || !o.opt_shapes.empty() || !o.max_shapes.empty() ||
                      o.fp16 || o.bf16 || o.int8 || !o.input_formats.empty() ||
                      !o.output_formats.empty();
        require(!shaped, ErrorCode::InvalidArgument, path,
                " is an engine: profiles, precision and formats were fixed when it was built; use "
                "--shapes "
                "for the shapes of this run");
        return Engine::load(path, check_weights(o));
    }
    BuildConfig config = build_config(o, false);
    if (config.profiles.empty() && !o.shapes.empty()) {
        config.import = [import = config.import, runs = profile_from_specs("", o.shapes, "")](
                            const onnx::Model& model, const BuildConfig& c) {
            onnx::Model sized = model;
            onnx::fix_input_sizes(sized, runs);
            onnx::ImportOptions options;
            options.keep_names = c.keep_names;
            return import ? import(sized, c) : onnx::import_or_throw(sized, options);
        };
    }
    return build_engine(path, config);
}

InputSource input_source(const Options& o) {
    InputSource s;
    for (const std::string& text : o.inputs) {
        size_t at = text.find('=');
        require(at != std::string::npos && at > 0, ErrorCode::InvalidArgument, "--input ", text,
                ": expected NAME=FILE");
        s.files.emplace_back(text.substr(0, at), text.substr(at + 1));
    }
    for (auto& file : parse_files("--loadInputs", o.load_inputs)) {
        s.files.push_back(std::move(file));
    }
    s.shapes = parse_shapes(o.shapes);
    s.image.mean = parse_numbers(o.mean);
    s.image.std = parse_numbers(o.std);
    s.image.layout = o.layout;
    s.seed = static_cast<uint64_t>(o.seed);
    return s;
}

const Backend& choose_backend(const Options& o) {
    require(o.device == "cpu" || o.device == "cuda" || o.device == "auto",
            ErrorCode::InvalidArgument, "--device ", o.device, ": expected cpu, cuda or auto");
    if (o.device == "cpu") {
        return cpu_backend();
    }
    std::string why;
    const Backend* cuda = cuda_backend(why);
    require(cuda != nullptr || o.device == "auto", ErrorCode::Unsupported, "--device cuda: ", why,
            "; use --device cpu");
    return cuda != nullptr ? *cuda : cpu_backend();
}

CompileOptions compile_options(const Options& o) {
    CompileOptions c;
    static std::unique_ptr<ThreadPool> pool;
    if (o.threads > 0) {
        pool = std::make_unique<ThreadPool>(static_cast<int>(o.threads));
        c.pool = pool.get();
    }
    c.use_library = !o.no_library;
    c.tf32 = !o.no_tf32;
    c.force_tactic = o.force_tactic;
    c.record_graphs = !o.no_cuda_graph;
    c.arch = static_cast<int>(o.arch);
    require(o.memory_limit >= 0, ErrorCode::InvalidArgument, "--memoryLimit ", o.memory_limit,
            ": expected bytes, 0 or more");
    c.memory_limit = o.memory_limit;
    c.nvtx = o.nvtx;
    if (!o.runtime_cache.empty()) {
        c.runtime_cache = o.runtime_cache == "none" ? std::string() : o.runtime_cache;
    }
    c.runtime_cache_file = o.runtime_cache_file;
    c.tune = tune_mode(o.tune);
    require(o.tune_budget >= 0, ErrorCode::InvalidArgument, "--tuneBudget ", o.tune_budget,
            ": expected milliseconds, 0 or more");
    c.tune_budget_ms = static_cast<double>(o.tune_budget);
    c.timing_cache_file = o.timing_cache_file;
    c.timed_before = o.error_on_timing_miss;
    c.specialise = specialise_mode(o.specialise);
    c.priority = run_priority(o.priority);
    return c;
}

CompileOptions compile_options(const Options& o, const Engine& engine) {
    CompileOptions c = compile_options(o);
    c.plugins = plugins_of(engine);
    return c;
}

namespace {

struct GpuOption {
    const char* name;
    bool (*is_given)(const Options&);
    const char* reason;
};

constexpr const char* no_tactics = "the CPU has no tactics to choose from";
constexpr const char* no_kernels = "the CPU has no kernels to compile";

const GpuOption gpu_options[] = {
    {"--tune", [](const Options& o) { return o.tune != "off"; }, no_tactics},
    {"--tuneBudget", [](const Options& o) { return o.tune_budget != Options().tune_budget; },
     no_tactics},
    {"--timingCacheFile", [](const Options& o) { return !o.timing_cache_file.empty(); },
     no_tactics},
    {"--forceTactic", [](const Options& o) { return !o.force_tactic.empty(); }, no_tactics},
    {"--arch", [](const Options& o) { return o.arch != 0; }, no_kernels},
    {"--runtimeCacheDir", [](const Options& o) { return !o.runtime_cache.empty(); }, no_kernels},
    {"--runtimeCacheFile", [](const Options& o) { return !o.runtime_cache_file.empty(); },
     no_kernels},
    {"--specialisation", [](const Options& o) { return !o.specialise.empty(); }, no_kernels},
    {"--memoryLimit", [](const Options& o) { return o.memory_limit != 0; },
     "it bounds the memory of a GPU, and the CPU has none of its own"},
    {"--priority", [](const Options& o) { return o.priority != "normal"; },
     "runs on the CPU have that of the process"},
    {"--nvtx", [](const Options& o) { return o.nvtx; }, "the CPU tells NVTX nothing"},
};

/// They ask for what happens on the CPU anyway.
const GpuOption anyway_options[] = {
    {"--noCudaGraph", [](const Options& o) { return o.no_cuda_graph; },
     "the CPU records no launches"},
    {"--noTF32", [](const Options& o) { return o.no_tf32; },
     "f32 products keep full precision on the CPU"},
};

} // namespace

void warn_of_gpu_options(const Options& o, const Backend& backend) {
    if (&backend != &cpu_backend()) {
        return;
    }
    for (const GpuOption& g : gpu_options) {
        if (g.is_given(o)) {
            log(LogLevel::Warning, g.name, ": accepted, no effect, because ", g.reason);
        }
    }
    for (const GpuOption& g : anyway_options) {
        if (g.is_given(o)) {
            log(LogLevel::Info, g.name, ": nothing changes, because ", g.reason);
        }
    }
}

std::vector<double> parse_numbers(std::string_view list) {
    std::vector<double> out;
    for (size_t start = 0; start <= list.size();) {
        size_t end = std::min(list.find(',', start), list.size());
        double v = 0;
        auto [last, error] = std::from_chars(list.data() + start, list.data() + end, v);
        require(error == std::errc() && last == list.data() + end, ErrorCode::InvalidArgument, "'",
                list, "': expected numbers joined by commas");
        out.push_back(v);
        start = end + 1;
    }
    return out;
}

std::vector<int> compute_capabilities(std::string_view option, const std::string& list) {
    std::vector<int> out;
    for (double v : parse_numbers(list)) {
        double whole = v < 20 ? v * 10 : v;
        require(whole >= 10 && whole < 1000 && std::abs(whole - std::round(whole)) < 1e-6,
                ErrorCode::InvalidArgument, option, ' ', list,
                ": expected numbers such as 80 or 8.0");
        out.push_back(static_cast<int>(std::round(whole)));
    }
    return out;
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::vector<std::string> parse_names(std::string_view list) {
    return list.empty() ? std::vector<std::string>() : split_names(list);
}

std::vector<std::pair<std::string, std::string>> parse_files(std::string_view option,
                                                             std::string_view spec) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const std::string& part : parse_names(spec)) {
        size_t at = part.rfind(':');
        require(at != std::string::npos && at > 0 && at + 1 < part.size(),
                ErrorCode::InvalidArgument, option, "=", spec, ": '", part,
                "': expected name:file");
        std::string name = part.substr(0, at);
        bool quoted = name.size() > 2 && name.front() == '\'' && name.back() == '\'';
        out.emplace_back(quoted ? name.substr(1, name.size() - 2) : name, part.substr(at + 1));
    }
    return out;
}

} // namespace ingot::tool
