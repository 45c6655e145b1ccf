// SPDX-License-Identifier: Apache-2.0
// A fixture with a builder, and refitters of the engines it builds.
#pragma once

#include "NvInfer.h"
#include "api/runtime_fixture.h"

namespace ingot::test {

class RefitFixture : public RuntimeTest {
protected:
    std::unique_ptr<nvinfer1::ICudaEngine> engine_of(const nvinfer1::IHostMemory& m) {
        return std::unique_ptr<nvinfer1::ICudaEngine>(
            runtime->deserializeCudaEngine(m.data(), m.size()));
    }
    std::unique_ptr<nvinfer1::IRefitter> refitter_of(nvinfer1::ICudaEngine& e) {
        return std::unique_ptr<nvinfer1::IRefitter>(nvinfer1::createInferRefitter(e, logger));
    }
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
};

} // namespace ingot::test
