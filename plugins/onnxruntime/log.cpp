// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/log.h"

namespace ingot::ort {

bool Log::wants(OrtLoggingLevel level) const noexcept {
    OrtLoggingLevel lowest = ORT_LOGGING_LEVEL_WARNING;
    if (OrtStatus* status = host_.api->Logger_GetLoggingSeverityLevel(logger_, &lowest)) {
        host_.api->ReleaseStatus(status);
    }
    return level >= lowest;
}

void Log::write(OrtLoggingLevel level, const std::string& text) const noexcept {
    OrtStatus* status = host_.api->Logger_LogMessage(logger_, level, text.c_str(),
                                                     "ingot_onnxruntime", 0, "NvTensorRTRTX EP");
    if (status != nullptr) {
        host_.api->ReleaseStatus(status);
    }
}

void ApiLogger::write(Severity severity, const char* message) {
    OrtLoggingLevel level = severity == Severity::kWARNING            ? ORT_LOGGING_LEVEL_WARNING
                            : severity == Severity::kINFO && verbose_ ? ORT_LOGGING_LEVEL_INFO
                                                                      : ORT_LOGGING_LEVEL_VERBOSE;
    log_.write(level, message);
}

} // namespace ingot::ort
