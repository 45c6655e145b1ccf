// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/inspector.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/context.h"
#include "workflow/timing.h"

namespace ingot::api {

using nvinfer1::LayerInformationFormat;
using nvinfer1::ProfilingVerbosity;

bool Inspector::setExecutionContext(const nvinfer1::IExecutionContext* context) noexcept {
    return report_.guard("IEngineInspector::setExecutionContext", false, [&] {
        const auto* object = static_cast<const ContextObject*>(context);
        require(object == nullptr || object->state() == state_, ErrorCode::InvalidArgument,
                "the context is of another engine");
        context_ = context;
        return true;
    });
}

std::vector<StepInfo> Inspector::steps() const {
    const auto* object = static_cast<const ContextObject*>(context_);
    return object == nullptr ? state_->steps() : object->steps();
}

bool Inspector::detailed() const {
    return state_->build_settings().verbosity == ProfilingVerbosity::kDETAILED;
}

const char* Inspector::getLayerInformation(int32_t layer,
                                           LayerInformationFormat format) const noexcept {
    return report_.guard(
        "IEngineInspector::getLayerInformation", static_cast<const char*>(nullptr), [&] {
            format = checked(format, "the format");
            std::vector<StepInfo> all = steps();
            require(layer >= 0 && static_cast<size_t>(layer) < all.size(),
                    ErrorCode::InvalidArgument, "layer ", layer, " does not exist, the engine has ",
                    all.size());
            if (state_->build_settings().verbosity == ProfilingVerbosity::kNONE) {
                all.assign(all.size(), StepInfo{str("layer ", layer), {}, {}, {}, {}});
            }
            const StepInfo& step = all[static_cast<size_t>(layer)];
            text_ = format == LayerInformationFormat::kJSON ? layer_json(step, detailed())
                                                            : layer_line(step, detailed());
            return text_.c_str();
        });
}

const char* Inspector::getEngineInformation(LayerInformationFormat format) const noexcept {
    return report_.guard(
        "IEngineInspector::getEngineInformation", static_cast<const char*>(nullptr), [&] {
            format = checked(format, "the format");
            std::vector<StepInfo> all = steps();
            if (state_->build_settings().verbosity == ProfilingVerbosity::kNONE) {
                all.clear();
            }
            if (format == LayerInformationFormat::kJSON) {
                text_ = layers_json(state_->graph(), all, detailed());
            } else {
                text_ = join(layer_lines(state_->graph(), all, detailed()), "\n") + "\n";
            }
            return text_.c_str();
        });
}

} // namespace ingot::api
