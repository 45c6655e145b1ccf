// SPDX-License-Identifier: Apache-2.0
#include "api/effects.h"
#include "base/text.h"

namespace ingot::test {

namespace {

Message of_flag(Flag flag, const std::string& name, const std::string& line) {
    return {"BuilderFlag::" + name,
            [flag](Scene& s) {
                s.config->setFlag(flag);
                s.build();
            },
            name + line};
}

/// A setter of the configuration.
Message of_config(const std::string& name, std::function<void(nv::IBuilderConfig&)> set,
                  const std::string& line, const std::string& written = "") {
    return {"IBuilderConfig::" + name,
            [set](Scene& s) {
                set(*s.config);
                s.build();
            },
            "IBuilderConfig::" + (written.empty() ? name : written) + line};
}

const std::string no_dla = "there is no DLA: layers run on the GPU, or on the CPU without one";
const std::string narrow = "types of 8 and 4 bits follow the network's quantise layers";
const std::string tiles = "tiles belong to tactics, which timing chooses (optimization level 4 and "
                          "above)";
const std::string kernels = "the engine runs on the CPU, which compiles and launches no kernels";

std::vector<Message> flag_messages() {
    std::vector<Message> all = {
        of_flag(Flag::kDEBUG, "kDEBUG",
                none + "layers are not waited for one by one; "
                       "IExecutionContext::setDebugSync(true) makes every run wait and report "
                       "its errors"),
        of_flag(Flag::kGPU_FALLBACK, "kGPU_FALLBACK", anyway + no_dla),
        of_flag(Flag::kSPARSE_WEIGHTS, "kSPARSE_WEIGHTS",
                none + "no kernel makes use of sparse weights; they are used as they are"),
        of_flag(Flag::kDIRECT_IO, "kDIRECT_IO",
                anyway + "inputs and outputs are row-major tensors, which nothing reformats"),
        of_flag(Flag::kVERSION_COMPATIBLE, "kVERSION_COMPATIBLE",
                anyway + "later releases run every engine"),
        {"BuilderFlag::kEXCLUDE_LEAN_RUNTIME",
         [](Scene& s) {
             s.config->setFlag(Flag::kVERSION_COMPATIBLE); // required by it
             s.config->setFlag(Flag::kEXCLUDE_LEAN_RUNTIME);
             s.build();
         },
         "kEXCLUDE_LEAN_RUNTIME" + anyway + "an engine holds no host code"},
        of_flag(Flag::kSTRICT_NANS, "kSTRICT_NANS", anyway + "no rewriting hides NaN"),
        of_flag(Flag::kFP8, "kFP8", none + narrow),
        of_flag(Flag::kINT4, "kINT4", none + narrow),
        of_flag(Flag::kFP4, "kFP4", none + narrow),
        {"SerializationFlag::kEXCLUDE_LEAN_RUNTIME",
         [](Scene& s) {
             std::unique_ptr<nv::ISerializationConfig> c(s.load().createSerializationConfig());
             c->setFlag(nv::SerializationFlag::kEXCLUDE_LEAN_RUNTIME);
         },
         "kEXCLUDE_LEAN_RUNTIME" + anyway + "an engine holds no host code"},
        {"ISerializationConfig::setFlags",
         [](Scene& s) {
             std::unique_ptr<nv::ISerializationConfig> c(s.load().createSerializationConfig());
             c->setFlags(2);
         },
         "kEXCLUDE_LEAN_RUNTIME" + anyway + "an engine holds no host code"},
    };
    for (const char* name : {"kPREFER_JIT_PYTHON_PLUGINS", "kPREFER_AOT_PYTHON_PLUGINS"}) {
        all.push_back({str("NetworkDefinitionCreationFlag::", name),
                       [jit = std::string_view(name).find("JIT") !=
                              std::string_view::npos](Scene& s) { s.make_network(jit ? 2 : 4); },
                       name + none + "a plugin has one way to run, which its creator decides"});
    }
    using Parser = nvonnxparser::OnnxParserFlag;
    for (const auto& [flag, name] :
         {std::pair(Parser::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA,
                    "kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"),
          std::pair(Parser::kREPORT_CAPABILITY_DLA, "kREPORT_CAPABILITY_DLA"),
          std::pair(Parser::kADJUST_FOR_DLA, "kADJUST_FOR_DLA")}) {
        all.push_back({str("OnnxParserFlag::", name),
                       [f = flag](Scene& s) {
                           std::unique_ptr<nvonnxparser::IParser> p(
                               nvonnxparser::createParser(*s.network, s.lines));
                           p->setFlag(f);
                       },
                       name + none + "there is no DLA"});
    }
    return all;
}

void add_pools_and_features(std::vector<Message>& all) {
    using Pool = nv::MemoryPoolType;
    for (const auto& [pool, name] : {std::pair(Pool::kDLA_MANAGED_SRAM, "kDLA_MANAGED_SRAM"),
                                     std::pair(Pool::kDLA_LOCAL_DRAM, "kDLA_LOCAL_DRAM"),
                                     std::pair(Pool::kDLA_GLOBAL_DRAM, "kDLA_GLOBAL_DRAM")}) {
        Message m = of_config(
            "setMemoryPoolLimit",
            [p = pool](nv::IBuilderConfig& c) { c.setMemoryPoolLimit(p, 1U << 20U); },
            none + no_dla, str("setMemoryPoolLimit(", name, ")"));
        m.setting = str("MemoryPoolType::", name);
        all.push_back(m);
    }
    using Feature = nv::PreviewFeature;
    struct Row {
        Feature feature;
        const char* name;
        const char* why;
    };
    for (const Row& r :
         {Row{Feature::kALIASED_PLUGIN_IO_10_03, "kALIASED_PLUGIN_IO_10_03",
              "IPluginV3OneBuildV2::getAliasedInput() always counts"},
          Row{Feature::kRUNTIME_ACTIVATION_RESIZE_10_10, "kRUNTIME_ACTIVATION_RESIZE_10_10",
              "updateDeviceMemorySizeForShapes() always gives the size for the shapes"},
          Row{Feature::kPROFILE_SHARING_0806, "kPROFILE_SHARING_0806",
              "contexts always share the profiles of an engine"},
          Row{Feature::kMULTIDEVICE_RUNTIME_10_16, "kMULTIDEVICE_RUNTIME_10_16",
              "collective layers need no feature"}}) {
        Message m = of_config(
            "setPreviewFeature",
            [f = r.feature](nv::IBuilderConfig& c) { c.setPreviewFeature(f, true); },
            anyway + r.why, str("setPreviewFeature(", r.name, ")"));
        all.push_back(m);
        m.setting = str("PreviewFeature::", r.name);
        all.push_back(m);
    }
}

class Calibrator : public nv::IInt8EntropyCalibrator2 {
public:
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void*[], const char*[], int32_t) noexcept override { return false; }
    const void* readCalibrationCache(std::size_t& length) noexcept override {
        length = 0;
        return nullptr;
    }
    void writeCalibrationCache(const void*, std::size_t) noexcept override {}
};

std::vector<Message> config_messages() {
    using C = nv::IBuilderConfig;
    static Calibrator calibrator;
    const std::string timed = "there is no GPU here on which tactics could be timed";
    std::vector<Message> all = {
        of_config(
            "setAvgTimingIterations", [](C& c) { c.setAvgTimingIterations(4); },
            none + "a kernel is timed until its median is known; only tactics of plugins are "
                   "timed so often"),
        of_config(
            "setProfileStream",
            [](C& c) { c.setProfileStream(reinterpret_cast<cudaStream_t>(0x10)); },
            none + "kernels are timed on streams of the builder's own"),
        of_config(
            "setTacticSources", [](C& c) { c.setTacticSources(1); },
            none + "all kernels have one source, which cannot be left out"),
        of_config(
            "setBuilderOptimizationLevel", [](C& c) { c.setBuilderOptimizationLevel(5); },
            none + timed),
        of_config(
            "setBuilderOptimizationLevel", [](C& c) { c.setBuilderOptimizationLevel(0); },
            anyway + "no tactic is timed below level 4, and a build does the same at all of "
                     "these"),
        of_config(
            "setTimingCache",
            [](C& c) {
                std::unique_ptr<nv::ITimingCache> t(c.createTimingCache(nullptr, 0));
                c.setTimingCache(*t, false);
            },
            none + timed + "; only tactics of plugins are kept"),
        of_config(
            "setHardwareCompatibilityLevel",
            [](C& c) {
                c.setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel::kAMPERE_PLUS);
            },
            anyway + "an engine runs on every supported GPU"),
        of_config(
            "setMaxAuxStreams", [](C& c) { c.setMaxAuxStreams(2); },
            none + "a run uses one stream"),
        of_config(
            "setRuntimePlatform",
            [](C& c) { c.setRuntimePlatform(nv::RuntimePlatform::kWINDOWS_AMD64); },
            anyway + "engines are the same on every platform"),
        of_config(
            "setMaxNbTactics", [](C& c) { c.setMaxNbTactics(3); },
            none + "at most six candidates of a layer are timed"),
        of_config(
            "setTilingOptimizationLevel",
            [](C& c) { c.setTilingOptimizationLevel(nv::TilingOptimizationLevel::kFULL); },
            none + tiles),
        of_config(
            "setL2LimitForTiling", [](C& c) { c.setL2LimitForTiling(1 << 20); }, none + tiles),
        of_config(
            "setInt8Calibrator", [](C& c) { c.setInt8Calibrator(&calibrator); },
            none + "kINT8 is not set"),
        {"ingot::addSampleInputs",
         [](Scene& s) {
             std::array<float, 8> values{};
             HostTensor x{};
             x.dims = dims({2, 4});
             x.type = nv::DataType::kFLOAT;
             x.data = values.data();
             EXPECT_TRUE(addSampleInputs(*s.config, &x, 1));
             s.build();
         },
         "ingot::addSampleInputs" + none + "kFP16 is not set"},
        {"IBuilderConfig::setCalibrationProfile",
         [](Scene& s) {
             nv::IOptimizationProfile* p = s.builder->createOptimizationProfile();
             s.config->setCalibrationProfile(p);
             s.build();
         },
         "IBuilderConfig::setCalibrationProfile" + none + "there is no calibrator"},
        of_config(
            "setQuantizationFlags", [](C& c) { c.setQuantizationFlags(1); },
            anyway + "calibration always sees the network before fusion"),
        of_config(
            "setQuantizationFlag",
            [](C& c) { c.setQuantizationFlag(nv::QuantizationFlag::kCALIBRATE_BEFORE_FUSION); },
            anyway + "calibration always sees the network before fusion", "setQuantizationFlags"),
    };
    all.push_back(all.back());
    all.back().setting = "QuantizationFlag::kCALIBRATE_BEFORE_FUSION";
    add_pools_and_features(all);
    const std::string dla = "there is no DLA: layers run on the GPU";
    all.push_back({"IBuilderConfig::setDLACore", [](Scene& s) { s.config->setDLACore(1); }, dla});
    all.push_back({"IBuilderConfig::setDefaultDeviceType",
                   [](Scene& s) { s.config->setDefaultDeviceType(nv::DeviceType::kDLA); }, dla});
    all.push_back(
        {"IBuilderConfig::setDeviceType",
         [](Scene& s) { s.config->setDeviceType(s.network->getLayer(0), nv::DeviceType::kDLA); },
         dla});
    return all;
}

