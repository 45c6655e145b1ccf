// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/builder_config.h"

#include "api/tensorrt/builder/timing_cache.h"
#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/backends.h"

#include <algorithm>
#include <limits>

namespace ingot::api {

namespace {

constexpr nv::BuilderFlags all_flags = (1U << nv::EnumMax<nv::BuilderFlag>()) - 1;

void check_flag(nv::BuilderFlag f) {
    auto number = static_cast<int64_t>(f);
    require(number >= 0 && number < nv::EnumMax<nv::BuilderFlag>(), ErrorCode::InvalidArgument,
            "the flag is ", number, ", expected 0 to ", nv::EnumMax<nv::BuilderFlag>() - 1);
}

} // namespace

BuilderConfig::~BuilderConfig() = default;

void BuilderConfig::reset() noexcept {
    report_.guard("IBuilderConfig::reset", [&] {
        BuilderConfig fresh(report_, known_);
        profiles_.clear();
        calibration_profile_.reset();
        flags_ = fresh.flags_;
        timing_iterations_ = fresh.timing_iterations_;
        capability_ = fresh.capability_;
        device_types_.clear();
        default_device_ = fresh.default_device_;
        dla_core_ = fresh.dla_core_;
        stream_ = nullptr;
        verbosity_ = fresh.verbosity_;
        tactic_sources_ = fresh.tactic_sources_;
        timing_cache_.reset();
        pools_.clear();
        previews_.clear();
        level_ = fresh.level_;
        hardware_ = fresh.hardware_;
        aux_streams_ = fresh.aux_streams_;
        monitor_ = nullptr;
        platform_ = fresh.platform_;
        max_tactics_ = fresh.max_tactics_;
        tiling_ = fresh.tiling_;
        l2_limit_ = fresh.l2_limit_;
        capabilities_.clear();
        route_.clear();
        calibrator_ = nullptr;
        quantization_ = 0;
        samples.clear();
        logs_memory = true;
    });
}

// --- flags ---------------------------------------------------------------------------------------

void BuilderConfig::setFlags(nv::BuilderFlags v) noexcept {
    report_.guard("IBuilderConfig::setFlags", [&] {
        require((v & ~all_flags) == 0, ErrorCode::InvalidArgument, "the flags ", v,
                " have bits above ", nv::EnumMax<nv::BuilderFlag>() - 1);
        flags_ = v;
    });
}

void BuilderConfig::setFlag(nv::BuilderFlag v) noexcept {
    report_.guard("IBuilderConfig::setFlag", [&] {
        check_flag(v);
        flags_ |= 1U << static_cast<uint32_t>(v);
    });
}

void BuilderConfig::clearFlag(nv::BuilderFlag v) noexcept {
    report_.guard("IBuilderConfig::clearFlag", [&] {
        check_flag(v);
        flags_ &= ~(1U << static_cast<uint32_t>(v));
    });
}

bool BuilderConfig::getFlag(nv::BuilderFlag v) const noexcept {
    return report_.guard("IBuilderConfig::getFlag", false, [&] {
        check_flag(v);
        return has(v);
    });
}

// --- numbers -------------------------------------------------------------------------------------

void BuilderConfig::setAvgTimingIterations(int32_t v) noexcept {
    report_.guard("IBuilderConfig::setAvgTimingIterations", [&] {
        require(v >= 1, ErrorCode::InvalidArgument, "avgTiming is ", v, ", expected 1 or more");
        timing_iterations_ = v;
    });
}

void BuilderConfig::setEngineCapability(nv::EngineCapability v) noexcept {
    report_.guard("IBuilderConfig::setEngineCapability",
                  [&] { capability_ = checked(v, "the capability"); });
}

void BuilderConfig::setProfilingVerbosity(nv::ProfilingVerbosity v) noexcept {
    report_.guard("IBuilderConfig::setProfilingVerbosity",
                  [&] { verbosity_ = checked(v, "the verbosity"); });
}

bool BuilderConfig::setTacticSources(nv::TacticSources v) noexcept {
    return report_.guard("IBuilderConfig::setTacticSources", false, [&] {
        constexpr nv::TacticSources older = 7U << 16U; // cuBLAS, cuBLASLt, cuDNN
        constexpr nv::TacticSources all = (1U << nv::EnumMax<nv::TacticSource>()) - 1;
        require((v & ~(all | older)) == 0, ErrorCode::InvalidArgument, "the tactic sources ", v,
                " have bits that are no TacticSource");
        tactic_sources_ = v & all;
        return true;
    });
}

void BuilderConfig::setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t pool_size) noexcept {
    report_.guard("IBuilderConfig::setMemoryPoolLimit", [&] {
        checked(pool, "the pool");
        pools_[pool] = pool_size;
    });
}

