// SPDX-License-Identifier: Apache-2.0
// BuilderConfig: IBuilderConfig, the settings and their checks.
#pragma once

#include "NvInfer.h"
#include "api/tensorrt/builder/profile.h"
#include "api/tensorrt/builder/timing_cache.h"
#include "ingot.h"
#include "ir/tensor.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ingot::api {

namespace nv = nvinfer1;

class BuilderConfig final : public nv::IBuilderConfig {
public:
    using Profiles = std::vector<std::shared_ptr<ProfileObject>>;
    BuilderConfig(const Report& report, std::shared_ptr<const ProfileList> profiles)
        : report_(report), known_(std::move(profiles)) {}
    ~BuilderConfig() override;

    const Report& report() const { return report_; }
    const Profiles& profiles() const { return profiles_; }
    /// Compute capabilities to compile for: 90 for 9.0, or kCURRENT alone.
    const std::vector<nv::ComputeCapability>& capabilities() const { return capabilities_; }
    /// The profile of setCalibrationProfile(), or null.
    const ProfileObject* calibration_profile() const { return calibration_profile_.get(); }
    /// The timing cache that a build fills: the one set, or one of its own.
    const std::shared_ptr<plan::TimingCache>& timings() const;
    bool has_timing_cache() const { return timing_cache_ != nullptr; }
    /// This quickstart route asks for INT8 without ranges.
    static constexpr const char* guess_route = "-int8_without_calibration=on";
    bool guesses_ranges() const { return route_ == guess_route; }
    bool has(nv::BuilderFlag f) const { return ((flags_ >> static_cast<uint32_t>(f)) & 1U) != 0; }
    Device device = Device::kAUTO;
    int32_t ordinal = 0;
    /// Inputs of runs that show ranges of values, in the order of the network's.
    std::vector<std::vector<Tensor>> samples;
    bool logs_memory = true; // ingot::setMemoryLog

    void setAvgTimingIterations(int32_t v) noexcept override;
    int32_t getAvgTimingIterations() const noexcept override { return timing_iterations_; }
    void setEngineCapability(nv::EngineCapability v) noexcept override;
    nv::EngineCapability getEngineCapability() const noexcept override { return capability_; }
    void setFlags(nv::BuilderFlags v) noexcept override;
    nv::BuilderFlags getFlags() const noexcept override { return flags_; }
    void clearFlag(nv::BuilderFlag v) noexcept override;
    void setFlag(nv::BuilderFlag v) noexcept override;
    bool getFlag(nv::BuilderFlag v) const noexcept override;
    void setDeviceType(const nv::ILayer* layer, nv::DeviceType v) noexcept override;
    nv::DeviceType getDeviceType(const nv::ILayer* layer) const noexcept override;
    bool isDeviceTypeSet(const nv::ILayer* layer) const noexcept override;
    void resetDeviceType(const nv::ILayer* layer) noexcept override;
    bool canRunOnDLA(const nv::ILayer*) const noexcept override { return false; }
    void setDLACore(int32_t v) noexcept override;
    int32_t getDLACore() const noexcept override { return dla_core_; }
    void setDefaultDeviceType(nv::DeviceType v) noexcept override;
    nv::DeviceType getDefaultDeviceType() const noexcept override { return default_device_; }
    void reset() noexcept override;
    void setProfileStream(cudaStream_t v) noexcept override { stream_ = v; }
    cudaStream_t getProfileStream() const noexcept override { return stream_; }
    int32_t addOptimizationProfile(const nv::IOptimizationProfile* profile) noexcept override;
    int32_t getNbOptimizationProfiles() const noexcept override;
    void setProfilingVerbosity(nv::ProfilingVerbosity v) noexcept override;
    nv::ProfilingVerbosity getProfilingVerbosity() const noexcept override { return verbosity_; }
    bool setTacticSources(nv::TacticSources v) noexcept override;
    nv::TacticSources getTacticSources() const noexcept override { return tactic_sources_; }
    nv::ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept override;
    bool setTimingCache(const nv::ITimingCache& cache, bool ignore_mismatch) noexcept override;
    const nv::ITimingCache* getTimingCache() const noexcept override;
    void setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t pool_size) noexcept override;
    std::size_t getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept override;
    void setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept override;
    bool getPreviewFeature(nv::PreviewFeature feature) const noexcept override;
    void setBuilderOptimizationLevel(int32_t v) noexcept override;
    int32_t getBuilderOptimizationLevel() const noexcept override { return level_; }
    void setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel v) noexcept override;
    nv::HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept override {
        return hardware_;
    }
    void setPluginsToSerialize(const char* const* paths, int32_t nb_paths) noexcept override;
    const char* getPluginToSerialize(int32_t index) const noexcept override;
    int32_t getNbPluginsToSerialize() const noexcept override;
    bool setMaxAuxStreams(int32_t v) noexcept override;
    int32_t getMaxAuxStreams() const noexcept override { return aux_streams_; }
    void setProgressMonitor(nv::IProgressMonitor* v) noexcept override { monitor_ = v; }
    nv::IProgressMonitor* getProgressMonitor() const noexcept override { return monitor_; }
    void setRuntimePlatform(nv::RuntimePlatform v) noexcept override;
    nv::RuntimePlatform getRuntimePlatform() const noexcept override { return platform_; }
    void setMaxNbTactics(int32_t v) noexcept override;
    int32_t getMaxNbTactics() const noexcept override { return max_tactics_; }
    bool setTilingOptimizationLevel(nv::TilingOptimizationLevel v) noexcept override;
    nv::TilingOptimizationLevel getTilingOptimizationLevel() const noexcept override {
        return tiling_;
    }
    bool setL2LimitForTiling(int64_t v) noexcept override;
    int64_t getL2LimitForTiling() const noexcept override { return l2_limit_; }
    bool setNbComputeCapabilities(int32_t v) noexcept override;
    int32_t getNbComputeCapabilities() const noexcept override;
    bool setComputeCapability(nv::ComputeCapability v, int32_t index) noexcept override;
    nv::ComputeCapability getComputeCapability(int32_t index) const noexcept override;
    bool setBuildRoute(const char* v) noexcept override;
    const char* getBuildRoute() const noexcept override { return route_.c_str(); }
    const char* getAllBuildRoutes() const noexcept override;
    bool setRemoteAutoTuningConfig(const char* v) noexcept override;
    const char* getRemoteAutoTuningConfig() const noexcept override { return ""; }
    void setInt8Calibrator(nv::IInt8Calibrator* v) noexcept override { calibrator_ = v; }
    nv::IInt8Calibrator* getInt8Calibrator() const noexcept override { return calibrator_; }
    bool setCalibrationProfile(const nv::IOptimizationProfile* profile) noexcept override;
    const nv::IOptimizationProfile* getCalibrationProfile() noexcept override {
        return calibration_profile_.get();
    }
    void setQuantizationFlags(nv::QuantizationFlags v) noexcept override;
    nv::QuantizationFlags getQuantizationFlags() const noexcept override { return quantization_; }
    void clearQuantizationFlag(nv::QuantizationFlag v) noexcept override;
    void setQuantizationFlag(nv::QuantizationFlag v) noexcept override;
    bool getQuantizationFlag(nv::QuantizationFlag v) const noexcept override;

