// SPDX-License-Identifier: Apache-2.0
// IBuilderConfig, and what it is given: flags, timing cache, progress monitor. Included by
// NvInfer.h.
#pragma once

#include "ingot/calibrator.h"
#include "ingot/network.h"

namespace nvinfer1 {

/// Switches of a build. The numbers are those of the newest generation; names of older ones stand
/// in its gaps. One without effect is taken, and the build says so: a warning with the reason, or,
/// where it asks for what happens anyway, a line at kINFO.
enum class BuilderFlag : int32_t {
    kDEBUG = 2,                ///< No effect; see IExecutionContext::setDebugSync()
    kGPU_FALLBACK = 3,         ///< No effect: there is no DLA
    kREFIT = 4,                ///< All weights can be replaced
    kDISABLE_TIMING_CACHE = 5, ///< Builds time no tactics but plugins', those each time anew
    kTF32 = 6,                 ///< FLOAT products may round operands to TF32. On by default
    kSPARSE_WEIGHTS = 7,       ///< No effect: no kernel makes use of sparse weights
    kSAFETY_SCOPE TRT_DEPRECATED_ENUM = 8, ///< Refused
    kDIRECT_IO TRT_DEPRECATED_ENUM = 11,   ///< An input or output that is not kLINEAR is an error
    /// No effect: every engine runs with later releases, and with earlier ones through
    /// libingot_dispatch.so
    kVERSION_COMPATIBLE = 12,
    /// No effect: engines never carry a runtime. Refused without kVERSION_COMPATIBLE
    kEXCLUDE_LEAN_RUNTIME = 13,
    /// Builds time nothing that a timing cache can hold; a choice that it lacks is an error
    kERROR_ON_TIMING_CACHE_MISS = 15,
    kDISABLE_COMPILATION_CACHE = 17, ///< Builds leave no kernels in the cache folder
    kSTRIP_PLAN = 18,            ///< Leave refittable weights out; implies kREFIT_IDENTICAL alone
    kREFIT_IDENTICAL = 19,       ///< Weights can be put back, but not changed
    kWEIGHT_STREAMING = 20,      ///< A part of the weights may stay on the host
    kREFIT_INDIVIDUAL = 22,      ///< Marked weights can be replaced; not with the other two
    kSTRICT_NANS = 23,           ///< No rewriting that hides NaN, such as 0 * x to 0: always so
    kMONITOR_MEMORY = 24,        ///< Log memory during the build
    kEDITABLE_TIMING_CACHE = 26, ///< ITimingCache::update() works on caches made from now on
    /// The result of a row of a batch is the same, to the bit, at every place, with all neighbours
    /// and in batches of every size. Not with several profiles; slower.
    kDISTRIBUTIVE_INDEPENDENCE = 27,
    /// Runs allocate nothing, so that they can be captured; a network with sizes that depend on
    /// data, loops or conditionals is refused
    kREQUIRE_USER_ALLOCATION = 28,

