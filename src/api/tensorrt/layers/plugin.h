// SPDX-License-Identifier: Apache-2.0
// Adds layers of application code to a network, for the API and the parser.
#pragma once

#include "api/tensorrt/network/network.h"
#include "ops/plugin.h"

namespace ingot::api {

/// Adds a layer for a clone of the plugin; the last inputs are shape inputs. `name` may be "".
/// Errors: InvalidArgument, Unsupported; the network is then unchanged.
nv::IPluginV3Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  size_t shape_inputs, nv::IPluginV3& plugin,
                                  const std::string& name);
nv::IPluginV2Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  nv::IPluginV2& plugin, const std::string& name);
/// Adds a layer for a kernel in source text. Errors: as above.
nv::ILayer* append_source(Network& network, const std::vector<NetworkTensor*>& inputs,
                          SourceKernel source, const std::string& name);

} // namespace ingot::api
