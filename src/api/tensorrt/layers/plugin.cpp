// SPDX-License-Identifier: Apache-2.0
// Layers of the application: refused, with a message.
#include "api/tensorrt/network.h"
#include "ingot.h"

namespace ingot::api {

nv::IPluginV3Layer* Network::addPluginV3(nv::ITensor* const*, int32_t, nv::ITensor* const*, int32_t,
                                         nv::IPluginV3&) noexcept {
    return report_.guard(
        "INetworkDefinition::addPluginV3", static_cast<nv::IPluginV3Layer*>(nullptr),
        []() -> nv::IPluginV3Layer* { fail(ErrorCode::Unsupported, "plugins are not supported"); });
}

nv::IPluginV2Layer* Network::addPluginV2(nv::ITensor* const*, int32_t, nv::IPluginV2&) noexcept {
    return report_.guard(
        "INetworkDefinition::addPluginV2", static_cast<nv::IPluginV2Layer*>(nullptr),
        []() -> nv::IPluginV2Layer* { fail(ErrorCode::Unsupported, "plugins are not supported"); });
}

} // namespace ingot::api

extern "C" nvinfer1::ILayer* ingotAddCudaSourceLayer(nvinfer1::INetworkDefinition* network,
                                                     nvinfer1::ITensor* const*, int32_t,
                                                     const ingot::CudaSource*) noexcept {
    if (network == nullptr) {
        return nullptr;
    }
    return static_cast<ingot::api::Network*>(network)->report().guard(
        "ingot::addCudaSourceLayer", static_cast<nvinfer1::ILayer*>(nullptr),
        []() -> nvinfer1::ILayer* {
            ingot::fail(ingot::ErrorCode::Unsupported, "layers of CUDA source are not supported");
        });
}
