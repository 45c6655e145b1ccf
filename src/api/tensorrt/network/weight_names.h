// SPDX-License-Identifier: Apache-2.0
// Names of the weights of a network's layers, by which a refit finds them.
#pragma once

#include "api/tensorrt/network/layer.h"
#include "engine/weights.h"

namespace ingot::api {

class BuilderConfig;

/// The name of setWeightsName(), else "<layer>.<kernel, bias, shift, scale, power or constant>".
/// `what` is the term of messages: "the kernel weights".
std::string weights_name(const LayerBase& layer, const nv::Weights& w, std::string_view what);
/// The refit request of the configuration's flags; nullopt when no weights are refittable. Errors:
/// InvalidArgument for conflicting flags.
std::optional<RefitRequest> refit_request(const Network& network, const BuilderConfig& config);

} // namespace ingot::api