    // Older generations: types of a network that is not strongly typed.
    kFP16 TRT_DEPRECATED_ENUM = 0,
    /// Products with constant weights compute in INT8 where ranges of tensors are known: from
    /// quantise layers, a calibrator or its cache, or ITensor::setDynamicRange(). Refused without
    kINT8 TRT_DEPRECATED_ENUM = 1,
    /// Types that layers were given count; what cannot be obeyed is an error
    kOBEY_PRECISION_CONSTRAINTS TRT_DEPRECATED_ENUM = 9,
    /// The same; what cannot be obeyed is logged
    kPREFER_PRECISION_CONSTRAINTS TRT_DEPRECATED_ENUM = 10,
    /// Like kINT4 and kFP4 without effect: narrow types follow the network's quantise layers
    kFP8 TRT_DEPRECATED_ENUM = 14,
    kBF16 TRT_DEPRECATED_ENUM = 16,
    kINT4 TRT_DEPRECATED_ENUM = 21,
    kFP4 TRT_DEPRECATED_ENUM = 25,
    kWEIGHTLESS TRT_DEPRECATED_ENUM = kSTRIP_PLAN,
};
INGOT_ENUM_MAX(BuilderFlag, 29)
/// Set of BuilderFlag: bit i stands for flag i.
using BuilderFlags = uint32_t;

/// Memory that a build, or the engine, may use at most. Tactics that need more are skipped, which
/// the log says at kINFO; where none is left, the build fails, or, for a device that is not at hand
/// then, createExecutionContext().
enum class MemoryPoolType : int32_t {
    kWORKSPACE = 0, ///< Scratch memory of a layer. Default: no limit
    kDLA_MANAGED_SRAM = 1,
    kDLA_LOCAL_DRAM = 2,
    kDLA_GLOBAL_DRAM = 3,
    /// On a GPU, for timing a tactic; a tactic that needs more is not timed. Default: no limit
    kTACTIC_DRAM = 4,
    kTACTIC_SHARED_MEMORY = 5, ///< Shared memory of a block. Default: what the device has
};
INGOT_ENUM_MAX(MemoryPoolType, 6)

enum class PreviewFeature : int32_t {
    kALIASED_PLUGIN_IO_10_03 = 0,         ///< IPluginV3OneBuildV2::getAliasedInput() counts
    kRUNTIME_ACTIVATION_RESIZE_10_10 = 1, ///< updateDeviceMemorySizeForShapes() may be less
    // Older generations; no effect.
    kPROFILE_SHARING_0806 TRT_DEPRECATED_ENUM = 16,
    kMULTIDEVICE_RUNTIME_10_16 TRT_DEPRECATED_ENUM = 17,
};
INGOT_ENUM_MAX(PreviewFeature, 2)

/// How much work goes into keeping intermediate values in L2. Kept, without effect.
enum class TilingOptimizationLevel : int32_t {
    kNONE = 0,
    kFAST = 1,
    kMODERATE = 2,
    kFULL = 3,
};
INGOT_ENUM_MAX(TilingOptimizationLevel, 4)

/// Names a timed choice; its text form is "0x" and 32 hexadecimal digits.
struct TimingCacheKey {
    uint8_t data[16];
};

/// A timed choice.
struct TimingCacheValue {
    uint64_t tacticHash;
    float timingMSec;
    static constexpr uint64_t kINVALID_TACTIC_HASH = UINT64_MAX;
};

/// Which kernels were chosen and how long they took, kept from build to build. Builds fill it where
/// there is a GPU to time them on; the engine carries what was timed for it.
///
/// Lifetime: made by IBuilderConfig::createTimingCache(), deleted by the caller; a configuration
/// that uses it keeps its content alive. Thread safety: one thread at a time.
class ITimingCache : public INoCopy {
public:
    virtual ~ITimingCache() noexcept = default;

    /// The caller deletes the result.
    virtual IHostMemory* serialize() const noexcept = 0;
    /// Adds the entries of another cache; those present stay. Returns false when it stems from
    /// another release, or from another device unless ignoreMismatch.
    virtual bool combine(const ITimingCache& inputCache, bool ignoreMismatch) noexcept = 0;
    /// Forgets everything.
    virtual bool reset() noexcept = 0;
    /// Copies up to `capacity` keys; keyBuffer may be nullptr. Returns how many there are, -1 on an
    /// error.
    virtual int64_t queryKeys(TimingCacheKey* keyBuffer, int64_t capacity) const noexcept = 0;
    /// kINVALID_TACTIC_HASH when there is no such key.
    virtual TimingCacheValue query(const TimingCacheKey& key) const noexcept = 0;
    /// Changes the choice of a key that is present; a time of NaN removes it. Returns false when it
    /// is not present or the hash is invalid.
    virtual bool update(const TimingCacheKey& key, const TimingCacheValue& value) noexcept = 0;
};

/// Follows a build, and can stop it.
///
/// Lifetime: outlives the build. Thread safety: the implementation's task; calls may come from
/// several threads.
class IProgressMonitor : public IVersionedInterface {
public:
    IProgressMonitor() = default;
    ~IProgressMonitor() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProgressMonitor", 1, 0}; }
    /// \param parentPhase nullptr for the outermost.
    virtual void phaseStart(const char* phaseName, const char* parentPhase,
                            int32_t nbSteps) noexcept = 0;
    /// Steps count from 0. Returns false to stop the build, which then gives nullptr.
    virtual bool stepComplete(const char* phaseName, int32_t step) noexcept = 0;
    virtual void phaseFinish(const char* phaseName) noexcept = 0;

protected:
    IProgressMonitor(const IProgressMonitor&) = default;
    IProgressMonitor(IProgressMonitor&&) = default;
    IProgressMonitor& operator=(const IProgressMonitor&) & = default;
    IProgressMonitor& operator=(IProgressMonitor&&) & = default;
};

/// How a network is built. The build logs each setting without effect once, with the reason, at
/// kWARNING, or at kINFO for behaviour that is always on.
///
/// Lifetime: made by IBuilder::createBuilderConfig(), deleted by the caller at any time. Objects
/// given by reference (monitor, calibrator, profiles' builder) must live until the build ends.
/// Thread safety: one thread at a time, one build at a time.
/// Errors: setters report impossible values and keep the old one.
class IBuilderConfig : public INoCopy {
public:
    virtual ~IBuilderConfig() noexcept = default;

