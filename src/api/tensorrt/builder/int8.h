// SPDX-License-Identifier: Apache-2.0
// INT8 for networks without quantisation layers: ranges from a calibrator, its cache, or the
// tensors, inserted into the graph as `ingot calibrate` does.
#pragma once

#include "api/tensorrt/builder/builder_config.h"
#include "api/tensorrt/network/network.h"

#include <functional>

namespace ingot::api {

/// Quantises the graph, whose values have the names of tensors; returns it unchanged where it
/// quantises already. Calls `batch_done` after each calibration batch. Errors: InvalidArgument when
/// no ranges are known and none are to be guessed, or the calibrator's answers are unusable; errors
/// of running the network.
Graph int8_graph(Graph g, const Network& network, const BuilderConfig& config,
                 const std::function<void()>& batch_done);

} // namespace ingot::api
