// SPDX-License-Identifier: Apache-2.0
// Checks at build whether an engine can run under the configuration's memory limits.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "engine/engine.h"
#include "run/plugin.h"

namespace ingot::api {

/// Plans the engine for the device at hand and the largest shapes of each profile, and logs what
/// memory that takes; on a GPU only where kWORKSPACE or kTACTIC_SHARED_MEMORY is limited. What the
/// limits rule out is logged too. Errors: OutOfMemory naming layer, bytes needed and limit where
/// nothing is left.
void check_limits(const std::shared_ptr<const Engine>& engine, const BuilderConfig& config,
                  const std::shared_ptr<plan::PluginHost>& plugins);

/// The options that the limits, and flags of arithmetic, stand for.
CompileOptions limited_options(const BuilderConfig& config);

} // namespace ingot::api
