// SPDX-License-Identifier: Apache-2.0
// Names of tensors in ONNX graphs: captures of bodies, renaming, uniqueness.
#pragma once

#include "onnx/model.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace ingot::slim {

/// All tensor names of a model; generates fresh ones.
class Names {
public:
    explicit Names(const onnx::Model& model);
    /// `stem`, `stem_1`, `stem_2`, ...: the first unused one.
    std::string fresh(const std::string& stem);

private:
    std::unordered_set<std::string> all_;
};

/// Calls f(Graph&) for each body of a node (attributes of type graph and graphs).
void each_body(onnx::Node& node, const std::function<void(onnx::Graph&)>& f);
void each_body(const onnx::Node& node, const std::function<void(const onnx::Graph&)>& f);
bool has_body(const onnx::Node& node);

/// Names that the node's bodies use and do not define, each once, in order of first use.
std::vector<std::string> captures(const onnx::Node& node);
/// Replaces a captured name in the node's bodies.
void rename_captures(onnx::Node& node, const std::string& from, const std::string& to);
/// Reads `to` wherever the graph's nodes, bodies and outputs read `from`.
void rename_uses(onnx::Graph& graph, const std::string& from, const std::string& to);

/// A copy that shares the weights but no body.
onnx::Model deep_copy(const onnx::Model& model);
/// Renames definitions in bodies so that no name is defined twice in the model: values can then
/// move between graphs. Names of the main graph stay.
void make_names_unique(onnx::Model& model);
/// Sorts the nodes topologically; a valid order is kept.
void sort_nodes(std::vector<onnx::Node>& nodes);

} // namespace ingot::slim