std::vector<Message> other_messages() {
    return {
        {"IBuilder::setMaxThreads",
         [](Scene& s) {
             s.builder->setMaxThreads(1000);
             s.build();
         },
         "IBuilder::setMaxThreads" + none +
             "a build works in the calling thread, apart from kernels that are compiled ahead of "
             "time, by as many threads as there are cores, and 8 at most"},
        {"IOptimizationProfile::setExtraMemoryTarget",
         [](Scene& s) { s.builder->createOptimizationProfile()->setExtraMemoryTarget(0.5F); },
         "IOptimizationProfile::setExtraMemoryTarget" + none +
             "a context takes the memory that the largest shapes need, and no more"},
        {"IParser::setBuilderConfig",
         [](Scene& s) {
             std::unique_ptr<nvonnxparser::IParser> p(
                 nvonnxparser::createParser(*s.network, s.lines));
             p->setBuilderConfig(s.config.get());
         },
         "IParser::setBuilderConfig" + anyway + "a model is parsed alike for every configuration"},
        {"IRuntime::setDLACore", [](Scene& s) { s.runtime->setDLACore(1); },
         "IRuntime::setDLACore" + none + "there is no DLA"},
        {"IRuntime::setDLAWorkspaceAllocationStrategy",
         [](Scene& s) {
             s.runtime->setDLAWorkspaceAllocationStrategy(
                 nv::DLAWorkspaceAllocationStrategy::kSHARED_STATIC);
         },
         "IRuntime::setDLAWorkspaceAllocationStrategy" + none + "there is no DLA"},
        {"IRuntime::setTemporaryDirectory",
         [](Scene& s) { s.runtime->setTemporaryDirectory("there"); },
         "IRuntime::setTemporaryDirectory" + none + "no temporary files are made"},
        {"IRuntime::setTempfileControlFlags",
         [](Scene& s) { s.runtime->setTempfileControlFlags(1); },
         "IRuntime::setTempfileControlFlags" + anyway + "no temporary files are made"},
        {"IRuntimeConfig::setRuntimeCache",
         [](Scene& s) {
             std::unique_ptr<nv::IRuntimeConfig> c(s.load().createRuntimeConfig());
             std::unique_ptr<nv::IRuntimeCache> cache(c->createRuntimeCache());
             c->setRuntimeCache(*cache);
         },
         "IRuntimeConfig::setRuntimeCache" + none + kernels},
        {"IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy",
         [](Scene& s) {
             std::unique_ptr<nv::IRuntimeConfig> c(s.load().createRuntimeConfig());
             c->setDynamicShapesKernelSpecializationStrategy(
                 nv::DynamicShapesKernelSpecializationStrategy::kEAGER);
         },
         "IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy" + none + kernels},
        {"IRuntimeConfig::setCudaGraphStrategy",
         [](Scene& s) {
             std::unique_ptr<nv::IRuntimeConfig> c(s.load().createRuntimeConfig());
             c->setCudaGraphStrategy(nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
         },
         "IRuntimeConfig::setCudaGraphStrategy" + none + kernels},
        {"ICudaEngine::setWeightStreamingBudgetV2",
         [](Scene& s) { s.load().setWeightStreamingBudgetV2(0); },
         "ICudaEngine::setWeightStreamingBudgetV2" + none +
             "the engine runs on the CPU, which reads weights where they lie"},
        {"IExecutionContext::setInputConsumedEvent",
         [](Scene& s) { s.run().setInputConsumedEvent(reinterpret_cast<cudaEvent_t>(0x10)); },
         "IExecutionContext::setInputConsumedEvent" + none +
             "the engine runs on the CPU: inputs are free when enqueueV3() returns"},
        {"IExecutionContext::setNvtxVerbosity",
         [](Scene& s) { s.run().setNvtxVerbosity(nv::ProfilingVerbosity::kLAYER_NAMES_ONLY); },
         "IExecutionContext::setNvtxVerbosity" + none +
             "the engine runs on the CPU, where NVTX is told nothing"},
        {"IExecutionContext::setAuxStreams",
         [](Scene& s) {
             std::array<cudaStream_t, 1> one{};
             s.run().setAuxStreams(one.data(), 1);
         },
         "IExecutionContext::setAuxStreams: the engine uses one stream; the others are not used"},
    };
}

} // namespace

std::vector<Message> messages() {
    std::vector<Message> all = flag_messages();
    for (std::vector<Message> more : {config_messages(), other_messages()}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

} // namespace ingot::test
