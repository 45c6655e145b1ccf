// SPDX-License-Identifier: Apache-2.0
// The plugins that come with the library.
#pragma once

#include "NvInfer.h"
#include "NvInferPluginUtils.h"

/// Registers the creators of the plugins that come with the library. Ingot has none: what other
/// products do by plugins, its layers do. Returns true.
/// \param logger an ILogger, or nullptr.
extern "C" TENSORRTAPI bool initLibNvInferPlugins(void* logger, const char* libNamespace);
