// SPDX-License-Identifier: Apache-2.0
// Builder: IBuilder. Makes networks, configurations and profiles, and builds engines.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "api/tensorrt/network/network.h"
#include "api/tensorrt/plugin/registry.h"
#include "engine/engine.h"

namespace ingot::api {

class Builder final : public nv::IBuilder {
public:
    explicit Builder(nv::ILogger* logger) : report_(logger) {}

    using nv::IBuilder::buildSerializedNetwork;
    int32_t getMaxDLABatchSize() const noexcept override { return 0; }
    int32_t getNbDLACores() const noexcept override { return 0; }
    void setGpuAllocator(nv::IGpuAllocator* allocator) noexcept override { allocator_ = allocator; }
    nv::IBuilderConfig* createBuilderConfig() noexcept override;
    nv::INetworkDefinition*
    createNetworkV2(nv::NetworkDefinitionCreationFlags flags) noexcept override;
    nv::IOptimizationProfile* createOptimizationProfile() noexcept override;
    void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override;
    nv::IErrorRecorder* getErrorRecorder() const noexcept override { return report_.recorder(); }
    void reset() noexcept override;
    nv::IHostMemory* buildSerializedNetwork(nv::INetworkDefinition& network,
                                            nv::IBuilderConfig& config) noexcept override;
    bool buildSerializedNetworkToStream(nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                                        nv::IStreamWriter& writer) noexcept override;
    nv::ICudaEngine* buildEngineWithConfig(nv::INetworkDefinition& network,
                                           nv::IBuilderConfig& config) noexcept override;
    /// For ingot::buildToFile().
    bool build_to_file(const nv::INetworkDefinition& network, const nv::IBuilderConfig& config,
                       const char* path) noexcept;
    bool isNetworkSupported(const nv::INetworkDefinition& network,
                            const nv::IBuilderConfig& config) const noexcept override;
    nv::ILogger* getLogger() const noexcept override { return report_.logger(); }
    bool setMaxThreads(int32_t max_threads) noexcept override;
    int32_t getMaxThreads() const noexcept override { return max_threads_; }
    nv::IPluginRegistry& getPluginRegistry() noexcept override;
    bool platformHasFastFp16() const noexcept override;
    bool platformHasFastInt8() const noexcept override;
    bool platformHasTf32() const noexcept override;

private:
    Report report_;
    std::shared_ptr<ProfileList> profiles_ = std::make_shared<ProfileList>();
    PluginRegistry plugins_{::getPluginRegistry()};
    nv::IGpuAllocator* allocator_ = nullptr;
    int32_t max_threads_ = default_threads();
    static int32_t default_threads();
};

/// Builds a network's engine. Errors: those of the layers; InvalidArgument for settings that
/// contradict each other; Unsupported; Interrupted when the monitor cancels.
std::shared_ptr<const Engine> build_network(const Network& network, const BuilderConfig& config);
/// Checks everything that needs no optimisation. Errors: as above.
void check_network(const Network& network, const BuilderConfig& config);

} // namespace ingot::api
