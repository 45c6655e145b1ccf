// SPDX-License-Identifier: Apache-2.0
// Two products with a ReLU between them, all weights 1, as helloWorld and apiUsage make them.
#pragma once

#include "common.h"

namespace samples {

constexpr int32_t input_size = 3;
constexpr int32_t hidden_size = 10;
constexpr int32_t output_size = 2;

struct TwoLayers {
    std::vector<float> data1 = std::vector<float>(input_size * hidden_size, 1.0F);
    std::vector<float> data2 = std::vector<float>(hidden_size * output_size, 1.0F);
    nvinfer1::Weights weights1{nvinfer1::DataType::kFLOAT, data1.data(), input_size* hidden_size};
    nvinfer1::Weights weights2{nvinfer1::DataType::kFLOAT, data2.data(), hidden_size* output_size};

    /// The data must live until the engine is built, or refitted.
    std::unique_ptr<nvinfer1::INetworkDefinition> network(nvinfer1::IBuilder& builder,
                                                          int32_t batch) const {
        auto flags =
            1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
        std::unique_ptr<nvinfer1::INetworkDefinition> n(builder.createNetworkV2(flags));
        NEED(n);
        nvinfer1::ITensor* input =
            n->addInput("input", nvinfer1::DataType::kFLOAT, nvinfer1::Dims2{batch, input_size});
        nvinfer1::ILayer* constant1 =
            n->addConstant(nvinfer1::Dims2{input_size, hidden_size}, weights1);
        constant1->setName("fully connected layer 1 weights");
        nvinfer1::ILayer* constant2 =
            n->addConstant(nvinfer1::Dims2{hidden_size, output_size}, weights2);
        constant2->setName("fully connected layer 2 weights");
        NEED(n->setWeightsName(weights1, "fc1 weights"));
        NEED(n->setWeightsName(weights2, "fc2 weights"));
        auto none = nvinfer1::MatrixOperation::kNONE;
        nvinfer1::ILayer* fc1 = n->addMatrixMultiply(*input, none, *constant1->getOutput(0), none);
        fc1->setName("fully connected layer 1");
        nvinfer1::ILayer* relu =
            n->addActivation(*fc1->getOutput(0), nvinfer1::ActivationType::kRELU);
        relu->setName("relu activation");
        nvinfer1::ILayer* fc2 =
            n->addMatrixMultiply(*relu->getOutput(0), none, *constant2->getOutput(0), none);
        fc2->setName("fully connected layer 2");
        fc2->getOutput(0)->setName("output");
        n->markOutput(*fc2->getOutput(0));
        return n;
    }
};

} // namespace samples
