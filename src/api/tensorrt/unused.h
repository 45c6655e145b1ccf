// SPDX-License-Identifier: Apache-2.0
// Logs settings that are accepted and change nothing.
#pragma once

#include "api/tensorrt/report.h"

namespace ingot::api {

/// Logs "<setting>: accepted, no effect, because <reason>" as a warning; for behaviour that is
/// always on "<setting>: nothing changes, because <reason>" at kINFO.
inline void log_unused(const Report& report, std::string_view setting, bool happens_anyway,
                       std::string_view reason) noexcept {
    using Severity = nvinfer1::ILogger::Severity;
    try {
        report.log(
            happens_anyway ? Severity::kINFO : Severity::kWARNING,
            str(setting,
                happens_anyway ? ": nothing changes, because " : ": accepted, no effect, because ",
                reason));
    } catch (const std::bad_alloc&) {
        report.log(Severity::kWARNING, "a setting has no effect; there is no memory to say which");
    }
}

} // namespace ingot::api