    /// At least 1; default 1. Kept, without effect: a candidate is timed until its median is known.
    virtual void setAvgTimingIterations(int32_t avgTiming) noexcept = 0;
    virtual int32_t getAvgTimingIterations() const noexcept = 0;
    /// Default kSTANDARD.
    virtual void setEngineCapability(EngineCapability capability) noexcept = 0;
    virtual EngineCapability getEngineCapability() const noexcept = 0;
    /// Replaces all flags. Default: kTF32 alone.
    virtual void setFlags(BuilderFlags builderFlags) noexcept = 0;
    virtual BuilderFlags getFlags() const noexcept = 0;
    virtual void clearFlag(BuilderFlag builderFlag) noexcept = 0;
    virtual void setFlag(BuilderFlag builderFlag) noexcept = 0;
    virtual bool getFlag(BuilderFlag builderFlag) const noexcept = 0;

    // DLA: accepted, with a warning, and without effect.
    virtual void setDeviceType(const ILayer* layer, DeviceType deviceType) noexcept = 0;
    virtual DeviceType getDeviceType(const ILayer* layer) const noexcept = 0;
    virtual bool isDeviceTypeSet(const ILayer* layer) const noexcept = 0;
    virtual void resetDeviceType(const ILayer* layer) noexcept = 0;
    /// Always false.
    virtual bool canRunOnDLA(const ILayer* layer) const noexcept = 0;
    virtual void setDLACore(int32_t dlaCore) noexcept = 0;
    virtual int32_t getDLACore() const noexcept = 0;
    virtual void setDefaultDeviceType(DeviceType deviceType) noexcept = 0;
    virtual DeviceType getDefaultDeviceType() const noexcept = 0;

    /// Back to the defaults.
    virtual void reset() noexcept = 0;
    /// Kept, without effect: kernels are timed on streams of the builder's own.
    virtual void setProfileStream(const cudaStream_t stream) noexcept = 0;
    virtual cudaStream_t getProfileStream() const noexcept = 0;
    /// Adds a profile; it may change until the build. Returns its index, -1 when it is not valid.
    virtual int32_t addOptimizationProfile(const IOptimizationProfile* profile) noexcept = 0;
    virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
    /// Default kLAYER_NAMES_ONLY.
    virtual void setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept = 0;
    virtual ProfilingVerbosity getProfilingVerbosity() const noexcept = 0;
    /// Default: all. The engine's getTacticSources() gives it; it rules no kernel out.
    virtual bool setTacticSources(TacticSources tacticSources) noexcept = 0;
    virtual TacticSources getTacticSources() const noexcept = 0;
    /// A cache from what ITimingCache::serialize() wrote, or, for size 0, an empty one. The caller
    /// deletes it.
    virtual ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept = 0;
    /// Builds read and extend it, `cache` itself. Returns false when it is of another device unless
    /// ignoreMismatch.
    virtual bool setTimingCache(const ITimingCache& cache, bool ignoreMismatch) noexcept = 0;
    /// The cache set, else that of the last build, else nullptr. Do not delete the result.
    virtual const ITimingCache* getTimingCache() const noexcept = 0;
    /// Bytes.
    virtual void setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept = 0;
    virtual std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept = 0;
    virtual void setPreviewFeature(PreviewFeature feature, bool enable) noexcept = 0;
    virtual bool getPreviewFeature(PreviewFeature feature) const noexcept = 0;
    /// 0 (fast build) to 5 (thorough). Default 3. From 4 on, or with a timing cache, tactics are
    /// timed at build where there is a GPU: for 10 seconds at most, for a minute at 5.
    virtual void setBuilderOptimizationLevel(int32_t level) noexcept = 0;
    virtual int32_t getBuilderOptimizationLevel() const noexcept = 0;
    /// Default kNONE. The engine's getHardwareCompatibilityLevel() gives it; every engine runs on
    /// all supported GPUs.
    virtual void setHardwareCompatibilityLevel(
        HardwareCompatibilityLevel hardwareCompatibilityLevel) noexcept = 0;
    virtual HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept = 0;
    /// Refused, and reported, unless nbPaths is 0: an engine file holds no host code. Libraries of
    /// plugins are loaded where the engine is: IPluginRegistry::loadLibrary().
    virtual void setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept = 0;
    virtual const char* getPluginToSerialize(int32_t index) const noexcept = 0;
    virtual int32_t getNbPluginsToSerialize() const noexcept = 0;
    /// Streams beside the main one that engines may use; they use none, whatever this says. Default
    /// -1: the builder chooses. Returns false for less.
    virtual bool setMaxAuxStreams(int32_t nbStreams) noexcept = 0;
    virtual int32_t getMaxAuxStreams() const noexcept = 0;
    /// nullptr for none.
    virtual void setProgressMonitor(IProgressMonitor* monitor) noexcept = 0;
    virtual IProgressMonitor* getProgressMonitor() const noexcept = 0;
    /// Default kSAME_AS_BUILD. Kept, without effect: engines are the same on every platform.
    virtual void setRuntimePlatform(RuntimePlatform runtimePlatform) noexcept = 0;
    virtual RuntimePlatform getRuntimePlatform() const noexcept = 0;
    /// Default -1: the builder chooses. Kept, without effect: at most six candidates of a layer are
    /// timed.
    virtual void setMaxNbTactics(int32_t maxTactics) noexcept = 0;
    virtual int32_t getMaxNbTactics() const noexcept = 0;
    /// Default kNONE. Returns false for a number that is no level. Kept, without effect.
    virtual bool setTilingOptimizationLevel(TilingOptimizationLevel level) noexcept = 0;
    virtual TilingOptimizationLevel getTilingOptimizationLevel() const noexcept = 0;
    /// Bytes of L2 that tiling may count on. Default -1: the builder chooses. Kept, without effect.
    virtual bool setL2LimitForTiling(int64_t size) noexcept = 0;
    virtual int64_t getL2LimitForTiling() const noexcept = 0;

