// SPDX-License-Identifier: Apache-2.0
// From a network and a configuration to an engine: flags, profiles, progress.
#include "api/tensorrt/builder/build_limits.h"
#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/builder/build_timings.h"
#include "api/tensorrt/builder/builder.h"
#include "api/tensorrt/builder/int8.h"
#include "api/tensorrt/builder/unused_settings.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/network/formats.h"
#include "api/tensorrt/network/weight_names.h"
#include "api/tensorrt/plugin/tactics.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/backends.h"
#include "ir/rewrite.h"
#include "ir/value_reads.h"
#include "workflow/build.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;

// --- settings ------------------------------------------------------------------------------------

void check_flags(const Network& network, const BuilderConfig& config) {
    require(config.getEngineCapability() == nv::EngineCapability::kSTANDARD, ErrorCode::Unsupported,
            "the engine capability is not kSTANDARD; safety and DLA engines are not supported");
    require(!config.has(Flag::kSAFETY_SCOPE), ErrorCode::Unsupported,
            "kSAFETY_SCOPE is set; safety engines are not supported");
    static_cast<void>(refit_request(network, config));
    bool reduced = config.has(Flag::kFP16) || config.has(Flag::kBF16) || config.has(Flag::kINT8) ||
                   config.has(Flag::kFP8) || config.has(Flag::kINT4) || config.has(Flag::kFP4);
    require(!reduced || !network.getFlag(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED),
            ErrorCode::InvalidArgument,
            "the network is strongly typed: precision flags do not go with it; cast in the "
            "network instead");
    require(!config.has(Flag::kFP16) || !config.has(Flag::kBF16), ErrorCode::InvalidArgument,
            "kFP16 and kBF16 are both set; choose one");
    require(!config.has(Flag::kEXCLUDE_LEAN_RUNTIME) || config.has(Flag::kVERSION_COMPATIBLE),
            ErrorCode::InvalidArgument, "kEXCLUDE_LEAN_RUNTIME needs kVERSION_COMPATIBLE");
    size_t profiles = config.profiles().size();
    require(!config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE) || profiles <= 1,
            ErrorCode::InvalidArgument,
            "kDISTRIBUTIVE_INDEPENDENCE allows one optimisation "
            "profile, the configuration has ",
            profiles, ": clear the flag or build an engine each");
}

DType precision_of(const BuilderConfig& config) {
    return config.has(Flag::kFP16)   ? DType::F16
           : config.has(Flag::kBF16) ? DType::BF16
                                     : DType::F32;
}

std::vector<Profile> profiles_of(const Network& network, const BuilderConfig& config) {
    std::vector<Profile> out;
    for (const auto& p : config.profiles()) {
        for (const auto& input : network.inputs()) {
            std::span<const int64_t> sizes(input->declared_dims.d,
                                           static_cast<size_t>(input->declared_dims.nbDims));
            bool open = std::find(sizes.begin(), sizes.end(), -1) != sizes.end();
            require(!open || p->has_shape(input->name()), ErrorCode::InvalidArgument,
                    "optimisation profile ", out.size(), " has no shapes for input ",
                    input->quoted(), ", which is ", text_of(input->declared_dims));
        }
        out.push_back(with_place([&] { return str("optimisation profile ", out.size()); },
                                 [&] { return p->profile(); }));
    }
    return out;
}

// --- types of layers -----------------------------------------------------------------------------

bool is_reduced(nv::DataType t) {
    return t == nv::DataType::kHALF || t == nv::DataType::kBF16 || t == nv::DataType::kINT8 ||
           t == nv::DataType::kFP8;
}

bool flag_allows(const BuilderConfig& config, nv::DataType t) {
    return t == nv::DataType::kHALF   ? config.has(Flag::kFP16)
           : t == nv::DataType::kBF16 ? config.has(Flag::kBF16)
           : t == nv::DataType::kINT8 ? config.has(Flag::kINT8)
                                      : config.has(Flag::kFP8);
}

