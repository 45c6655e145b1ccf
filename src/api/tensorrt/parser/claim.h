// SPDX-License-Identifier: Apache-2.0
// Which nodes of a model Ingot takes, each judged by itself: what ingot::claimNodes() tells.
#pragma once

#include "ingot.h"
#include "onnx/model.h"

namespace ingot::api {

/// Imports each node of the main graph once, into a graph of its own, and tells the verdict. A
/// result of a node that is refused has the type that the model's value_info says; without one, the
/// nodes that read it are refused for that. Errors: InvalidModel for a model that is malformed as a
/// whole.
void claim_nodes(const onnx::Model& model, NodeVerdict verdict, void* user);

} // namespace ingot::api