std::size_t BuilderConfig::getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept {
    auto it = pools_.find(pool);
    bool dla = pool == nv::MemoryPoolType::kDLA_MANAGED_SRAM ||
               pool == nv::MemoryPoolType::kDLA_LOCAL_DRAM ||
               pool == nv::MemoryPoolType::kDLA_GLOBAL_DRAM;
    return it != pools_.end() ? it->second : dla ? 0 : std::numeric_limits<std::size_t>::max();
}

void BuilderConfig::setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept {
    report_.guard("IBuilderConfig::setPreviewFeature", [&] {
        auto number = static_cast<int64_t>(feature);
        require(is_one_of(feature) || number == 16 || number == 17, ErrorCode::InvalidArgument,
                "the feature is ", number, ", expected 0 to ",
                nv::EnumMax<nv::PreviewFeature>() - 1);
        previews_[feature] = enable;
    });
}

bool BuilderConfig::getPreviewFeature(nv::PreviewFeature feature) const noexcept {
    auto it = previews_.find(feature);
    return it != previews_.end() && it->second;
}

void BuilderConfig::setBuilderOptimizationLevel(int32_t v) noexcept {
    report_.guard("IBuilderConfig::setBuilderOptimizationLevel", [&] {
        require(v >= 0 && v <= 5, ErrorCode::InvalidArgument, "the level is ", v,
                ", expected 0 to 5");
        level_ = v;
    });
}

void BuilderConfig::setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel v) noexcept {
    report_.guard("IBuilderConfig::setHardwareCompatibilityLevel",
                  [&] { hardware_ = checked(v, "the level"); });
}

bool BuilderConfig::setMaxAuxStreams(int32_t v) noexcept {
    return report_.guard("IBuilderConfig::setMaxAuxStreams", false, [&] {
        require(v >= -1, ErrorCode::InvalidArgument, "nbStreams is ", v, ", expected -1 or more");
        aux_streams_ = v;
        return true;
    });
}

void BuilderConfig::setRuntimePlatform(nv::RuntimePlatform v) noexcept {
    report_.guard("IBuilderConfig::setRuntimePlatform",
                  [&] { platform_ = checked(v, "the platform"); });
}

void BuilderConfig::setMaxNbTactics(int32_t v) noexcept {
    report_.guard("IBuilderConfig::setMaxNbTactics", [&] {
        require(v == -1 || v >= 1, ErrorCode::InvalidArgument, "maxTactics is ", v,
                ", expected 1 or more, or -1");
        max_tactics_ = v;
    });
}

bool BuilderConfig::setTilingOptimizationLevel(nv::TilingOptimizationLevel v) noexcept {
    return report_.guard("IBuilderConfig::setTilingOptimizationLevel", false, [&] {
        tiling_ = checked(v, "the level");
        return true;
    });
}

bool BuilderConfig::setL2LimitForTiling(int64_t v) noexcept {
    return report_.guard("IBuilderConfig::setL2LimitForTiling", false, [&] {
        require(v >= -1, ErrorCode::InvalidArgument, "size is ", v, ", expected -1 or more");
        l2_limit_ = v;
        return true;
    });
}

// --- profiles ------------------------------------------------------------------------------------

std::shared_ptr<ProfileObject> BuilderConfig::find(const nv::IOptimizationProfile* profile) const {
    std::shared_ptr<ProfileObject> found = known_->find(profile);
    require(found != nullptr, ErrorCode::InvalidArgument, "the profile ",
            profile == nullptr ? "is nullptr" : "is not of the builder of this configuration");
    return found;
}

int32_t BuilderConfig::addOptimizationProfile(const nv::IOptimizationProfile* profile) noexcept {
    return report_.guard("IBuilderConfig::addOptimizationProfile", int32_t{-1}, [&] {
        std::shared_ptr<ProfileObject> p = find(profile);
        p->check();
        profiles_.push_back(std::move(p));
        return static_cast<int32_t>(profiles_.size()) - 1;
    });
}

int32_t BuilderConfig::getNbOptimizationProfiles() const noexcept {
    return static_cast<int32_t>(profiles_.size());
}

bool BuilderConfig::setCalibrationProfile(const nv::IOptimizationProfile* profile) noexcept {
    return report_.guard("IBuilderConfig::setCalibrationProfile", false, [&] {
        std::shared_ptr<ProfileObject> p = find(profile);
        p->check();
        calibration_profile_ = std::move(p);
        return true;
    });
}

// --- timing cache --------------------------------------------------------------------------------

