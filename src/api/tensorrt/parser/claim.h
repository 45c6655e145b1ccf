// SPDX-License-Identifier: Apache-2.0
// ingot::claimNodes(): which nodes of a model Ingot takes, each judged by itself.
#pragma once

#include "ingot.h"
#include "onnx/model.h"

namespace ingot::api {

/// Imports each node of the main graph once, into a graph of its own, and reports the verdict. A
/// result of a refused node has the type of the model's value_info; without one, the nodes that
/// read it are refused too. Errors: InvalidModel for a malformed model.
void claim_nodes(const onnx::Model& model, NodeVerdict verdict, void* user);

} // namespace ingot::api
