// SPDX-License-Identifier: Apache-2.0
// What belongs to the process: the first logger, the folder of compiled kernels.
#pragma once

#include "NvInferRuntime.h"

#include <string>

namespace ingot::api {

/// Makes it what getLogger() gives unless there is one already; null is ignored.
void remember_logger(nvinfer1::ILogger* logger) noexcept;
/// Reports, and returns false, for a version of the headers that this library does not serve.
bool check_version(int32_t version, nvinfer1::ILogger* logger, const char* method) noexcept;
/// CompileOptions::runtime_cache of contexts without an IRuntimeCache.
std::string cache_folder_option();

} // namespace ingot::api
