// SPDX-License-Identifier: Apache-2.0
// ingotAddSampleInputs: values that show the ranges of layers to a build with kFP16.
#include "api/tensorrt/builder/builder_config.h"
#include "api/tensorrt/host_tensor.h"
#include "base/text.h"

#include <cstring>

extern "C" bool ingotAddSampleInputs(nvinfer1::IBuilderConfig* config,
                                     const ingot::HostTensor* inputs, int32_t count) noexcept {
    using namespace ingot;
    if (config == nullptr) {
        return false;
    }
    auto& ours = static_cast<api::BuilderConfig&>(*config);
    return ours.report().guard("ingot::addSampleInputs", false, [&] {
        std::vector<Tensor> sample;
        for (const HostTensor& given : api::host_inputs(inputs, count)) {
            Tensor seen = with_place([&] { return str("input ", sample.size()); },
                                     [&] { return api::tensor_of(given); });
            Tensor copy = Tensor::empty(seen.dtype(), seen.shape());
            if (!seen.bytes().empty()) {
                std::memcpy(copy.mutable_bytes().data(), seen.bytes().data(), seen.bytes().size());
            }
            sample.push_back(std::move(copy));
        }
        ours.samples.push_back(std::move(sample));
        return true;
    });
}
