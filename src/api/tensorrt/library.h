// SPDX-License-Identifier: Apache-2.0
// What every library of the API tells of itself: its version, the process's first logger.
#pragma once

#include "NvInferRuntime.h"

namespace ingot::api {

/// Makes it what getLogger() gives unless there is one already; null is ignored.
void remember_logger(nvinfer1::ILogger* logger) noexcept;
/// Reports, and returns false, for a version of the headers that this library does not serve.
bool check_version(int32_t version, nvinfer1::ILogger* logger, const char* method) noexcept;
} // namespace ingot::api
