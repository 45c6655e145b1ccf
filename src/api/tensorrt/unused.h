// SPDX-License-Identifier: Apache-2.0
// Settings that are accepted and change nothing say so.
#pragma once

#include "api/tensorrt/report.h"

namespace ingot::api {

/// "<setting>: accepted, no effect, because <reason>", a warning; where it asks for what happens
/// anyway "<setting>: nothing changes, because <reason>", at kINFO.
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
