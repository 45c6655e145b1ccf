// SPDX-License-Identifier: Apache-2.0
// IEngineInspector.
#pragma once

#include "api/tensorrt/report.h"
#include "api/tensorrt/runtime/engine_state.h"

namespace ingot::api {

class Inspector final : public nvinfer1::IEngineInspector {
public:
    Inspector(std::shared_ptr<EngineState> state, const Report& report)
        : state_(std::move(state)), report_(report) {}

    bool setExecutionContext(const nvinfer1::IExecutionContext* context) noexcept override;
    const nvinfer1::IExecutionContext* getExecutionContext() const noexcept override {
        return context_;
    }
    const char*
    getLayerInformation(int32_t layer,
                        nvinfer1::LayerInformationFormat format) const noexcept override;
    const char*
    getEngineInformation(nvinfer1::LayerInformationFormat format) const noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        report_.set_recorder(recorder);
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }

private:
    std::vector<StepInfo> steps() const;
    bool detailed() const;

    std::shared_ptr<EngineState> state_;
    Report report_;
    const nvinfer1::IExecutionContext* context_ = nullptr;
    mutable std::string text_; // returned last
};

} // namespace ingot::api
