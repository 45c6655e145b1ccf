// SPDX-License-Identifier: Apache-2.0
// GraphWalk: the order in which the parts of an ONNX graph are visited, and the effect of a refused
// part on others. The importer makes ops from the parts, the API's parser layers of a network.
#pragma once

#include "onnx/importer.h"

#include <string>
#include <unordered_set>
#include <vector>

namespace ingot::onnx {

/// The result of looking up a name: found; the result of a refused part; unknown.
enum class Lookup { Found, Poisoned, Missing };

/// One graph, or the body of one function. A part that is refused poisons its results, and nodes
/// that read those are passed over: only the cause is reported.
class GraphWalk {
public:
    /// Keeps both.
    GraphWalk(const Model& model, const OpsetImports& opsets) : model_(model), opsets_(opsets) {}
    virtual ~GraphWalk() = default;
    GraphWalk(const GraphWalk&) = delete;
    GraphWalk& operator=(const GraphWalk&) = delete;

    void take_initializers(const Graph& source);
    /// Those that are no initializers, which have a fixed value.
    void take_inputs(const Graph& source);
    /// In execution order. Errors: InvalidModel naming the members of a cycle; those of
    /// check_node() and missing_input().
    void take_nodes(const std::vector<Node>& nodes);
    void take_node(const Node& node, size_t index);
    void take_outputs(const Graph& source);

    const OpsetImports& opsets() const { return opsets_; }
    int64_t opset(const Node& node) const;
    const FunctionProto* function(const Node& node) const;
    bool is_poisoned(const std::string& name) const { return poisoned_.contains(name); }
    void poison(const std::vector<std::string>& names) {
        poisoned_.insert(names.begin(), names.end());
    }

protected:
    virtual Lookup find(const std::string& name) = 0;
    /// The names that a node reads.
    virtual std::vector<std::string> read_by(const Node& node) const = 0;
    /// Beside importers and functions of the model.
    virtual bool knows(const Node& node) const;
    /// Errors that stop the walk.
    virtual void check_node(const Node&, size_t) {}

    // Adds parts. Errors thrown here refuse the part.
    virtual void add_initializer(const Tensor& t) = 0;
    virtual void add_input(const ValueInfo& info) = 0;
    virtual void add_node(const Node& node, size_t index) = 0;
    virtual void add_output(const ValueInfo& info) = 0;

    // Refusals, as opposed to defects of the model.
    virtual bool is_refusal(const Error& e) const = 0; // of a node; others are thrown on
    virtual void refused_initializer(const std::string& name, const Error& e) = 0;
    virtual void refused_input(const std::string& name, const Error& e) = 0;
    virtual void refused_node(const Node& node, size_t index, const Error& e) = 0;
    virtual void missing_input(const Node& node, size_t index, const std::string& reason) = 0;
    virtual void missing_output(const std::string& reason) = 0;

private:
    void refuse_node(const Node& node, size_t index, const Error& e);
    Error unknown(const Node& node) const;

    const Model& model_;
    const OpsetImports& opsets_;
    std::unordered_set<std::string> poisoned_;
};

bool is_default_domain(std::string_view domain);
/// The version of a domain; 0 where it is not imported.
int64_t opset_of(const OpsetImports& opsets, const std::string& domain);
/// "node 'conv1' (Conv, opset 17)".
std::string describe(const Node& node, size_t index, int64_t opset);
/// An execution order: file order when valid, else a topological order. Errors: InvalidModel naming
/// the members of a cycle.
std::vector<size_t> node_order(const std::vector<Node>& nodes);

} // namespace ingot::onnx
