// SPDX-License-Identifier: Apache-2.0
#include "workflow/build.h"

#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/trace.h"
#include "engine/properties.h"
#include "onnx/import_node.h"
#include "onnx/input_defaults.h"
#include "onnx/input_sizes.h"
#include "onnx/reader.h"
#include "passes/pipeline.h"
#include "workflow/io_types.h"
#include "workflow/plans.h"
#include "workflow/quantization/calibrate.h"
#include "workflow/quantization/quantize.h"
#include "workflow/refit.h"

#include <algorithm>
#include <cstring>

namespace ingot {

bool is_engine_file(const std::string& path) {
    auto file = MappedFile::open(path);
    std::span<const std::byte> b = file->bytes();
    return b.size() >= 5 && std::memcmp(b.data(), "INGOT", 5) == 0;
}

std::vector<std::pair<std::string, Shape>> parse_shapes(std::string_view spec) {
    std::vector<std::pair<std::string, Shape>> out;
    for (size_t start = 0; start < spec.size();) {
        size_t end = std::min(spec.find(',', start), spec.size());
        std::string_view part = spec.substr(start, end - start);
        size_t colon = part.rfind(':');
        require(colon != std::string_view::npos && colon > 0, ErrorCode::InvalidArgument,
                "shapes '", spec, "': '", part, "' is not name:sizes, such as image:1x3x224x224");
        std::string name(part.substr(0, colon));
        if (name.size() > 2 && name.front() == '\'' && name.back() == '\'') {
            name = name.substr(1, name.size() - 2);
        }
        auto twice = [&](const auto& p) { return p.first == name; };
        require(std::none_of(out.begin(), out.end(), twice), ErrorCode::InvalidArgument, "shapes '",
                spec, "': input '", name, "' is named twice");
        out.emplace_back(std::move(name), parse_shape(part.substr(colon + 1)));
        start = end + 1;
    }
    return out;
}

std::vector<Profile> profile_from_specs(std::string_view min, std::string_view opt,
                                        std::string_view max) {
    std::array<std::vector<std::pair<std::string, Shape>>, 3> specs = {
        parse_shapes(min), parse_shapes(opt), parse_shapes(max)};
    Profile p;
    for (const auto& spec : specs) {
        for (const auto& [name, shape] : spec) {
            if (p.find(name) != nullptr) {
                continue;
            }
            auto find = [&, key = name](size_t i) -> const Shape* {
                auto same = [&](const auto& s) { return s.first == key; };
                auto it = std::find_if(specs[i].begin(), specs[i].end(), same);
                return it == specs[i].end() ? nullptr : &it->second;
            };
            const Shape* lowest = find(0);
            const Shape* expected = find(1);
            const Shape* highest = find(2);
            expected = expected != nullptr ? expected : highest != nullptr ? highest : lowest;
            p.inputs.push_back({name, lowest != nullptr ? *lowest : *expected, *expected,
                                highest != nullptr ? *highest : *expected});
        }
    }
    return p.inputs.empty() ? std::vector<Profile>{} : std::vector<Profile>{p};
}

namespace {

std::vector<Profile> profiles_for(const Graph& g, const BuildConfig& config) {
    return config.choose_profiles ? config.choose_profiles(g, config.profiles) : config.profiles;
}

CalibrationCache guessed_cache(const onnx::Model& model, const BuildConfig& config) {
    Graph g = calibration_graph(model);
    return guessed_ranges(g, profiles_for(g, config));
}

onnx::Model int8_model(const onnx::Model& model, const BuildConfig& config) {
    const CalibrationConfig& calibration = *config.calibration;
    if (is_quantised(model)) {
        if (!calibration.cache.scales.empty()) {
            log(LogLevel::Warning,
                "the model quantises by itself: the calibration cache is not used");
        }
        return model;
    }
    bool given = !calibration.cache.scales.empty();
    require(given || calibration.guess_ranges, ErrorCode::InvalidArgument,
            "INT8 needs the ranges of tensors: give a calibration cache (--calib; ingot calibrate "
            "makes one from sample inputs) or a model with QuantizeLinear nodes, or use "
            "--int8WithoutCalibration to measure speed with unreliable results");
    QuantizeReport report;
    onnx::Model out =
        quantised(model, given ? calibration.cache : guessed_cache(model, config), &report);
    log(LogLevel::Info, report.products.size(), " products of int8, ", report.tensors.size(),
        " tensors stored as int8");
    if (report.products.empty()) {
        log(LogLevel::Warning, "INT8: nothing became int8: there is no convolution or matrix "
                               "product of f32 with a constant weight and a scale for its input");
    }
    if (!report.missing.empty()) {
        log(LogLevel::Warning, "INT8: ", report.missing.size(),
            " products stay in floats, since the calibration has no scale for their inputs; the "
            "first is '",
            report.missing[0], "'");
    }
    return out;
}

} // namespace

/// The number of these tensors that became outputs; inputs and outputs are visible anyway.
static size_t add_debug_outputs(Graph& g, const std::vector<std::string>& names) {
    size_t before = g.outputs().size();
    for (const std::string& name : names) {
        const std::vector<std::string>& outputs = g.output_names();
        auto is_it = [&](Value v) { return g.value_name(v) == name; };
        bool seen = std::find(outputs.begin(), outputs.end(), name) != outputs.end() ||
                    std::any_of(g.inputs().begin(), g.inputs().end(), is_it);
        for (auto n = g.nodes().begin(); n != g.nodes().end() && !seen; ++n) {
            auto found = std::find_if(n->outputs.begin(), n->outputs.end(), is_it);
            if (found != n->outputs.end()) {
                g.add_output(name, *found);
                seen = true;
            }
        }
        if (!seen) {
            log(LogLevel::Warning, "there is no tensor '", name, "' to mark for debugging");
        }
    }
    return g.outputs().size() - before;
}

/// Looks for overflows as `config` says, and notes them in `properties`.
static FindOverflows find_overflows(const BuildConfig& config, const Graph& imported,
                                    const std::vector<Profile>& profiles, Properties& properties) {
    if (!config.half_ranges || config.precision != DType::F16) {
        return {};
    }
    ValueRanges ranges;
    ranges.cache = config.half_ranges->cache;
    ranges.samples = config.half_ranges->samples;
    if (config.half_ranges->inputs) {
        auto engine = Engine::create(imported, profiles, {});
        ranges.samples.push_back(load_inputs(*engine, *config.half_ranges->inputs).tensors);
    }
    return [ranges, &config, &properties](const Graph& g, std::span<const Value> narrow) {
        std::vector<Overflow> found = overflows(g, narrow, ranges);
        put_f32_layers(found, properties);
        if (config.half_ranges->told) {
            config.half_ranges->told(found);
        } else if (!found.empty()) {
            log(LogLevel::Warning, overflow_warning(found));
        }
        return found;
    };
}

/// `allowed` and `refit` in the place of the configuration's own: what came to light meanwhile is
/// in them.
static std::shared_ptr<const Engine> engine_of(Graph g, Properties properties,
                                               const AllowedFormats& allowed,
                                               const std::optional<RefitRequest>& refit,
                                               const BuildConfig& config) {
    if (config.after_pass) {
        config.after_pass("import", g);
    }
    std::vector<Profile> profiles = profiles_for(g, config);
    for (const Profile& p : profiles) {
        check_profile(g, p);
    }
    IoFormats formats = choose_formats(g, allowed);
    std::shared_ptr<RefitSource> source;
    if (refit) {
        source = std::make_shared<RefitSource>(refit_source(g, *refit));
        source->precision = config.precision;
        source->disabled_passes = config.disabled_passes;
    }
    check_pass_names(config.disabled_passes);
    PipelineOptions passes = pipeline_options(config.precision, config.disabled_passes);
    passes.progress = [&](const Pass& pass, size_t index, size_t count) {
        if (config.progress) {
            config.progress(pass.name,
                            0.2 + 0.8 * static_cast<double>(index) / static_cast<double>(count));
        }
    };
    if (config.after_pass) {
        passes.dump_after = [&](const Pass& pass, const Graph& graph) {
            config.after_pass(pass.name, graph);
        };
    }
    g = run_build_passes(g, passes, find_overflows(config, g, profiles, properties));
    if (config.progress) {
        config.progress("done", 1);
    }
    properties["precision"] = std::string(name(config.precision));
    if (config.weight_streaming) {
        properties[streaming_property] = "on";
    }
    if (config.batch_invariant) {
        properties[batch_invariant_property] = "on";
    }
    auto engine = Engine::create(std::move(g), std::move(profiles), std::move(properties))
                      ->with_formats(std::move(formats));
    for (size_t i = 0; i < engine->graph().inputs().size(); ++i) {
        input_default(*engine, i); // fits, though the build may have been told another type
    }
    return source == nullptr ? engine : engine->with_source(source);
}

static void report(const BuildConfig& config, std::string_view phase, double fraction) {
    if (config.progress) {
        config.progress(phase, fraction);
    }
}

void fix_input_sizes(onnx::Model& model, const BuildConfig& config) {
    onnx::fix_input_sizes(model, config.profiles);
    if (config.run_shapes.empty()) {
        return;
    }
    Profile run;
    for (const auto& [name, shape] : config.run_shapes) {
        run.inputs.push_back({name, shape, shape, shape});
    }
    onnx::fix_input_sizes(model, {run});
}

/// The model at `path` as it is to be imported.
static onnx::Model read_model(const std::string& path, const BuildConfig& config) {
    TraceSpan span("read model", path);
    report(config, "read", 0);
    onnx::Model model = onnx::read_model_file(path);
    if (config.calibration) {
        report(config, "quantise", 0.05);
        model = with_place([&] { return path; }, [&] { return int8_model(model, config); });
    }
    with_place([&] { return path; }, [&] { onnx::make_optional(model, config.optional_inputs); });
    fix_input_sizes(model, config);
    report(config, "import", 0.1);
    return model;
}

ModelBuild::ModelBuild(const std::string& path, const BuildConfig& config)
    : path_(path), config_(config), model_(read_model(path, config)) {}

Graph ModelBuild::import() const {
    TraceSpan span("import", path_);
    onnx::ImportOptions options;
    bool by_name = config_.half_ranges && !config_.half_ranges->cache.scales.empty();
    options.keep_names = config_.keep_names || by_name;
    return with_place([&] { return path_; },
                      [&] { return onnx::import_or_throw(model_, options); });
}

std::shared_ptr<const Engine> ModelBuild::engine(Graph g) && {
    TraceSpan span("optimise", path_);
    Properties properties = model_properties(model_);
    model_ = {};
    g = hold_layer_types(g, config_.layer_types, config_.precision);
    g = with_io_types(g, config_.input_types, config_.output_types);
    AllowedFormats formats = config_.formats;
    allow_formats(g, config_.input_types, config_.output_types, formats);
    put_debug_outputs(add_debug_outputs(g, config_.debug_tensors), properties);
    std::optional<RefitRequest> refit = config_.refit;
    if (refit) {
        refit->read.insert(reads_.names().begin(), reads_.names().end());
    }
    return engine_of(std::move(g), std::move(properties), formats, refit, config_);
}

std::shared_ptr<const Engine> build_engine(const std::string& model_path,
                                           const BuildConfig& config) {
    ModelBuild build(model_path, config);
    Graph g = build.import();
    return std::move(build).engine(std::move(g));
}

std::shared_ptr<const Engine> build_engine_from_graph(Graph g, Properties properties,
                                                      const BuildConfig& config) {
    return engine_of(std::move(g), std::move(properties), config.formats, config.refit, config);
}

Properties model_properties(const onnx::Model& model) {
    Properties properties;
    properties["model"] = model.graph.name;
    properties["producer"] =
        str(model.producer_name, model.producer_version.empty() ? "" : " ", model.producer_version);
    for (const onnx::Tensor& t : model.input_defaults) {
        put_input_default(t.name, onnx::initializer(t), properties);
    }
    return properties;
}

namespace {

/// The array shapes for which kernels are compiled ahead: opt of each profile.
std::vector<std::vector<Shape>> expected_shapes(const Engine& engine, const Storage& storage) {
    const Graph& g = engine.graph();
    std::vector<std::vector<Shape>> all;
    std::vector<Profile> profiles = engine.profiles();
    if (profiles.empty()) {
        profiles.emplace_back();
    }
    for (const Profile& p : profiles) {
        std::vector<Shape> shapes;
        for (Value v : g.inputs()) {
            const ShapeRange* range = p.find(g.value_name(v));
            Shape shape = range != nullptr ? range->opt : Shape();
            for (const Dim& d : range != nullptr ? Dims() : g.type(v).dims) {
                require(d.is_const(), ErrorCode::InvalidArgument, "kernels ahead of time: input '",
                        g.value_name(v), "' has a size '", d,
                        "' that is unknown: give --optShapes");
                shape.push_back(d.value());
            }
            shapes.push_back(std::move(shape));
        }
        all.push_back(storage.input_shapes(shapes));
    }
    return all;
}

} // namespace

std::shared_ptr<const Engine> with_kernels_ahead(const Engine& engine,
                                                 std::span<const int> capabilities,
                                                 const CompileOptions& options) {
    Storage storage(engine.graph_ref(), engine.formats());
    std::vector<std::vector<Shape>> shapes = expected_shapes(engine, storage);
    CompileOptions all = with_properties(options, engine);
    all.profiles = storage.profiles(engine.profiles());
    KernelBinaries kernels;
    for (int cc : capabilities) {
        kernels.merge(compile_kernels_ahead(storage.graph(), shapes, cc, all));
    }
    return engine.with_kernels(std::move(kernels), capabilities);
}

std::vector<KernelUse> list_kernels(const Engine& engine, int capability,
                                    const CompileOptions& options) {
    Storage storage(engine.graph_ref(), engine.formats());
    return list_kernels_ahead(storage.graph(), expected_shapes(engine, storage), capability,
                              with_properties(options, engine));
}

} // namespace ingot
