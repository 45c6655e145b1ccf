// SPDX-License-Identifier: Apache-2.0
// IBuilderConfig, optimisation profiles, timing cache.
#include "bind.h"

#include <cstring>
#include <string>

namespace ingot::python {

namespace {

using Config = trt::IBuilderConfig;
using Profile = trt::IOptimizationProfile;
using Selector = trt::OptProfileSelector;
constexpr Selector selectors[] = {Selector::kMIN, Selector::kOPT, Selector::kMAX};

template <class F>
void for_profile(const char* method, const std::string& name, const F& set) {
    static constexpr const char* words[] = {"min", "opt", "max"};
    for (size_t i = 0; i < 3; ++i) {
        if (!set(i, selectors[i])) {
            const std::string text = std::string(method) + ": input '" + name + "': " + words[i] +
                                     " is not valid: sizes are not negative, ranks agree, and min "
                                     "<= opt <= max";
            throw nb::value_error(text.c_str());
        }
    }
}

void set_shape(Profile& p, const std::string& input, const DimsArg& min, const DimsArg& opt,
               const DimsArg& max) {
    const DimsArg* const shapes[] = {&min, &opt, &max};
    for_profile("set_shape", input, [&](size_t i, Selector which) {
        return p.setDimensions(input.c_str(), which, shapes[i]->value);
    });
}

std::vector<trt::Dims> get_shape(const Profile& p, const std::string& input) {
    std::vector<trt::Dims> shapes;
    for (const Selector which : selectors) {
        shapes.push_back(p.getDimensions(input.c_str(), which));
        if (shapes.back().nbDims < 0) {
            return {};
        }
    }
    return shapes;
}

using Values = std::vector<int64_t>;

void set_values(Profile& p, const std::string& input, const Values& min, const Values& opt,
                const Values& max) {
    const Values* const values[] = {&min, &opt, &max};
    for_profile("set_shape_input", input, [&](size_t i, Selector which) {
        return p.setShapeValuesV2(input.c_str(), which, values[i]->data(),
                                  static_cast<int32_t>(values[i]->size()));
    });
}

std::vector<Values> get_values(const Profile& p, const std::string& input) {
    std::vector<Values> all;
    const int32_t count = p.getNbShapeValues(input.c_str());
    for (const Selector which : selectors) {
        const int64_t* const values = p.getShapeValuesV2(input.c_str(), which);
        if (values == nullptr || count < 0) {
            return {};
        }
        all.emplace_back(values, values + count);
    }
    return all;
}

void bind_profile(nb::module_& m) {
    nb::class_<Profile> profile(m, "IOptimizationProfile",
                                "Ranges of input shapes in which an engine is to run.");
    common(profile);
    profile
        .def("set_shape", &set_shape, "input"_a, "min"_a, "opt"_a, "max"_a,
             "Shapes of an input. Errors: ValueError when min <= opt <= max does not hold.")
        .def("get_shape", &get_shape, "input"_a, "[min, opt, max]; [] when they are not set.")
        .def("set_shape_input", &set_values, "input"_a, "min"_a, "opt"_a, "max"_a,
             "Values of a shape input, as many as it has elements.")
        .def("get_shape_input", &get_values, "input"_a, "[min, opt, max]; [] when not set.")
        .def("__nonzero__", &Profile::isValid)
        .def("is_valid", &Profile::isValid,
             "Whether every shape fits its others: sizes are not negative, ranks agree, min <= opt "
             "<= max.");
    prop<&Profile::getExtraMemoryTarget, &Profile::setExtraMemoryTarget>(
        profile, "extra_memory_target", "0 to 1. Default 1.");
    m.attr("OptimizationProfile") = profile;
}

trt::TimingCacheKey key_of(const std::string& text) {
    trt::TimingCacheKey key{};
    const bool fits = text.size() == 34 && text.compare(0, 2, "0x") == 0 &&
                      text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
    if (!fits) {
        throw nb::value_error("the text of a timing cache key is 0x and 32 hexadecimal digits");
    }
    for (size_t i = 0; i < sizeof key.data; ++i) {
        key.data[i] = static_cast<uint8_t>(std::stoi(text.substr(2 + 2 * i, 2), nullptr, 16));
    }
    return key;
}

std::string text_of(const trt::TimingCacheKey& key) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text = "0x";
    for (const uint8_t byte : key.data) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

void bind_timing_cache(nb::module_& m) {
    using Key = trt::TimingCacheKey;
    using Value = trt::TimingCacheValue;
    nb::class_<Key>(m, "TimingCacheKey", "Names a timed choice.")
        .def_static("parse", &key_of, "text"_a, "From 0x and 32 hexadecimal digits.")
        .def("__str__", &text_of)
        .def("__repr__", &text_of)
        .def("__hash__", [](const Key& k) { return nb::hash(nb::str(text_of(k).c_str())); })
        .def(
            "__eq__",
            [](const Key& a, const Key& b) {
                return std::memcmp(a.data, b.data, sizeof a.data) == 0;
            },
            nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
    nb::class_<Value>(m, "TimingCacheValue", "A timed choice.")
        .def(
            "__init__",
            [](Value* at, uint64_t hash, float ms) {
                new (at) Value{hash, ms};
            },
            "tactic_hash"_a, "timing_msec"_a)
        .def_rw("tactic_hash", &Value::tacticHash, "Names the kernel.")
        .def_rw("timing_msec", &Value::timingMSec, "Milliseconds.")
        .def_rw("tacticHash", &Value::tacticHash, "tactic_hash.")
        .def_rw("timingMSec", &Value::timingMSec, "timing_msec.")
        .def_ro_static("INVALID_TACTIC_HASH", &Value::kINVALID_TACTIC_HASH,
                       "Stands for no choice.");
    nb::class_<trt::ITimingCache> cache(m, "ITimingCache", "Kernels chosen and their times.");
    common(cache);
    cache
        .def("serialize", slow<&trt::ITimingCache::serialize>(),
             "The cache as bytes, for create_timing_cache().")
        .def("combine", slow<&trt::ITimingCache::combine>(), "input_cache"_a, "ignore_mismatch"_a,
             "Adds the entries of another cache.")
        .def("reset", method<&trt::ITimingCache::reset>(), "Forgets all entries.")
        .def(
            "query_keys",
            [](const trt::ITimingCache& self) {
                const int64_t count = self.queryKeys(nullptr, 0);
                std::vector<Key> keys(static_cast<size_t>(std::max<int64_t>(count, 0)));
                self.queryKeys(keys.data(), count);
                return keys;
            },
            "Keys of all entries.")
        .def(
            "queryKeys",
            [](const trt::ITimingCache& self) {
                const int64_t count = self.queryKeys(nullptr, 0);
                std::vector<Key> keys(static_cast<size_t>(std::max<int64_t>(count, 0)));
                self.queryKeys(keys.data(), count);
                return keys;
            },
            "query_keys().")
        .def("query", method<&trt::ITimingCache::query>(), "key"_a,
             "The choice for a key; its tactic_hash is INVALID_TACTIC_HASH when there is none.")
        .def("update", method<&trt::ITimingCache::update>(), "key"_a, "value"_a,
             "Changes the choice of a key that is present; a time of NaN removes it. False when it "
             "is not present or the hash is invalid.");
}

void bind_config_props(nb::class_<Config>& c) {
    prop<&Config::getFlags, &Config::setFlags>(c, "flags", "Bits of BuilderFlag: 1 << int(flag).");
    prop<&Config::getBuilderOptimizationLevel, &Config::setBuilderOptimizationLevel>(
        c, "builder_optimization_level", "0 (fast build) to 5 (thorough). Default 3.");
    prop<&Config::getProfilingVerbosity, &Config::setProfilingVerbosity>(
        c, "profiling_verbosity", "Default LAYER_NAMES_ONLY.");
    prop<&Config::getMaxAuxStreams, &Config::setMaxAuxStreams>(
        c, "max_aux_streams", "Streams beside the main one; -1: the builder chooses.");
    prop<&Config::getHardwareCompatibilityLevel, &Config::setHardwareCompatibilityLevel>(
        c, "hardware_compatibility_level",
        "Which GPUs it must run on; engines run on every GPU of compute capability 8.0 and up "
        "anyway.");
    prop<&Config::getRuntimePlatform, &Config::setRuntimePlatform>(c, "runtime_platform",
                                                                   "Default SAME_AS_BUILD.");
    prop<&Config::getAvgTimingIterations, &Config::setAvgTimingIterations>(
        c, "avg_timing_iterations", "At least 1. Default 1.");
    prop<&Config::getMaxNbTactics, &Config::setMaxNbTactics>(
        c, "max_num_tactics", "Candidates timed per layer; -1 (the default): the builder chooses.");
    prop<&Config::getTilingOptimizationLevel, &Config::setTilingOptimizationLevel>(
        c, "tiling_optimization_level", "Default NONE.");
    prop<&Config::getL2LimitForTiling, &Config::setL2LimitForTiling>(c, "l2_limit_for_tiling",
                                                                     "Bytes; -1: chosen.");
    prop<&Config::getEngineCapability, &Config::setEngineCapability>(c, "engine_capability",
                                                                     "Default STANDARD.");
    prop<&Config::getDefaultDeviceType, &Config::setDefaultDeviceType>(c, "default_device_type",
                                                                       "There is no DLA.");
    prop<&Config::getDLACore, &Config::setDLACore>(c, "DLA_core", "There is no DLA.");
    prop<&Config::getBuildRoute, &Config::setBuildRoute>(c, "build_route",
                                                         "Options such as -name=value.");
    prop_ro<&Config::getAllBuildRoutes>(c, "all_build_routes", "JSON: the options there are.");
    prop<&Config::getRemoteAutoTuningConfig, &Config::setRemoteAutoTuningConfig>(
        c, "remote_auto_tuning_config", "Not supported.");
    prop<&Config::getQuantizationFlags, &Config::setQuantizationFlags>(c, "quantization_flags",
                                                                       "Bits of QuantizationFlag.");
    prop<&Config::getNbComputeCapabilities, &Config::setNbComputeCapabilities>(
        c, "num_compute_capabilities", "0: the engine is for every GPU.");
    prop_ro<&Config::getNbOptimizationProfiles>(c, "num_optimization_profiles",
                                                "Profiles added so far.");
    prop_held<&Config::getProgressMonitor, &Config::setProgressMonitor>(
        c, "progress_monitor", "Follows builds, and can stop them.");
    prop_held<&Config::getInt8Calibrator, &Config::setInt8Calibrator>(
        c, "int8_calibrator", "Where INT8 ranges come from in a network without Q/DQ.");
}

void bind_config_methods(nb::class_<Config>& c) {
    c.def("set_flag", method<&Config::setFlag>(), "flag"_a, "Switches a BuilderFlag on.")
        .def("clear_flag", method<&Config::clearFlag>(), "flag"_a, "Switches a BuilderFlag off.")
        .def("get_flag", method<&Config::getFlag>(), "flag"_a, "Whether a BuilderFlag is on.")
        .def("set_quantization_flag", method<&Config::setQuantizationFlag>(), "flag"_a,
             "Switches a QuantizationFlag on.")
        .def("clear_quantization_flag", method<&Config::clearQuantizationFlag>(), "flag"_a,
             "Switches a QuantizationFlag off.")
        .def("get_quantization_flag", method<&Config::getQuantizationFlag>(), "flag"_a,
             "Whether a QuantizationFlag is on.")
        .def("set_memory_pool_limit", method<&Config::setMemoryPoolLimit>(), "pool"_a,
             "pool_size"_a, "Bytes.")
        .def("get_memory_pool_limit", method<&Config::getMemoryPoolLimit>(), "pool"_a, "Bytes.")
        .def("set_tactic_sources", method<&Config::setTacticSources>(), "tactic_sources"_a,
             "Bits of TacticSource that kernels may come from. False for bits that are none.")
        .def("get_tactic_sources", method<&Config::getTacticSources>(),
             "Bits of TacticSource that kernels may come from.")
        .def("set_preview_feature", method<&Config::setPreviewFeature>(), "feature"_a, "enable"_a,
             "Switches a PreviewFeature on or off.")
        .def("get_preview_feature", method<&Config::getPreviewFeature>(), "feature"_a,
             "Whether a PreviewFeature is on.")
        .def("set_device_type", method<&Config::setDeviceType>(), "layer"_a, "device_type"_a,
             "GPU for a layer; there is no DLA.")
        .def("get_device_type", method<&Config::getDeviceType>(), "layer"_a,
             "Where a layer is to run.")
        .def("is_device_type_set", method<&Config::isDeviceTypeSet>(), "layer"_a,
             "Whether set_device_type() was called for the layer.")
        .def("reset_device_type", method<&Config::resetDeviceType>(), "layer"_a,
             "Takes set_device_type() back.")
        .def("can_run_on_DLA", method<&Config::canRunOnDLA>(), "layer"_a, "Always False.")
        .def("reset", method<&Config::reset>(), "Back to the defaults.")
        .def("set_compute_capability", method<&Config::setComputeCapability>(),
             "compute_capability"_a, "index"_a,
             "A GPU that the engine has kernels for: call it for each index below "
             "num_compute_capabilities. False for a bad index or a capability that is not "
             "supported.")
        .def("get_compute_capability", method<&Config::getComputeCapability>(), "index"_a,
             "What set_compute_capability() set; NONE for a bad index.")
        .def("add_optimization_profile", &Config::addOptimizationProfile, "profile"_a,
             nb::keep_alive<1, 2>(), "Returns its index, -1 when it is not valid.")
        .def("set_calibration_profile", &Config::setCalibrationProfile, "profile"_a,
             nb::keep_alive<1, 2>(),
             "Whose opt shapes batches of int8_calibrator have; needed for inputs without static "
             "shapes. False when it is not valid.")
        .def("get_calibration_profile", &Config::getCalibrationProfile,
             nb::rv_policy::reference_internal, "What set_calibration_profile() set, or None.")
        .def(
            "set_device",
            [](Config& self, int32_t device, int32_t ordinal) {
                return ingot::setDevice(self, static_cast<ingot::Device>(device), ordinal);
            },
            "device"_a, "ordinal"_a = 0,
            "Beyond TensorRT: where kernels are timed, 0 auto, 1 GPU, 2 CPU.");
}

void bind_config_objects(nb::class_<Config>& c) {
    c.def_prop_rw(
         "profile_stream",
         [](const Config& self) { return reinterpret_cast<uintptr_t>(self.getProfileStream()); },
         [](Config& self, uintptr_t stream) {
             self.setProfileStream(reinterpret_cast<cudaStream_t>(stream));
         },
         "Address of the CUDA stream that kernels are timed on.")
        .def_prop_rw(
            "plugins_to_serialize",
            [](const Config& self) {
                std::vector<std::string> paths;
                for (int32_t i = 0; i < self.getNbPluginsToSerialize(); ++i) {
                    paths.emplace_back(self.getPluginToSerialize(i));
                }
                return paths;
            },
            [](Config& self, const std::vector<std::string>& paths) {
                std::vector<const char*> texts;
                for (const std::string& path : paths) {
                    texts.push_back(path.c_str());
                }
                self.setPluginsToSerialize(texts.data(), static_cast<int32_t>(texts.size()));
            },
            "Always empty: an engine holds no host code. Plugin libraries are loaded where it is.")
        .def(
            "create_timing_cache",
            [](nb::pointer_and_handle<Config> self, const nb::object& data) {
                const nb::bytes bytes(data);
                return Owned<trt::ITimingCache>{
                    std::unique_ptr<trt::ITimingCache>(
                        self.p->createTimingCache(bytes.data(), bytes.size())),
                    nb::borrow(self.h),
                    {}};
            },
            "serialized_timing_cache"_a, "From bytes; b'' for an empty one.",
            nb::sig("def create_timing_cache(self, serialized_timing_cache: bytes) -> "
                    "ITimingCache | None"))
        .def("set_timing_cache", &Config::setTimingCache, "cache"_a, "ignore_mismatch"_a,
             nb::keep_alive<1, 2>(),
             "Builds read and extend the cache. False when it is of another release, or of another "
             "device unless ignore_mismatch.")
        .def("get_timing_cache", &Config::getTimingCache, nb::rv_policy::reference_internal,
             "What set_timing_cache() set, or None.");
}

} // namespace

void bind_config(nb::module_& m) {
    bind_profile(m);
    bind_timing_cache(m);
    nb::class_<Config> c(m, "IBuilderConfig", "How a network is built. One thread at a time.");
    common(c);
    bind_config_props(c);
    bind_config_methods(c);
    bind_config_objects(c);
    m.attr("BuilderConfig") = c;
}

} // namespace ingot::python