std::unique_ptr<TimingCacheObject>
BuilderConfig::make_cache(std::shared_ptr<plan::TimingCache> timings) const {
    if (timings == nullptr) {
        timings =
            std::make_shared<plan::TimingCache>("", has(nv::BuilderFlag::kEDITABLE_TIMING_CACHE));
    }
    auto here = [place = device, number = ordinal] {
        return find_place(place, number).backend->timing_device();
    };
    return std::make_unique<TimingCacheObject>(report_, here, std::move(timings));
}

const std::shared_ptr<plan::TimingCache>& BuilderConfig::timings() const {
    timing_cache_ = timing_cache_ == nullptr ? make_cache() : std::move(timing_cache_);
    return timing_cache_->timings();
}

nv::ITimingCache* BuilderConfig::createTimingCache(const void* blob,
                                                   std::size_t size) const noexcept {
    return report_.guard("IBuilderConfig::createTimingCache",
                         static_cast<nv::ITimingCache*>(nullptr), [&]() -> nv::ITimingCache* {
                             require(blob != nullptr || size == 0, ErrorCode::InvalidArgument,
                                     "blob is nullptr, but size is ", size);
                             std::span<const std::byte> bytes(static_cast<const std::byte*>(blob),
                                                              size);
                             std::unique_ptr<TimingCacheObject> made = make_cache();
                             made->read(bytes);
                             return made.release();
                         });
}

bool BuilderConfig::setTimingCache(const nv::ITimingCache& cache, bool ignore_mismatch) noexcept {
    return report_.guard("IBuilderConfig::setTimingCache", false, [&] {
        auto shared = make_cache(static_cast<const TimingCacheObject&>(cache).timings());
        if (!ignore_mismatch) {
            shared->check_device();
        }
        timing_cache_ = std::move(shared);
        return true;
    });
}

const nv::ITimingCache* BuilderConfig::getTimingCache() const noexcept {
    return timing_cache_.get();
}

// --- compute capabilities ------------------------------------------------------------------------

bool BuilderConfig::setNbComputeCapabilities(int32_t v) noexcept {
    return report_.guard("IBuilderConfig::setNbComputeCapabilities", false, [&] {
        constexpr int32_t most = 64;
        require(v >= 0 && v <= most, ErrorCode::InvalidArgument,
                "the number of compute capabilities is ", v, ", expected 0 to ", most);
        capabilities_.resize(static_cast<size_t>(v), nv::ComputeCapability::kNONE);
        return true;
    });
}

int32_t BuilderConfig::getNbComputeCapabilities() const noexcept {
    return static_cast<int32_t>(capabilities_.size());
}

bool BuilderConfig::setComputeCapability(nv::ComputeCapability v, int32_t index) noexcept {
    return report_.guard("IBuilderConfig::setComputeCapability", false, [&] {
        require(index >= 0 && static_cast<size_t>(index) < capabilities_.size(),
                ErrorCode::InvalidArgument, "index ", index, " is out of range: there are ",
                capabilities_.size(), "; see setNbComputeCapabilities()");
        auto number = static_cast<int32_t>(v);
        if (v == nv::ComputeCapability::kCURRENT) {
            require(index == 0 && capabilities_.size() == 1, ErrorCode::InvalidArgument,
                    "kCURRENT stands alone, at index 0 of 1");
        } else {
            require(number >= lowest_capability(), ErrorCode::Unsupported, "compute capability ",
                    number / 10, ".", number % 10, " is not supported");
        }
        capabilities_[static_cast<size_t>(index)] = v;
        return true;
    });
}

nv::ComputeCapability BuilderConfig::getComputeCapability(int32_t index) const noexcept {
    bool inside = index >= 0 && static_cast<size_t>(index) < capabilities_.size();
    return inside ? capabilities_[static_cast<size_t>(index)] : nv::ComputeCapability::kNONE;
}

// --- texts ---------------------------------------------------------------------------------------

void BuilderConfig::setPluginsToSerialize(const char* const* paths, int32_t nb_paths) noexcept {
    report_.guard("IBuilderConfig::setPluginsToSerialize", [&] {
        require(nb_paths >= 0 && (paths != nullptr || nb_paths == 0), ErrorCode::InvalidArgument,
                "nbPaths is ", nb_paths, paths == nullptr ? " and paths is nullptr" : "");
        require(nb_paths == 0, ErrorCode::Unsupported,
                "an engine file holds no host code, so that '",
                nb_paths > 0 && paths[0] != nullptr ? paths[0] : "",
                "' cannot travel in it: load it with IPluginRegistry::loadLibrary() before the "
                "engine is deserialised");
    });
}

const char* BuilderConfig::getPluginToSerialize(int32_t) const noexcept {
    return nullptr;
}

int32_t BuilderConfig::getNbPluginsToSerialize() const noexcept {
    return 0;
}

