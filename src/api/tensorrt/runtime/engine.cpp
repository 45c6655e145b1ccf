// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/engine.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/host_memory.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/network/formats.h"
#include "api/tensorrt/plugin/host.h"
#include "api/tensorrt/runtime/context.h"
#include "api/tensorrt/runtime/inspector.h"
#include "api/tensorrt/runtime/read_engine.h"
#include "api/tensorrt/runtime/runtime_config.h"
#include "api/tensorrt/runtime/serialization_config.h"
#include "api/tensorrt/runtime/weights_manager.h"

#include <algorithm>

namespace ingot::api {

using nvinfer1::ExecutionContextAllocationStrategy;
using nvinfer1::IExecutionContext;
using nvinfer1::IHostMemory;

std::unique_ptr<EngineObject> make_engine(std::shared_ptr<const Engine> engine, const Place& place,
                                          nvinfer1::IGpuAllocator* allocator, const Report& report,
                                          bool weights_loaded,
                                          nvinfer1::IPluginRegistry* registry) {
    auto state = std::make_shared<EngineState>(std::move(engine), place, allocator, weights_loaded);
    nvinfer1::IPluginRegistry* plugins = registry == nullptr ? ::getPluginRegistry() : registry;
    state->set_plugins(make_plugin_host(state->graph(), static_cast<PluginRegistry&>(*plugins),
                                        allocator, report));
    state->set_logger(report.logger());
    log_bytes(report, "Total Weights Memory", static_cast<int64_t>(state->engine().weight_bytes()));
    return std::make_unique<EngineObject>(std::move(state), report);
}

const IoTensor& EngineObject::tensor_of(const char* name, int32_t profile) const {
    const IoTensor& t = state_->tensor(name);
    state_->check_profile_index(profile);
    return t;
}

nvinfer1::Dims EngineObject::getTensorShape(const char* name) const noexcept {
    return report_.guard("ICudaEngine::getTensorShape", no_dims(),
                         [&] { return api_dims(state_->tensor(name).type.dims); });
}

nvinfer1::DataType EngineObject::getTensorDataType(const char* name) const noexcept {
    return report_.guard("ICudaEngine::getTensorDataType", nvinfer1::DataType::kFLOAT,
                         [&] { return data_type_of(state_->tensor(name).type.dtype); });
}

int32_t EngineObject::getNbLayers() const noexcept {
    return report_.guard("ICudaEngine::getNbLayers", 0,
                         [&] { return static_cast<int32_t>(state_->steps().size()); });
}

IHostMemory* EngineObject::serialized(const WriteOptions& options) const {
    require(state_->weights_loaded(), ErrorCode::InvalidArgument,
            "the weights are not loaded: call loadWeights() first");
    return std::make_unique<HostMemory>(engine_bytes(state_->engine(), options)).release();
}

IHostMemory* EngineObject::serialize() const noexcept {
    return report_.guard("ICudaEngine::serialize", static_cast<IHostMemory*>(nullptr),
                         [&] { return serialized({}); });
}

nvinfer1::ISerializationConfig* EngineObject::createSerializationConfig() noexcept {
    return report_.guard(
        "ICudaEngine::createSerializationConfig",
        static_cast<nvinfer1::ISerializationConfig*>(nullptr),
        [&]() -> nvinfer1::ISerializationConfig* {
            return std::make_unique<SerializationConfig>(report_, state_->engine()).release();
        });
}

IHostMemory*
EngineObject::serializeWithConfig(nvinfer1::ISerializationConfig& config) const noexcept {
    return report_.guard(
        "ICudaEngine::serializeWithConfig", static_cast<IHostMemory*>(nullptr), [&] {
            using Flag = nvinfer1::SerializationFlag;
            bool bare = config.getFlag(Flag::kEXCLUDE_WEIGHTS);
            require(bare || !state_->engine().weights_missing(), ErrorCode::InvalidArgument,
                    "the weights are missing: refit the engine first, or set "
                    "kEXCLUDE_WEIGHTS");
            return serialized({!bare, config.getFlag(Flag::kINCLUDE_REFIT)});
        });
}

IExecutionContext*
EngineObject::createExecutionContext(ExecutionContextAllocationStrategy strategy) noexcept {
    return report_.guard("ICudaEngine::createExecutionContext",
                         static_cast<IExecutionContext*>(nullptr), [&]() -> IExecutionContext* {
                             RuntimeConfig config(state_, report_);
                             config.setExecutionContextAllocationStrategy(
                                 checked(strategy, "the strategy"));
                             return make_context(state_, config, report_).release();
                         });
}

IExecutionContext* EngineObject::createExecutionContext(nvinfer1::IRuntimeConfig* config) noexcept {
    return report_.guard(
        "ICudaEngine::createExecutionContext", static_cast<IExecutionContext*>(nullptr),
        [&]() -> IExecutionContext* {
            RuntimeConfig defaults(state_, report_);
            auto* given = static_cast<RuntimeConfig*>(config);
            return make_context(state_, given == nullptr ? defaults : *given, report_).release();
        });
}

nvinfer1::IRuntimeConfig* EngineObject::createRuntimeConfig() noexcept {
    return report_.guard("ICudaEngine::createRuntimeConfig",
                         static_cast<nvinfer1::IRuntimeConfig*>(nullptr),
                         [&]() -> nvinfer1::IRuntimeConfig* {
                             return std::make_unique<RuntimeConfig>(state_, report_).release();
                         });
}

// All addresses are device addresses: shape tensors are read there too.
nvinfer1::TensorLocation EngineObject::getTensorLocation(const char* name) const noexcept {
    return report_.guard("ICudaEngine::getTensorLocation", nvinfer1::TensorLocation::kDEVICE, [&] {
        static_cast<void>(state_->tensor(name));
        return nvinfer1::TensorLocation::kDEVICE;
    });
}

bool EngineObject::isShapeInferenceIO(const char* name) const noexcept {
    return report_.guard("ICudaEngine::isShapeInferenceIO", false, [&] {
        static_cast<void>(state_->tensor(name));
        return false;
    });
}

nvinfer1::TensorIOMode EngineObject::getTensorIOMode(const char* name) const noexcept {
    using nvinfer1::TensorIOMode;
    return report_.guard("ICudaEngine::getTensorIOMode", TensorIOMode::kNONE, [&] {
        return state_->tensor(name).is_input ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
    });
}

const char* EngineObject::getAliasedInputTensor(const char* name) const noexcept {
    return report_.guard("ICudaEngine::getAliasedInputTensor", static_cast<const char*>(nullptr),
                         [&]() -> const char* {
                             const auto& aliases = state_->build_settings().aliases;
                             auto found = aliases.find(state_->tensor(name).name);
                             return found == aliases.end() ? nullptr : found->second.c_str();
                         });
}

int64_t EngineObject::getDeviceMemorySizeV2() const noexcept {
    return report_.guard("ICudaEngine::getDeviceMemorySizeV2", int64_t{-1}, [&] {
        int64_t most = 0;
        for (int32_t i = 0; i < state_->profile_count(); ++i) {
            most = std::max(most, state_->activation_bytes(i));
        }
        return most;
    });
}

int64_t EngineObject::getDeviceMemorySizeForProfileV2(int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getDeviceMemorySizeForProfileV2", int64_t{-1},
                         [&] { return state_->activation_bytes(profile); });
}

