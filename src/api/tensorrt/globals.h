// SPDX-License-Identifier: Apache-2.0
// What belongs to the process: the folder of compiled kernels.
#pragma once

#include "api/tensorrt/library.h"

#include <string>

namespace ingot::api {

/// CompileOptions::runtime_cache of contexts without an IRuntimeCache.
std::string cache_folder_option();

} // namespace ingot::api
