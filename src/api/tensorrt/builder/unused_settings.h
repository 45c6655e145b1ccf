// SPDX-License-Identifier: Apache-2.0
// Settings of a build that are accepted and change nothing: each that was made is told, once a
// build, with the reason.
#pragma once

#include "api/tensorrt/builder/builder_config.h"

namespace ingot::api {

class Network;

/// "kSPARSE_WEIGHTS: accepted, no effect, because ..." at kWARNING for each that was made; "...:
/// nothing changes, because ..." at kINFO where it asks for what happens anyway.
void log_unused_settings(const BuilderConfig& config);
/// The same of the network's layers, each setting once.
void log_unused_settings(const Network& network, const BuilderConfig& config);

} // namespace ingot::api
