// SPDX-License-Identifier: Apache-2.0
// Build settings that are accepted and change nothing: each build logs those that were set, with
// the reason.
#pragma once

#include "api/tensorrt/builder/builder_config.h"

namespace ingot::api {

class Network;

/// Logs "kSPARSE_WEIGHTS: accepted, no effect, because ..." at kWARNING for each setting; "...:
/// nothing changes, because ..." at kINFO for behaviour that is always on.
void log_unused_settings(const BuilderConfig& config);
/// The same for settings of the network's layers, each setting once.
void log_unused_settings(const Network& network, const BuilderConfig& config);

} // namespace ingot::api
