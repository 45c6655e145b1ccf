// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/unused_settings.h"

#include "api/tensorrt/builder/builder.h"
#include "api/tensorrt/runtime/place.h"
#include "api/tensorrt/unused.h"

#include <set>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;
using Pool = nv::MemoryPoolType;
using Feature = nv::PreviewFeature;

struct Unused {
    const char* name;
    bool happens_anyway; // the setting asks for behaviour that is always on
    bool (*is_set)(const BuilderConfig&);
    const char* reason;
};

template <Flag F>
bool has(const BuilderConfig& c) {
    return c.has(F);
}

template <Pool P>
bool limits(const BuilderConfig& c) {
    return c.getMemoryPoolLimit(P) != 0;
}

template <Feature F>
bool previews(const BuilderConfig& c) {
    return c.getPreviewFeature(F);
}

/// Whether the build has no GPU to time tactics on.
bool times_nothing(const BuilderConfig& config) {
    try {
        return !find_place(config.device, config.ordinal).is_gpu;
    } catch (const Error&) {
        return true; // the engine is for a GPU that this machine lacks
    }
}

constexpr int32_t least_level_that_times = 4;
constexpr nv::TacticSources all_sources = 3;

constexpr const char* no_dla = "there is no DLA: layers run on the GPU, or on the CPU without one";
constexpr const char* narrow = "types of 8 and 4 bits follow the network's quantise layers";
constexpr const char* tiles = "tiles belong to tactics, which timing chooses (optimization level "
                              "4 and above)";

const Unused flags[] = {
    {"kDEBUG", false, has<Flag::kDEBUG>,
     "layers are not waited for one by one; IExecutionContext::setDebugSync(true) makes every run "
     "wait and report its errors"},
    {"kGPU_FALLBACK", true, has<Flag::kGPU_FALLBACK>, no_dla},
    {"kSPARSE_WEIGHTS", false, has<Flag::kSPARSE_WEIGHTS>,
     "no kernel makes use of sparse weights; they are used as they are"},
    {"kDIRECT_IO", true, has<Flag::kDIRECT_IO>,
     "inputs and outputs are row-major tensors, which nothing reformats"},
    {"kVERSION_COMPATIBLE", true, has<Flag::kVERSION_COMPATIBLE>,
     "later releases run every engine"},
    {"kEXCLUDE_LEAN_RUNTIME", true, has<Flag::kEXCLUDE_LEAN_RUNTIME>,
     "an engine holds no host code"},
    {"kSTRICT_NANS", true, has<Flag::kSTRICT_NANS>, "no rewriting hides NaN"},
    {"kFP8", false, has<Flag::kFP8>, narrow},
    {"kINT4", false, has<Flag::kINT4>, narrow},
    {"kFP4", false, has<Flag::kFP4>, narrow},
};

