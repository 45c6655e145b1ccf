// SPDX-License-Identifier: Apache-2.0
// Names of TensorRT 11.4 and TensorRT for RTX 1.7, or that older programs use.
#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvInferPluginUtils.h"
#include "impl/NvInferPythonPlugin.h"

#include <memory>
#include <vector>

static_assert(NV_TENSORRT_SONAME_MAJOR == NV_TENSORRT_MAJOR &&
              NV_TENSORRT_SONAME_MINOR == NV_TENSORRT_MINOR &&
              NV_TENSORRT_SONAME_PATCH == NV_TENSORRT_PATCH);

// Weights that wait on the host while another engine uses the device.
bool swap_weights(nvinfer1::ICudaEngine& engine, nvinfer1::IRefitter& refitter,
                  cudaStream_t stream);
bool swap_weights(nvinfer1::ICudaEngine& engine, nvinfer1::IRefitter& refitter,
                  cudaStream_t stream) {
    std::unique_ptr<nvinfer1::IWeightsManager> manager(engine.createWeightsManager());
    if (!manager || !refitter.releaseRefitResources()) {
        return false;
    }
    std::vector<char> saved(static_cast<std::size_t>(manager->getSize()));
    const auto host = nvinfer1::TensorLocation::kHOST;
    const auto size = manager->getSize();
    return manager->saveToBuffer(saved.data(), size, host, stream) && manager->unload(stream) &&
           manager->restoreFromBuffer(saved.data(), size, host, stream) && engine.unloadWeights();
}

bool registries(nvinfer1::IRuntime& runtime);
bool registries(nvinfer1::IRuntime& runtime) {
    nvinfer1::setInternalLibraryPath("/opt/lib");
    setInternalLibraryPath(nullptr);
    const auto standard = nvinfer1::EngineCapability::kSTANDARD;
    using Strategy = nvinfer1::DLAWorkspaceAllocationStrategy;
    return runtime.setDLAWorkspaceAllocationStrategy(Strategy::kSHARED_STATIC) &&
           runtime.getDLAWorkspaceAllocationStrategy() != Strategy::kDEFAULT &&
           nvinfer1::getBuilderPluginRegistry(standard) == getBuilderPluginRegistry(standard);
}

float parameters();
float parameters() {
    nvinfer1::plugin::PriorBoxParameters boxes{};
    nvinfer1::plugin::RPROIParams regions{};
    nvinfer1::plugin::GridAnchorParameters anchors{};
    nvinfer1::plugin::softmaxTree tree{};
    nvinfer1::plugin::RegionParameters region{};
    region.smTree = &tree;
    return boxes.variance[3] + boxes.offset + regions.spatialScale + anchors.variance[3] +
           static_cast<float>(region.num + tree.groups);
}