    /// How many compute capabilities are listed. Default 0: the engine is for every GPU, and
    /// kernels are compiled where it runs.
    virtual bool setNbComputeCapabilities(int32_t maxNbComputeCapabilities) noexcept = 0;
    virtual int32_t getNbComputeCapabilities() const noexcept = 0;
    /// Kernels for it are compiled at build and travel in the engine. kCURRENT, which stands alone,
    /// at index 0, is that of the GPU at hand; without one it is as if none were set. Returns false
    /// for a bad index or a capability that is not supported.
    virtual bool setComputeCapability(ComputeCapability computeCapability,
                                      int32_t index) noexcept = 0;
    /// kNONE where nothing is set.
    virtual ComputeCapability getComputeCapability(int32_t index) const noexcept = 0;

    /// Options of the builder as text: "-int8_without_calibration=on" lets kINT8 guess ranges from
    /// random inputs, for measuring speed. Returns false for unknown ones; the message names them.
    virtual bool setBuildRoute(const char* buildRoute) noexcept = 0;
    virtual const char* getBuildRoute() const noexcept = 0;
    /// JSON: the options there are, with their values.
    virtual const char* getAllBuildRoutes() const noexcept = 0;
    /// Not supported: nullptr or "" only, else false.
    virtual bool setRemoteAutoTuningConfig(const char* config) noexcept = 0;
    virtual const char* getRemoteAutoTuningConfig() const noexcept = 0;

    // Older generations: INT8 by calibration.

    /// nullptr for none. Used with kINT8 where the network has no quantise layers; runs on the
    /// device of ingot::setDevice().
    TRT_DEPRECATED virtual void setInt8Calibrator(IInt8Calibrator* calibrator) noexcept = 0;
    TRT_DEPRECATED virtual IInt8Calibrator* getInt8Calibrator() const noexcept = 0;
    /// Whose opt shapes batches have. Without it, inputs without static shapes have the opt shapes
    /// of the first optimisation profile, and an open first size is the calibrator's
    /// getBatchSize(). Returns false when it is not valid.
    TRT_DEPRECATED virtual bool
    setCalibrationProfile(const IOptimizationProfile* profile) noexcept = 0;
    TRT_DEPRECATED virtual const IOptimizationProfile* getCalibrationProfile() noexcept = 0;
    TRT_DEPRECATED virtual void setQuantizationFlags(QuantizationFlags flags) noexcept = 0;
    TRT_DEPRECATED virtual QuantizationFlags getQuantizationFlags() const noexcept = 0;
    TRT_DEPRECATED virtual void clearQuantizationFlag(QuantizationFlag flag) noexcept = 0;
    TRT_DEPRECATED virtual void setQuantizationFlag(QuantizationFlag flag) noexcept = 0;
    TRT_DEPRECATED virtual bool getQuantizationFlag(QuantizationFlag flag) const noexcept = 0;
};

namespace v_1_0 {
using nvinfer1::IProgressMonitor;
using nvinfer1::TimingCacheKey;
using nvinfer1::TimingCacheValue;
} // namespace v_1_0

} // namespace nvinfer1
