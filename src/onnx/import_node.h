// SPDX-License-Identifier: Apache-2.0
// Imports one node of a model into an existing graph: for networks whose layers are ONNX nodes.
#pragma once

#include "onnx/importer.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot::onnx {

/// Appends a node's ops to g. `names` holds the values of its inputs and of the names that its
/// bodies capture (read_names). Operators are resolved by the model's opset imports and functions.
/// Results follow the order of the node's outputs; unnamed ones may be invalid. `index` replaces a
/// missing name in messages. Errors: Unsupported or InvalidModel with the reason (for bodies and
/// functions several, one per line); the trail has node and opset.
Values import_node(const Model& model, ingot::Graph& g, const Node& node, size_t index,
                   std::unordered_map<std::string, Value> names);
/// Calls `look` with the node as importer functions see it; imports nothing. `inputs` are values of
/// g in the order of the node's inputs, invalid where omitted. `look` must not access bodies.
void look_at_node(const Model& model, ingot::Graph& g, const Node& node, Values inputs,
                  const std::function<void(const NodeContext&)>& look);
/// The names that a node reads: its inputs, "" included, then those that its bodies capture, in
/// order of first mention.
std::vector<std::string> read_names(const Node& node);
/// The nodes of the main graph in execution order.
std::vector<size_t> run_order(const Graph& graph);

/// An initializer as a tensor; shares its bytes if they are aligned. Errors: Unsupported.
ingot::Tensor initializer(const Tensor& t);
/// Replaces the bytes of the main graph's initializer of this name; the caller keeps them alive.
/// Errors: InvalidArgument for an unknown name and a wrong size.
void set_initializer(Model& model, std::string_view name, std::span<const std::byte> bytes);
/// The type of a graph input; unknown sizes become symbols. Errors: Unsupported.
Type graph_input_type(const ValueInfo& info);
/// A non-constant size of an input's dimension: the expression in its name, or a new symbol when
/// the name is anonymous.
Dim open_size(std::string_view param, std::string_view input, size_t axis);
/// Whether a dimension's name carries no meaning ("?", "None"): equal anonymous names need not mean
/// equal sizes.
bool is_anonymous(std::string_view param);

} // namespace ingot::onnx
