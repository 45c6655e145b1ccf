// SPDX-License-Identifier: Apache-2.0
// From a network and a configuration to an engine: flags, profiles, progress.
#include "api/tensorrt/builder.h"
#include "api/tensorrt/engine_facts.h"
#include "workflow/build.h"

#include <algorithm>
#include <cmath>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;

// --- settings ------------------------------------------------------------------------------------

void check_flags(const Network& network, const BuilderConfig& config) {
    require(config.getEngineCapability() == nv::EngineCapability::kSTANDARD, ErrorCode::Unsupported,
            "the engine capability is not kSTANDARD; safety and DLA engines are not supported");
    require(!config.has(Flag::kSAFETY_SCOPE), ErrorCode::Unsupported,
            "kSAFETY_SCOPE is set; safety engines are not supported");
    int kinds = (config.has(Flag::kREFIT) ? 1 : 0) + (config.has(Flag::kREFIT_IDENTICAL) ? 1 : 0) +
                (config.has(Flag::kREFIT_INDIVIDUAL) ? 1 : 0);
    require(kinds <= 1, ErrorCode::InvalidArgument,
            "of kREFIT, kREFIT_IDENTICAL and kREFIT_INDIVIDUAL more than one is set");
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

bool quantises(const Graph& g) {
    return std::any_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) {
        return n.is(ops::quantize_def) || n.is(ops::dequantize_def);
    });
}

EngineFacts facts_of(const Network& network, const BuilderConfig& config) {
    EngineFacts f;
    f.name = network.getName();
    f.verbosity = config.getProfilingVerbosity();
    f.hardware = config.getHardwareCompatibilityLevel();
    f.tactic_sources = config.getTacticSources();
    f.tf32 = config.has(Flag::kTF32);
    f.debug_tensors = network.debug_names();
    f.debug_unfused = network.debug_unfused();
    return f;
}

// --- progress ------------------------------------------------------------------------------------

// One phase of a fixed number of steps, and in it one for each pass. Phases end when it goes.
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

// --- kernels ahead of time -----------------------------------------------------------------------

std::shared_ptr<const Engine> with_listed_kernels(std::shared_ptr<const Engine> engine,
                                                  const BuilderConfig& config) {
    std::vector<int> numbers;
    for (size_t i = 0; i < config.capabilities().size(); ++i) {
        nv::ComputeCapability cc = config.capabilities()[i];
        require(cc != nv::ComputeCapability::kNONE, ErrorCode::InvalidArgument,
                "compute capability ", i, " is not set; see setComputeCapability()");
        require(cc != nv::ComputeCapability::kCURRENT, ErrorCode::Unsupported,
                "kernels for kCURRENT are compiled where the engine is loaded; name the compute "
                "capability to compile them ahead of time");
        numbers.push_back(static_cast<int>(cc));
    }
    return numbers.empty() ? std::move(engine) : with_kernels_ahead(*engine, numbers, {});
}

} // namespace

void check_network(const Network& network, const BuilderConfig& config) {
    check_flags(network, config);
    Graph g = network.build();
    for (const Profile& p : profiles_of(network, config)) {
        check_profile(g, p);
    }
}

std::shared_ptr<const Engine> build_network(const Network& network, const BuilderConfig& config) {
    check_flags(network, config);
    Progress progress(config.getProgressMonitor());
    progress.at("Importing layers", 0);
    BuildConfig build;
    build.profiles = profiles_of(network, config);
    build.precision = precision_of(config);
    build.progress = [&](std::string_view phase, double fraction) { progress.at(phase, fraction); };
    Graph g = network.build();
    require(!config.has(Flag::kINT8) || quantises(g), ErrorCode::Unsupported,
            "kINT8 is set, but the network has no quantise layers; calibrate the model first "
            "(ingot calibrate) and parse the result");
    Properties properties = network.properties;
    properties.emplace("model", network.getName());
    put_facts(facts_of(network, config), properties);
    return with_listed_kernels(build_engine_from_graph(std::move(g), std::move(properties), build),
                               config);
}

} // namespace ingot::api
