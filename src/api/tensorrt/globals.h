// SPDX-License-Identifier: Apache-2.0
// State of the whole process: the folder of compiled kernels.
#pragma once

#include "api/tensorrt/library.h"

#include <string>

namespace ingot::api {

/// The default of CompileOptions::runtime_cache, for contexts without an IRuntimeCache.
std::string cache_folder_option();

} // namespace ingot::api
