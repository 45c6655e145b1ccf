// SPDX-License-Identifier: Apache-2.0
// INT8 in networks that do not quantise by themselves: ranges from a calibrator, its cache, or
// tensors that have them, placed in the graph as `ingot calibrate` does.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "api/tensorrt/network/network.h"

#include <functional>

namespace ingot::api {

/// The graph, whose values have the names of tensors, with int8 in it; the graph itself where it
/// quantises already. `batch_done` is called as calibration proceeds. Errors: InvalidArgument when
/// no ranges are known and none are to be guessed, or the calibrator's answers cannot be used; what
/// running the network throws.
Graph int8_graph(Graph g, const Network& network, const BuilderConfig& config,
                 const std::function<void()>& batch_done);

} // namespace ingot::api
