// SPDX-License-Identifier: Apache-2.0
// Layers of the application, for whoever adds them to a network: the API, the parser.
#pragma once

#include "api/tensorrt/network/network.h"
#include "ops/plugin.h"

namespace ingot::api {

/// A layer of a plugin, which is cloned; the last inputs are shape inputs. `name` may be "".
/// Errors: InvalidArgument, Unsupported; the network is then as before.
nv::IPluginV3Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  size_t shape_inputs, nv::IPluginV3& plugin,
                                  const std::string& name);
nv::IPluginV2Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  nv::IPluginV2& plugin, const std::string& name);
/// A layer of a kernel given as text. Errors: as above.
nv::ILayer* append_source(Network& network, const std::vector<NetworkTensor*>& inputs,
                          SourceKernel source, const std::string& name);

} // namespace ingot::api
