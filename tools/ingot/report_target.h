// SPDX-License-Identifier: Apache-2.0
// The device and shapes for which inspect and report describe an engine.
#pragma once

#include "api/options.h"
#include "workflow/report/kernel_report.h"

#include <optional>

namespace ingot::tool {

/// Reads --for: 0 for the CPU, else a GPU's compute capability; nullopt without --for. Errors:
/// InvalidArgument.
std::optional<int> target_capability(const Options& o);
/// The shapes of --shapes; else the opt shapes of the profile. Errors: InvalidArgument.
std::vector<Shape> input_shapes(const Options& o, const Engine& engine);
/// Without --for, the GPU at hand, else the CPU; a GPU that is here is always timed, the CPU where
/// `time` says so. Errors: InvalidArgument for `time` of a GPU that is not here.
ReportRequest report_request(const Options& o, const Engine& engine, bool time);

} // namespace ingot::tool
