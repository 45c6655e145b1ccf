// SPDX-License-Identifier: Apache-2.0
// Imports one node of a model into a graph that somebody else builds: what a network whose layers
// are ONNX nodes is made of.
#pragma once

#include "onnx/importer.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot::onnx {

/// Appends a node's ops to g. `names` has the values, of g, of its inputs and of the names that its
/// bodies take from outside (read_names). Operators are those of the model's opset imports and
/// functions. Results are in the order of the node's outputs; those without a name may be invalid.
/// `index` stands for a missing name in messages. Errors: Unsupported or InvalidModel with the
/// reason (several, line by line, for bodies and functions); node and opset are in the trail.
Values import_node(const Model& model, ingot::Graph& g, const Node& node, size_t index,
                   std::unordered_map<std::string, Value> names);
/// Shows a node as importer functions see it; nothing is imported. `inputs` are values of g, in the
/// order of the node's inputs, invalid where one is left out. `look` must not ask for bodies.
void look_at_node(const Model& model, ingot::Graph& g, const Node& node, Values inputs,
                  const std::function<void(const NodeContext&)>& look);
/// The names that a node reads: its inputs, "" included, then those that its bodies take from
/// outside of them, in order of first mention.
std::vector<std::string> read_names(const Node& node);
/// The nodes of the main graph in the order in which they run.
std::vector<size_t> run_order(const Graph& graph);

/// An initializer as a tensor; shares its bytes where they are aligned. Errors: Unsupported.
ingot::Tensor initializer(const Tensor& t);
/// Gives the main graph's initializer of this name other bytes, which the caller keeps. Errors:
/// InvalidArgument for an unknown name and a wrong size.
void set_initializer(Model& model, std::string_view name, std::span<const std::byte> bytes);
/// The type of a graph input; sizes without a number are symbols. Errors: Unsupported.
Type graph_input_type(const ValueInfo& info);
/// The size of an input's dimension that is not a number: what its name stands for; a symbol of its
/// own where the name says nothing.
Dim open_size(std::string_view param, std::string_view input, size_t axis);
/// Whether a dimension's name only says that the size is open ("?", "None"): two of one such name
/// need not agree.
bool is_anonymous(std::string_view param);

} // namespace ingot::onnx