/// Whether layer types are honoured. Errors: InvalidArgument for a type that must be obeyed and
/// cannot be.
bool obeys_types(const Network& network, const BuilderConfig& config) {
    bool obey = config.has(Flag::kOBEY_PRECISION_CONSTRAINTS);
    bool prefer = config.has(Flag::kPREFER_PRECISION_CONSTRAINTS);
    require(!obey || !prefer, ErrorCode::InvalidArgument,
            "kOBEY_PRECISION_CONSTRAINTS and kPREFER_PRECISION_CONSTRAINTS are both set; choose "
            "one");
    for (const auto& layer : network.layers()) {
        if (!layer->precision) {
            continue;
        }
        if (!obey && !prefer) {
            config.report().log(nv::ILogger::Severity::kWARNING,
                                str(layer->described(),
                                    " has a precision, which has no effect without "
                                    "kOBEY_PRECISION_CONSTRAINTS or "
                                    "kPREFER_PRECISION_CONSTRAINTS"));
            return false;
        }
        nv::DataType t = *layer->precision;
        if (!is_reduced(t) || flag_allows(config, t)) {
            continue;
        }
        std::string text =
            str(layer->described(), ": its precision is ", name_of(t), ", but the flag k",
                t == nv::DataType::kHALF ? "FP16" : name_of(t), " is not set");
        require(!obey, ErrorCode::InvalidArgument, text);
        config.report().log(nv::ILogger::Severity::kWARNING, text);
    }
    return (obey || prefer) && (precision_of(config) != DType::F32 || config.has(Flag::kINT8));
}

int64_t pool_limit(const BuilderConfig& config, nv::MemoryPoolType pool) {
    constexpr auto most = static_cast<size_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(std::min(config.getMemoryPoolLimit(pool), most));
}

/// Checks the values that a profile gives for an input of the network.
void check_values(const Network& network, const std::string& name, const Shape& values) {
    auto it = std::find_if(network.inputs().begin(), network.inputs().end(),
                           [&](const auto& t) { return t->name() == name; });
    require(it != network.inputs().end(), ErrorCode::InvalidArgument, "values are set for '", name,
            "', which is no input of the network");
    const NetworkTensor& input = **it;
    require(input.declared_type == nv::DataType::kINT32 ||
                input.declared_type == nv::DataType::kINT64,
            ErrorCode::InvalidArgument, "values are set for input '", name, "', which holds ",
            name_of(input.declared_type), ", expected INT32 or INT64");
    const nv::Dims& d = input.declared_dims;
    require(network.is_shape(input) && d.nbDims <= 1, ErrorCode::InvalidArgument,
            "values are set for input '", name, "', which is no shape tensor: set its shape");
    auto count = static_cast<int64_t>(values.size());
    require(d.nbDims == 1 ? d.d[0] == -1 || d.d[0] == count : count == 1,
            ErrorCode::InvalidArgument, count, " values are set for input '", name, "', which is ",
            text_of(d));
}

AllowedFormats allowed_formats(const Network& network, const BuilderConfig& config) {
    AllowedFormats allowed;
    auto add = [](const NetworkTensor& t, AllowedFormats::Named& named) {
        auto formats = formats_of(t.getAllowedFormats(), str("tensor ", t.quoted()));
        if (formats.front() != &row_major()) {
            named.emplace(t.name(), std::move(formats));
        }
    };
    for (const auto& t : network.inputs()) {
        add(*t, allowed.inputs);
    }
    for (const auto* list : {&network.outputs(), &network.shape_outputs()}) {
        for (const NetworkTensor* t : *list) {
            add(*t, allowed.outputs);
        }
    }
    allowed.direct = config.has(Flag::kDIRECT_IO);
    return allowed;
}

/// Values of shape inputs by profile; empty when there are none.
auto values_of(const Network& network, const BuilderConfig& config) {
    decltype(BuildSettings::values) out;
    bool any = false;
    for (const auto& p : config.profiles()) {
        with_place([&] { return str("optimisation profile ", out.size()); },
                   [&] {
                       auto values = p->values();
                       for (const auto& [name, v] : values) {
                           check_values(network, name, v[0]);
                       }
                       any = any || !values.empty();
                       out.push_back(std::move(values));
                       return true;
                   });
    }
    return any ? out : decltype(out)();
}

/// Outputs of the network that a layer writes over one of its inputs.
std::map<std::string, std::string> aliases_of(const Network& network) {
    std::map<std::string, std::string> aliases;
    for (const NetworkTensor* out : network.outputs()) {
        const LayerBase* layer = out->producer();
        for (size_t i = 0; layer != nullptr && i < layer->outputs.size(); ++i) {
            int32_t input = layer->outputs[i].get() == out ? layer->aliased_input(i) : -1;
            if (input >= 0 && layer->inputs.at(static_cast<size_t>(input))->isNetworkInput()) {
                aliases.emplace(out->name(), layer->inputs[static_cast<size_t>(input)]->name());
            }
        }
    }
    return aliases;
}

