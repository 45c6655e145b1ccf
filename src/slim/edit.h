// SPDX-License-Identifier: Apache-2.0
// GraphEdit: one ONNX graph while rules change it. Tracks the producer and the readers of each
// tensor, in bodies too, through every change.
#pragma once

#include "onnx/model.h"
#include "slim/names.h"

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ingot::slim {

/// Moves the nodes out of the graph; finish() moves them back. The contents behind a tensor's name
/// never change: a fused node takes the name of the last result.
class GraphEdit {
public:
    /// `outer` is the graph that contains a body, for its constants; null for the main graph.
    GraphEdit(onnx::Graph& graph, const GraphEdit* outer, Names& names);
    GraphEdit(const GraphEdit&) = delete;
    GraphEdit& operator=(const GraphEdit&) = delete;

    // Nodes are numbered; erased ones keep their number, appended ones get the next.
    size_t size() const { return nodes_.size(); }
    bool alive(size_t i) const { return alive_[i]; }
    const onnx::Node& node(size_t i) const { return nodes_[i]; }
    /// The node that computes a tensor; nullopt for inputs, constants and captures.
    std::optional<size_t> producer(const std::string& name) const;
    /// The nodes that read a tensor, once per operand; reads in a body count for the node that owns
    /// it.
    const std::vector<size_t>& readers(const std::string& name) const;
    /// Is it a graph output (or named by a quantisation annotation), so that its name must stay?
    bool is_output(const std::string& name) const { return outputs_.contains(name); }
    bool is_input(const std::string& name) const { return inputs_.contains(name); }
    bool is_used(const std::string& name) const;
    /// Whether exactly one operand reads it and it is not an output.
    bool used_once(const std::string& name) const;

    /// The initializer of that name in this graph or an outer one, or the value of a Constant node.
    /// Valid until the next change.
    const onnx::Tensor* constant(const std::string& name) const;
    const std::vector<onnx::Tensor>& constants() const { return graph_.initializers; }
    /// Adds an initializer named `stem`, with a suffix if taken; returns the name.
    std::string add_constant(onnx::Tensor t, const std::string& stem);
    /// Adds an initializer under its own name, which is no longer used in the model.
    void adopt_constant(onnx::Tensor t);

    /// Calls f(Graph&) for each body of node i; f may change it.
    void edit_bodies(size_t i, const std::function<void(onnx::Graph&)>& f);
    void update(size_t i, onnx::Node node);
    size_t append(onnx::Node node);
    void erase(size_t i);
    /// Erases node i, whose result `gone` equals `kept`, and redirects all readers to `kept`.
    /// Returns false and changes nothing when another result of i is used, or when `gone` must keep
    /// its name and `kept` cannot take it.
    bool bypass(size_t i, const std::string& gone, const std::string& kept);
    /// Redirects all readers of `gone` to `kept`, an equal tensor; outputs keep their names.
    void redirect(const std::string& gone, const std::string& kept);
    /// Turns the result `name` of a node into a constant: an initializer, or a Constant node for a
    /// graph output. Returns false when it already is one.
    bool make_constant(const std::string& name, onnx::Tensor t);
    void drop_constant(const std::string& name);
    std::string fresh_name(const std::string& stem) { return names_.fresh(stem); }

    onnx::Graph& graph() { return graph_; }
    const onnx::Graph& graph() const { return graph_; }
    /// Sorts the nodes and moves them back into the graph.
    void finish();

private:
    void link(size_t i);
    void unlink(size_t i);
    bool is_defined_here(const std::string& name) const;

    onnx::Graph& graph_;
    const GraphEdit* outer_;
    Names& names_;
    std::vector<onnx::Node> nodes_;
    std::vector<bool> alive_;
    std::unordered_map<std::string, size_t> producers_;
    std::unordered_map<std::string, std::vector<size_t>> readers_;
    std::unordered_map<std::string, size_t> constants_; // index into graph_.initializers
    std::unordered_set<std::string> inputs_;
    std::unordered_set<std::string> outputs_;
};

} // namespace ingot::slim
