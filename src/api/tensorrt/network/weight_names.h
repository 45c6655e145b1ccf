// SPDX-License-Identifier: Apache-2.0
// Names of the weights of a network's layers: what a refit knows them by.
#pragma once

#include "api/tensorrt/network/layer.h"
#include "engine/weights.h"

namespace ingot::api {

class BuilderConfig;

/// The name that setWeightsName() gave, else "<layer>.<kernel, bias, shift, scale, power or
/// constant>". `what` is as messages call them: "the kernel weights".
std::string weights_name(const LayerBase& layer, const nv::Weights& w, std::string_view what);
/// What the flags of a configuration ask for; nullopt when no weights are to be refitted. Errors:
/// InvalidArgument for flags that do not go together.
std::optional<RefitRequest> refit_request(const Network& network, const BuilderConfig& config);

} // namespace ingot::api