BuildSettings build_settings_of(const Network& network, const BuilderConfig& config) {
    BuildSettings f;
    f.aliases = aliases_of(network);
    f.values = values_of(network, config);
    f.name = network.getName();
    f.verbosity = config.getProfilingVerbosity();
    f.hardware = config.getHardwareCompatibilityLevel();
    f.tactic_sources = config.getTacticSources();
    f.tf32 = config.has(Flag::kTF32);
    f.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    f.workspace = pool_limit(config, nv::MemoryPoolType::kWORKSPACE);
    int64_t shared = pool_limit(config, nv::MemoryPoolType::kTACTIC_SHARED_MEMORY);
    f.shared_memory = shared == std::numeric_limits<int64_t>::max() ? 0 : shared;
    f.debug_tensors = network.debug_names();
    f.debug_unfused = network.debug_unfused();
    return f;
}

// --- progress ------------------------------------------------------------------------------------

// One phase with a fixed number of steps, and a nested phase for each pass. The destructor ends
// open phases.
class Progress {
public:
    explicit Progress(nv::IProgressMonitor* monitor) : monitor_(monitor) {
        if (monitor_ != nullptr) {
            monitor_->phaseStart(outer, nullptr, steps);
        }
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() {
        if (monitor_ != nullptr) {
            end_inner();
            monitor_->phaseFinish(outer);
        }
    }
    void at(std::string_view phase, double fraction) {
        if (monitor_ == nullptr) {
            return;
        }
        bool going = end_inner();
        for (auto until = static_cast<int32_t>(std::floor(fraction * steps)); done_ < until;) {
            going = monitor_->stepComplete(outer, done_++) && going;
        }
        require(going, ErrorCode::Interrupted, "the progress monitor stopped the build");
        if (fraction < 1) {
            inner_ = std::string(phase);
            monitor_->phaseStart(inner_.c_str(), outer, 1);
        }
    }

private:
    static constexpr const char* outer = "Building engine";
    static constexpr int32_t steps = 10;
    bool end_inner() {
        if (inner_.empty()) {
            return true;
        }
        bool going = monitor_->stepComplete(inner_.c_str(), 0);
        monitor_->phaseFinish(inner_.c_str());
        inner_.clear();
        return going;
    }
    nv::IProgressMonitor* monitor_;
    std::string inner_;
    int32_t done_ = 0;
};

// --- ranges of values ----------------------------------------------------------------------------

/// Asks a build with kFP16 to run the samples.
std::optional<HalfRangeConfig> half_ranges_of(const BuilderConfig& config) {
    if (config.samples.empty()) {
        return std::nullopt;
    }
    HalfRangeConfig ranges;
    ranges.samples = config.samples;
    ranges.told = [&config](std::span<const Overflow> found) {
        if (!found.empty()) {
            config.report().log(nv::ILogger::Severity::kWARNING, overflow_warning(found));
        }
    };
    return ranges;
}

// --- runs that allocate nothing -----------------------------------------------------------------

/// Errors: Unsupported for ops with data-dependent sizes or control flow.
void check_user_allocation(const Graph& g) {
    SymbolSet known = input_symbols(g);
    for (const Node& n : g.nodes()) {
        SymbolSet made = declared_symbols(n);
        bool decides = !bodies(n).empty() ||
                       std::any_of(made.begin(), made.end(),
                                   [&](const std::string& s) { return !known.contains(s); });
        require(!decides, ErrorCode::Unsupported, "kREQUIRE_USER_ALLOCATION is set, but layer '",
                n.name, "' (", n.def->name,
                ") decides sizes or control flow at run time, so that runs must allocate; clear "
                "the flag");
    }
}

// --- plugins -------------------------------------------------------------------------------------

PluginBuild plugin_build(const BuilderConfig& config, const std::vector<Profile>& profiles) {
    PluginBuild how;
    how.profiles = &profiles;
    how.place = [&config]() -> const Backend* {
        try {
            Place place = find_place(config.device, config.ordinal);
            // A plugin may be built for a GPU that this machine lacks: host addresses would crash
            // it.
            return place.is_gpu || config.device == Device::kCPU ? place.backend : nullptr;
        } catch (const Error&) {
            return nullptr; // the engine is for a GPU that this machine lacks
        }
    };
    if (config.has_timing_cache() && !config.has(Flag::kDISABLE_TIMING_CACHE)) {
        how.timings = config.timings();
    }
    how.timed_before = config.has(Flag::kERROR_ON_TIMING_CACHE_MISS);
    how.runs = std::max(how.runs, config.getAvgTimingIterations());
    how.memory_limit = tactic_memory(config);
    how.report = config.report();
    return how;
}

// --- kernels ahead of time -----------------------------------------------------------------------

/// The capability of the GPU that the build targets; 0 without a GPU.
int current_capability(const BuilderConfig& config) {
    try {
        return find_place(config.device, config.ordinal).backend->compute_capability();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Device) {
            throw;
        }
        return 0;
    }
}

