// SPDX-License-Identifier: Apache-2.0
#include "common.h"

#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/run.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "onnx/external_data.h"
#include "plugins.h"
#include "workflow/plans.h"

#include <unistd.h>

#include <algorithm>
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

} // namespace

static LayerTypes layer_types(const Options& o) {
    const std::string& text = o.build().precision_constraints;
    LayerTypeRule rule = text == "none"     ? LayerTypeRule::None
                         : text == "prefer" ? LayerTypeRule::Prefer
                                            : LayerTypeRule::Obey;
    if (rule == LayerTypeRule::None &&
        !(o.build().layer_precisions.empty() && o.build().layer_output_types.empty())) {
        log(LogLevel::Warning, "--layerPrecisions and --layerOutputTypes change nothing without "
                               "--precisionConstraints=prefer or obey");
    }
    return {o.build().layer_precisions, o.build().layer_output_types, rule};
}

/// For --fp16: sample inputs or a calibration cache tell the ranges of values.
static std::optional<HalfRangeConfig> half_ranges(const Options& o) {
    HalfRangeConfig c;
    bool samples = !o.run().inputs.empty() || !o.run().load_inputs.empty();
    if (!o.build().fp16 || (!samples && o.build().calib.empty())) {
        return std::nullopt;
    }
    if (samples) {
        c.inputs = input_source(o);
    }
    if (!o.build().calib.empty()) {
        c.cache = read_calibration_cache(o.build().calib);
    }
    return c;
}

BuildConfig build_config(const Options& o, bool progress) {
    BuildConfig c;
    c.profiles =
        profile_from_specs(o.build().min_shapes, o.build().opt_shapes, o.build().max_shapes);
    require(!(o.build().fp16 && o.build().bf16), ErrorCode::InvalidArgument,
            "--fp16 and --bf16 exclude each other; give one");
    c.precision = o.build().fp16 ? DType::F16 : o.build().bf16 ? DType::BF16 : DType::F32;
    c.input_types = o.build().input_formats;
    c.output_types = o.build().output_formats;
    c.formats.direct = o.build().direct_io;
    c.layer_types = layer_types(o);
    c.disabled_passes = o.build().disable_passes;
    c.weight_streaming = o.build().allow_streaming;
    c.batch_invariant = o.build().batch_invariant;
    c.optional_inputs = parse_names(o.build().optional_inputs);
    bool refits = o.build().refit || o.build().strip_all_weights || !o.build().refit_from.empty() ||
                  o.build().time_refit || o.build().dump_refit;
    if (refits || o.build().strip_weights) {
        c.refit.emplace();
        c.refit->identical = !refits;
        c.refit->stripped = o.build().strip_weights || o.build().strip_all_weights;
    }
    if (o.build().int8) {
        c.calibration.emplace();
        c.calibration->guess_ranges = o.build().uncalibrated_int8;
        if (!o.build().calib.empty()) {
            c.calibration->cache = read_calibration_cache(o.build().calib);
        }
    }
    c.half_ranges = half_ranges(o);
    if (progress && isatty(STDERR_FILENO) != 0) {
        c.progress = draw_bar;
    }
    return c;
}

CheckWeights check_weights(const Options& o) {
    require(!o.run().verify || !o.run().no_verify_weights, ErrorCode::InvalidArgument,
            "--verify and --noVerifyWeights are given: leave one of them out");
    return o.run().no_verify_weights ? CheckWeights::Never
           : o.run().verify          ? CheckWeights::First
                                     : CheckWeights::Beside;
}

void watch_external_data(const Options& o) {
    onnx::ExternalRules rules;
    rules.hidden = o.build().hidden_files;
    rules.told = [](const std::string& path, uint64_t bytes) {
        std::fprintf(stderr, "external data is read from %s, %llu bytes\n", printable(path).c_str(),
                     static_cast<unsigned long long>(bytes));
    };
    onnx::set_external_rules(std::move(rules));
}

Trust engine_trust(const Options& o) {
    Trust trust;
    if (!o.run().trusted_keys.empty()) {
        trust.keys = read_trusted_keys(o.run().trusted_keys);
    }
    trust.only_signed = o.run().trusted_only;
    trust.allow_code = o.run().allow_engine_code;
    return trust;
}

