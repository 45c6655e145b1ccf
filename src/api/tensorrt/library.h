// SPDX-License-Identifier: Apache-2.0
// The parts that every library of the API has: its version, the process's first logger.
#pragma once

#include "NvInferRuntime.h"

namespace ingot::api {

/// Becomes the result of getLogger() unless one is set; null is ignored.
void remember_logger(nvinfer1::ILogger* logger) noexcept;
/// Reports, and returns false for, an unsupported version of the headers.
bool check_version(int32_t version, nvinfer1::ILogger* logger, const char* method) noexcept;
} // namespace ingot::api