private:
    std::shared_ptr<ProfileObject> find(const nv::IOptimizationProfile* profile) const;
    void warn_dla() const;
    /// Makes a new cache for null, editable where the flag is set.
    std::unique_ptr<TimingCacheObject>
    make_cache(std::shared_ptr<plan::TimingCache> timings = nullptr) const;

    Report report_;
    std::shared_ptr<const ProfileList> known_;
    Profiles profiles_;
    std::shared_ptr<ProfileObject> calibration_profile_;
    nv::BuilderFlags flags_ = 1U << static_cast<uint32_t>(nv::BuilderFlag::kTF32);
    int32_t timing_iterations_ = 1;
    nv::EngineCapability capability_ = nv::EngineCapability::kSTANDARD;
    std::map<const nv::ILayer*, nv::DeviceType> device_types_;
    nv::DeviceType default_device_ = nv::DeviceType::kGPU;
    int32_t dla_core_ = -1;
    cudaStream_t stream_ = nullptr;
    nv::ProfilingVerbosity verbosity_ = nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    nv::TacticSources tactic_sources_ = 3;
    mutable std::unique_ptr<TimingCacheObject> timing_cache_; // filled by builds
    std::map<nv::MemoryPoolType, std::size_t> pools_;
    std::map<nv::PreviewFeature, bool> previews_;
    int32_t level_ = 3;
    nv::HardwareCompatibilityLevel hardware_ = nv::HardwareCompatibilityLevel::kNONE;
    int32_t aux_streams_ = -1;
    nv::IProgressMonitor* monitor_ = nullptr;
    nv::RuntimePlatform platform_ = nv::RuntimePlatform::kSAME_AS_BUILD;
    int32_t max_tactics_ = -1;
    nv::TilingOptimizationLevel tiling_ = nv::TilingOptimizationLevel::kNONE;
    int64_t l2_limit_ = -1;
    std::vector<nv::ComputeCapability> capabilities_;
    std::string route_;
    nv::IInt8Calibrator* calibrator_ = nullptr;
    nv::QuantizationFlags quantization_ = 0;
};

} // namespace ingot::api