bool BuilderConfig::setBuildRoute(const char* v) noexcept {
    return report_.guard("IBuilderConfig::setBuildRoute", false, [&] {
        std::string_view text = v == nullptr ? "" : v;
        bool off = text.empty() || text == "-int8_without_calibration=off";
        require(off || text == guess_route, ErrorCode::InvalidArgument, "the options '", text,
                "' are not known; there is ", guess_route, " (or off)");
        route_ = text;
        return true;
    });
}

const char* BuilderConfig::getAllBuildRoutes() const noexcept {
    return R"({"int8_without_calibration": {"default": "off", "values": ["off", "on"]}})";
}

bool BuilderConfig::setRemoteAutoTuningConfig(const char* v) noexcept {
    return report_.guard("IBuilderConfig::setRemoteAutoTuningConfig", false, [&] {
        require(v == nullptr || *v == '\0', ErrorCode::Unsupported,
                "tuning on another machine is not supported");
        return true;
    });
}

// --- DLA -----------------------------------------------------------------------------------------

void BuilderConfig::warn_dla() const {
    report_.log(nv::ILogger::Severity::kWARNING, "there is no DLA: layers run on the GPU");
}

void BuilderConfig::setDeviceType(const nv::ILayer* layer, nv::DeviceType v) noexcept {
    report_.guard("IBuilderConfig::setDeviceType", [&] {
        require(layer != nullptr, ErrorCode::InvalidArgument, "layer is nullptr");
        device_types_[layer] = checked(v, "the device type");
        if (v == nv::DeviceType::kDLA) {
            warn_dla();
        }
    });
}

nv::DeviceType BuilderConfig::getDeviceType(const nv::ILayer* layer) const noexcept {
    auto it = device_types_.find(layer);
    return it != device_types_.end() ? it->second : default_device_;
}

bool BuilderConfig::isDeviceTypeSet(const nv::ILayer* layer) const noexcept {
    return device_types_.contains(layer);
}

void BuilderConfig::resetDeviceType(const nv::ILayer* layer) noexcept {
    device_types_.erase(layer);
}

void BuilderConfig::setDLACore(int32_t v) noexcept {
    dla_core_ = v;
    warn_dla();
}

void BuilderConfig::setDefaultDeviceType(nv::DeviceType v) noexcept {
    report_.guard("IBuilderConfig::setDefaultDeviceType", [&] {
        default_device_ = checked(v, "the device type");
        if (v == nv::DeviceType::kDLA) {
            warn_dla();
        }
    });
}

// --- quantisation of older generations -----------------------------------------------------------

namespace {

nv::QuantizationFlags bit_of(nv::QuantizationFlag v) {
    return 1U << static_cast<uint32_t>(checked(v, "the flag"));
}

} // namespace

void BuilderConfig::setQuantizationFlags(nv::QuantizationFlags v) noexcept {
    report_.guard("IBuilderConfig::setQuantizationFlags", [&] {
        constexpr nv::QuantizationFlags all = (1U << nv::EnumMax<nv::QuantizationFlag>()) - 1;
        require((v & ~all) == 0, ErrorCode::InvalidArgument, "the flags ", v,
                " have bits that are no QuantizationFlag");
        quantization_ = v;
    });
}

void BuilderConfig::clearQuantizationFlag(nv::QuantizationFlag v) noexcept {
    report_.guard("IBuilderConfig::clearQuantizationFlag", [&] { quantization_ &= ~bit_of(v); });
}

void BuilderConfig::setQuantizationFlag(nv::QuantizationFlag v) noexcept {
    report_.guard("IBuilderConfig::setQuantizationFlag", [&] { quantization_ |= bit_of(v); });
}

bool BuilderConfig::getQuantizationFlag(nv::QuantizationFlag v) const noexcept {
    return report_.guard("IBuilderConfig::getQuantizationFlag", false,
                         [&] { return (quantization_ & bit_of(v)) != 0; });
}

} // namespace ingot::api

extern "C" bool ingotSetBuildDevice(nvinfer1::IBuilderConfig* config, int32_t device,
                                    int32_t ordinal) noexcept {
    if (config == nullptr) {
        return false;
    }
    auto& ours = static_cast<ingot::api::BuilderConfig&>(*config);
    return ours.report().guard("ingot::setDevice", false, [&] {
        ingot::require(device >= 0 && device <= 2, ingot::ErrorCode::InvalidArgument,
                       "the device is ", device, ", expected 0 to 2");
        ingot::require(ordinal >= 0, ingot::ErrorCode::InvalidArgument, "the ordinal is ", ordinal,
                       ", expected 0 or more");
        ours.device = static_cast<ingot::Device>(device);
        ours.ordinal = ordinal;
        return true;
    });
}