const Unused setters[] = {
    {"setAvgTimingIterations", false,
     [](const BuilderConfig& c) { return c.getAvgTimingIterations() != 1; },
     "a kernel is timed until its median is known; only tactics of plugins are timed so often"},
    {"setProfileStream", false,
     [](const BuilderConfig& c) { return c.getProfileStream() != nullptr; },
     "kernels are timed on streams of the builder's own"},
    {"setTacticSources", false,
     [](const BuilderConfig& c) { return c.getTacticSources() != all_sources; },
     "all kernels have one source, which cannot be left out"},
    {"setBuilderOptimizationLevel", false,
     [](const BuilderConfig& c) {
         return c.getBuilderOptimizationLevel() >= least_level_that_times && times_nothing(c);
     },
     "there is no GPU here on which tactics could be timed"},
    {"setBuilderOptimizationLevel", true,
     [](const BuilderConfig& c) { return c.getBuilderOptimizationLevel() < 3; },
     "no tactic is timed below level 4, and a build does the same at all of these"},
    {"setTimingCache", false,
     [](const BuilderConfig& c) { return c.has_timing_cache() && times_nothing(c); },
     "there is no GPU here on which tactics could be timed; only tactics of plugins are kept"},
    {"setHardwareCompatibilityLevel", true,
     [](const BuilderConfig& c) {
         return c.getHardwareCompatibilityLevel() != nv::HardwareCompatibilityLevel::kNONE;
     },
     "an engine runs on every supported GPU"},
    {"setMaxAuxStreams", false, [](const BuilderConfig& c) { return c.getMaxAuxStreams() > 0; },
     "a run uses one stream"},
    {"setRuntimePlatform", true,
     [](const BuilderConfig& c) {
         return c.getRuntimePlatform() != nv::RuntimePlatform::kSAME_AS_BUILD;
     },
     "engines are the same on every platform"},
    {"setMaxNbTactics", false, [](const BuilderConfig& c) { return c.getMaxNbTactics() != -1; },
     "at most six candidates of a layer are timed"},
    {"setTilingOptimizationLevel", false,
     [](const BuilderConfig& c) {
         return c.getTilingOptimizationLevel() != nv::TilingOptimizationLevel::kNONE;
     },
     tiles},
    {"setL2LimitForTiling", false,
     [](const BuilderConfig& c) { return c.getL2LimitForTiling() != -1; }, tiles},
    {"setInt8Calibrator", false,
     [](const BuilderConfig& c) { return c.getInt8Calibrator() != nullptr && !c.has(Flag::kINT8); },
     "kINT8 is not set"},
    {"setCalibrationProfile", false,
     [](const BuilderConfig& c) {
         return c.calibration_profile() != nullptr && c.getInt8Calibrator() == nullptr;
     },
     "there is no calibrator"},
    {"setQuantizationFlags", true,
     [](const BuilderConfig& c) { return c.getQuantizationFlags() != 0; },
     "calibration always sees the network before fusion"},
    {"setMemoryPoolLimit(kDLA_MANAGED_SRAM)", false, limits<Pool::kDLA_MANAGED_SRAM>, no_dla},
    {"setMemoryPoolLimit(kDLA_LOCAL_DRAM)", false, limits<Pool::kDLA_LOCAL_DRAM>, no_dla},
    {"setMemoryPoolLimit(kDLA_GLOBAL_DRAM)", false, limits<Pool::kDLA_GLOBAL_DRAM>, no_dla},
    {"setPreviewFeature(kALIASED_PLUGIN_IO_10_03)", true,
     previews<Feature::kALIASED_PLUGIN_IO_10_03>,
     "IPluginV3OneBuildV2::getAliasedInput() always counts"},
    {"setPreviewFeature(kRUNTIME_ACTIVATION_RESIZE_10_10)", true,
     previews<Feature::kRUNTIME_ACTIVATION_RESIZE_10_10>,
     "updateDeviceMemorySizeForShapes() always gives the size for the shapes"},
    {"setPreviewFeature(kPROFILE_SHARING_0806)", true, previews<Feature::kPROFILE_SHARING_0806>,
     "contexts always share the profiles of an engine"},
    {"setPreviewFeature(kMULTIDEVICE_RUNTIME_10_16)", true,
     previews<Feature::kMULTIDEVICE_RUNTIME_10_16>, "collective layers need no feature"},
};

} // namespace

void log_unused_settings(const BuilderConfig& config) {
    for (const Unused& u : flags) {
        if (u.is_set(config)) {
            log_unused(config.report(), u.name, u.happens_anyway, u.reason);
        }
    }
    for (const Unused& u : setters) {
        if (u.is_set(config)) {
            log_unused(config.report(), str("IBuilderConfig::", u.name), u.happens_anyway,
                       u.reason);
        }
    }
    if (!config.samples.empty() && !config.has(Flag::kFP16)) {
        log_unused(config.report(), "ingot::addSampleInputs", false, "kFP16 is not set");
    }
}

void log_unused_settings(const Network& network, const BuilderConfig& config) {
    std::set<LayerBase::Unused> all;
    for (const auto& layer : network.layers()) {
        std::vector<LayerBase::Unused> more = layer->unused_settings();
        all.insert(more.begin(), more.end());
        if (!layer->metadata.empty()) {
            all.insert({"ILayer::setMetadata",
                        "an inspector names the nodes of a model by the names of their layers"});
        }
    }
    for (const LayerBase::Unused& u : all) {
        log_unused(config.report(), u.setting, u.happens_anyway, u.reason);
    }
}

} // namespace ingot::api