std::shared_ptr<const Engine> open_model(const Options& o, const std::string& path) {
    if (is_engine_file(path)) {
        bool shaped = !o.build().min_shapes.empty() || !o.build().opt_shapes.empty() ||
                      !o.build().max_shapes.empty() || o.build().fp16 || o.build().bf16 ||
                      o.build().int8 || !o.build().input_formats.empty() ||
                      !o.build().output_formats.empty();
        require(!shaped, ErrorCode::InvalidArgument, path,
                " is an engine: profiles, precision and formats were fixed when it was built; use "
                "--shapes "
                "for the shapes of this run");
        require(!o.build().batch_invariant, ErrorCode::InvalidArgument, "--batchInvariant: ", path,
                " is an engine, which obeys what it was built for; give the option to the build");
        require(o.build().optional_inputs.empty(), ErrorCode::InvalidArgument,
                "--optionalInputs: ", path,
                " is an engine, whose inputs are fixed; give the option to the build");
        return Engine::load(path, check_weights(o), engine_trust(o));
    }
    require(!o.run().trusted_only, ErrorCode::InvalidArgument, path,
            " is a model, and --trustedOnly allows only engines that a trusted key has signed");
    BuildConfig config = build_config(o, false);
    if (config.profiles.empty()) {
        config.run_shapes = known_shapes(input_source(o));
    }
    return build_model(path, config, o);
}

InputSource input_source(const Options& o) {
    InputSource s;
    for (const std::string& text : o.run().inputs) {
        size_t at = text.find('=');
        require(at != std::string::npos && at > 0, ErrorCode::InvalidArgument, "--input ", text,
                ": expected NAME=FILE");
        s.files.emplace_back(text.substr(0, at), text.substr(at + 1));
    }
    for (auto& file : parse_files("--loadInputs", o.run().load_inputs)) {
        s.files.push_back(std::move(file));
    }
    s.shapes = parse_shapes(o.common().shapes);
    s.image.mean = parse_numbers(o.run().mean);
    s.image.std = parse_numbers(o.run().std);
    s.image.layout = o.run().layout;
    s.seed = static_cast<uint64_t>(o.common().seed);
    return s;
}

const Backend& choose_backend(const Options& o) {
    require(o.run().device == "cpu" || o.run().device == "cuda" || o.run().device == "auto",
            ErrorCode::InvalidArgument, "--device ", o.run().device,
            ": expected cpu, cuda or auto");
    if (o.run().device == "cpu") {
        return cpu_backend();
    }
    std::string why;
    const Backend* cuda = cuda_backend(why);
    require(cuda != nullptr || o.run().device == "auto", ErrorCode::Unsupported,
            "--device cuda: ", why, "; use --device cpu");
    return cuda != nullptr ? *cuda : cpu_backend();
}

/// Hands an option that one backend alone knows to that backend.
static void set_own_option(CompileOptions& c, const Options& o, const OptionRow& row) {
    if (row.backend.empty()) {
        return;
    }
    std::span<const BackendOption> all = row.backend == "cpu" ? cpu_options() : cuda_options();
    auto it = std::find_if(all.begin(), all.end(),
                           [&row](const BackendOption& b) { return b.field == row.field; });
    require(it != all.end(), ErrorCode::Internal, "the backend ", row.backend, " has no option ",
            row.field);
    it->set(c, option_value(o, row));
}

CompileOptions compile_options(const Options& o) {
    CompileOptions c;
    static std::unique_ptr<ThreadPool> pool;
    if (o.run().threads > 0) {
        pool = std::make_unique<ThreadPool>(static_cast<int>(o.run().threads));
        c.pool = pool.get();
    }
    check_pass_names(o.build().disable_passes);
    c.disabled_passes = o.build().disable_passes;
    c.verify_passes = o.build().verify_passes;
    c.ranges = o.run().nvtx ? Ranges::Names : Ranges::None;
    for (const OptionRow& r : option_rows()) {
        set_own_option(c, o, r);
    }
    return c;
}

CompileOptions compile_options(const Options& o, const Engine& engine) {
    CompileOptions c = compile_options(o);
    c.plugins = plugins_of(engine);
    return c;
}

void warn_of_gpu_options(const Options& o, const Backend& backend) {
    if (&backend != &cpu_backend()) {
        return;
    }
    for (const OptionRow& r : option_rows()) {
        if (!is_changed(o, r)) {
            continue;
        }
        std::string name = split_names(r.names).front();
        if (!r.on_cpu.empty()) {
            log(LogLevel::Warning, name, ": accepted, no effect, because ", r.on_cpu);
        }
        if (!r.same_on_cpu.empty()) {
            log(LogLevel::Info, name, ": nothing changes, because ", r.same_on_cpu);
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