int32_t EngineObject::getTensorBytesPerComponent(const char* name) const noexcept {
    return getTensorBytesPerComponent(name, 0);
}

int32_t EngineObject::getTensorBytesPerComponent(const char* name, int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getTensorBytesPerComponent", -1, [&] {
        const IoTensor& t = tensor_of(name, profile);
        return t.format->pads() ? bit_width(t.type.dtype) / 8 : -1;
    });
}

int32_t EngineObject::getTensorComponentsPerElement(const char* name) const noexcept {
    return getTensorComponentsPerElement(name, 0);
}

int32_t EngineObject::getTensorComponentsPerElement(const char* name,
                                                    int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getTensorComponentsPerElement", -1, [&] {
        const IoFormat& f = *tensor_of(name, profile).format;
        return f.pads() ? static_cast<int32_t>(f.vector) : -1;
    });
}

nvinfer1::TensorFormat EngineObject::getTensorFormat(const char* name) const noexcept {
    return getTensorFormat(name, 0);
}

nvinfer1::TensorFormat EngineObject::getTensorFormat(const char* name,
                                                     int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getTensorFormat", nvinfer1::TensorFormat::kLINEAR,
                         [&] { return tensor_format_of(*tensor_of(name, profile).format); });
}

const char* EngineObject::getTensorFormatDesc(const char* name) const noexcept {
    return getTensorFormatDesc(name, 0);
}

const char* EngineObject::getTensorFormatDesc(const char* name, int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getTensorFormatDesc", static_cast<const char*>(nullptr),
                         [&] { return tensor_of(name, profile).described.c_str(); });
}

int32_t EngineObject::getTensorVectorizedDim(const char* name) const noexcept {
    return getTensorVectorizedDim(name, 0);
}

int32_t EngineObject::getTensorVectorizedDim(const char* name, int32_t profile) const noexcept {
    return report_.guard("ICudaEngine::getTensorVectorizedDim", -1, [&] {
        const IoTensor& t = tensor_of(name, profile);
        return t.format->pads() ? static_cast<int32_t>(t.format->axis(t.type.dims.size())) : -1;
    });
}

