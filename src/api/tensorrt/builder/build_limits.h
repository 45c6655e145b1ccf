// SPDX-License-Identifier: Apache-2.0
// Checks at build whether an engine can run under the configuration's memory limits.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "engine/engine.h"
#include "run/plugin.h"

namespace ingot::api {

/// Plans the engine for the available device and the largest shapes of each profile, and logs the
/// memory that the plan takes; on a GPU only where kWORKSPACE or kTACTIC_SHARED_MEMORY is limited.
/// Logs the tactics that the limits exclude. Errors: OutOfMemory naming layer, bytes needed and
/// limit where no tactic is left.
void check_limits(const std::shared_ptr<const Engine>& engine, const BuilderConfig& config,
                  const std::shared_ptr<plan::PluginHost>& plugins);

/// The compile options that follow from the limits and the arithmetic flags.
CompileOptions limited_options(const BuilderConfig& config);

} // namespace ingot::api