std::vector<int> listed_capabilities(const BuilderConfig& config) {
    std::vector<int> numbers;
    for (size_t i = 0; i < config.capabilities().size(); ++i) {
        nv::ComputeCapability cc = config.capabilities()[i];
        require(cc != nv::ComputeCapability::kNONE, ErrorCode::InvalidArgument,
                "compute capability ", i, " is not set; see setComputeCapability()");
        int number = cc == nv::ComputeCapability::kCURRENT ? current_capability(config)
                                                           : static_cast<int>(cc);
        if (number != 0) {
            numbers.push_back(number);
        } else {
            config.report().log(nv::ILogger::Severity::kINFO,
                                "kCURRENT: there is no GPU here; kernels are compiled where the "
                                "engine is loaded");
        }
    }
    return numbers;
}

std::shared_ptr<const Engine>
with_listed_kernels(std::shared_ptr<const Engine> engine, const BuilderConfig& config,
                    const std::shared_ptr<plan::PluginHost>& plugins) {
    std::vector<int> numbers = listed_capabilities(config);
    CompileOptions options = limited_options(config);
    options.plugins = plugins;
    return numbers.empty() ? std::move(engine) : with_kernels_ahead(*engine, numbers, options);
}

} // namespace

void check_network(const Network& network, const BuilderConfig& config) {
    check_flags(network, config);
    Graph g = network.build();
    for (const Profile& p : profiles_of(network, config)) {
        check_profile(g, p);
    }
    static_cast<void>(choose_formats(g, allowed_formats(network, config)));
}

std::shared_ptr<const Engine> build_network(const Network& network, const BuilderConfig& config) {
    check_flags(network, config);
    log_unused_settings(config);
    log_unused_settings(network, config);
    MemoryChange change(config.report(), &cpu_backend(), "Building engine");
    Progress progress(config.getProgressMonitor());
    progress.at("Importing layers", 0);
    BuildConfig build;
    build.profiles = profiles_of(network, config);
    build.formats = allowed_formats(network, config);
    build.precision = precision_of(config);
    bool monitors = config.has(Flag::kMONITOR_MEMORY);
    build.progress = [&](std::string_view phase, double fraction) {
        if (monitors) {
            log_memory_use(config.report(), phase);
        }
        progress.at(phase, fraction);
    };
    build.refit = refit_request(network, config);
    build.weight_streaming = config.has(Flag::kWEIGHT_STREAMING);
    build.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    ValueReads reads;
    PluginBuild plugins = plugin_build(config, build.profiles);
    build.half_ranges = half_ranges_of(config);
    Graph g = network.build({config.has(Flag::kINT8) || network.debug_unfused(),
                             obeys_types(network, config), build.refit.has_value(), &plugins});
    if (config.has(Flag::kINT8)) {
        progress.at("Calibrating", 0.1);
        g = int8_graph(std::move(g), network, config, [&] { progress.at("Calibrating", 0.1); });
    }
    if (build.refit) {
        build.refit->read = reads.names();
    }
    Properties properties = network.properties;
    properties.emplace("model", network.getName());
    put_build_settings(build_settings_of(network, config), properties);
    put_debug_outputs(network.debug_outputs().size(), properties);
    std::shared_ptr<const Engine> engine =
        build_engine_from_graph(std::move(g), std::move(properties), build);
    if (config.has(Flag::kREQUIRE_USER_ALLOCATION)) {
        check_user_allocation(engine->graph());
    }
    std::shared_ptr<plan::PluginHost> host =
        make_plugin_host(std::move(plugins.used), nullptr, config.report());
    check_limits(engine, config, host);
    return with_timings(with_listed_kernels(std::move(engine), config, host), config, host);
}

} // namespace ingot::api