nvinfer1::Dims EngineObject::getProfileShape(const char* name, int32_t profile,
                                             nvinfer1::OptProfileSelector select) const noexcept {
    return report_.guard("ICudaEngine::getProfileShape", no_dims(), [&] {
        return api_dims(state_->profile_shape(state_->tensor(name), profile, select));
    });
}

namespace {

/// Null for an empty list.
template <class T>
const T* find_values(const std::vector<ProfileValues<T>>& all, int32_t profile,
                     const std::string& input, nvinfer1::OptProfileSelector select) {
    auto index = static_cast<size_t>(profile);
    if (index >= all.size()) {
        return nullptr;
    }
    auto it = all[index].find(input);
    return it == all[index].end() ? nullptr : it->second[static_cast<size_t>(select)].data();
}

} // namespace

const int64_t*
EngineObject::getProfileTensorValuesV2(const char* name, int32_t profile,
                                       nvinfer1::OptProfileSelector select) const noexcept {
    return report_.guard("ICudaEngine::getProfileTensorValuesV2",
                         static_cast<const int64_t*>(nullptr), [&]() -> const int64_t* {
                             const std::string& input = tensor_of(name, profile).name;
                             return find_values(state_->build_settings().values, profile, input,
                                                checked(select, "the selector"));
                         });
}

const int32_t*
EngineObject::getProfileTensorValues(const char* name, int32_t profile,
                                     nvinfer1::OptProfileSelector select) const noexcept {
    return report_.guard("ICudaEngine::getProfileTensorValues",
                         static_cast<const int32_t*>(nullptr), [&]() -> const int32_t* {
                             const std::string& input = tensor_of(name, profile).name;
                             return find_values(state_->build_settings().narrow_values, profile,
                                                input, checked(select, "the selector"));
                         });
}

nvinfer1::IEngineInspector* EngineObject::createEngineInspector() const noexcept {
    return report_.guard("ICudaEngine::createEngineInspector",
                         static_cast<nvinfer1::IEngineInspector*>(nullptr),
                         [&]() -> nvinfer1::IEngineInspector* {
                             return std::make_unique<Inspector>(state_, report_).release();
                         });
}

const char* EngineObject::getIOTensorName(int32_t index) const noexcept {
    return report_.guard("ICudaEngine::getIOTensorName", static_cast<const char*>(nullptr), [&] {
        require(index >= 0 && index < getNbIOTensors(), ErrorCode::InvalidArgument, "tensor ",
                index, " does not exist, the engine has ", getNbIOTensors());
        return state_->tensors()[static_cast<size_t>(index)].name.c_str();
    });
}

bool EngineObject::isDebugTensor(const char* name) const noexcept {
    const std::vector<std::string>& marked = state_->build_settings().debug_tensors;
    return name != nullptr && std::find(marked.begin(), marked.end(), name) != marked.end();
}

namespace {

int64_t stripped_bytes(const Engine& engine) {
    const RefitSource* source = engine.source().get();
    return source != nullptr && source->stripped ? source->bytes() : -1;
}

} // namespace

int64_t EngineObject::getEngineStat(nvinfer1::EngineStat stat) const noexcept {
    return report_.guard("ICudaEngine::getEngineStat", int64_t{-1}, [&] {
        return checked(stat, "the statistic") == nvinfer1::EngineStat::kTOTAL_WEIGHTS_SIZE
                   ? static_cast<int64_t>(state_->engine().weight_bytes())
                   : stripped_bytes(state_->engine());
    });
}

bool EngineObject::loadWeights(const void* blob, int64_t size) noexcept {
    return report_.guard("ICudaEngine::loadWeights", false, [&] {
        state_->load_weights([&](const EngineBytes& expected) {
            require(blob != nullptr && size >= 0, ErrorCode::InvalidArgument,
                    "there are no bytes to load weights from");
            check_same_engine({static_cast<const std::byte*>(blob), static_cast<size_t>(size)},
                              expected);
        });
        return true;
    });
}

bool EngineObject::loadWeightsAsync(nvinfer1::IStreamReaderV2& reader,
                                    cudaStream_t stream) noexcept {
    return report_.guard("ICudaEngine::loadWeightsAsync", false, [&] {
        state_->load_weights(
            [&](const EngineBytes& expected) { check_same_engine(reader, stream, expected); });
        return true;
    });
}

bool EngineObject::unloadWeights() noexcept {
    return report_.guard("ICudaEngine::unloadWeights", false, [&] {
        state_->unload_weights();
        return true;
    });
}

nvinfer1::IWeightsManager* EngineObject::createWeightsManager() noexcept {
    return report_.guard("ICudaEngine::createWeightsManager",
                         static_cast<nvinfer1::IWeightsManager*>(nullptr),
                         [&]() -> nvinfer1::IWeightsManager* {
                             return std::make_unique<WeightsManager>(state_, report_).release();
                         });
}

} // namespace ingot::api
