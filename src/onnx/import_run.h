// SPDX-License-Identifier: Apache-2.0
// One run of the importer: scopes, opsets, refusals. Private to the importer core.
#pragma once

#include "onnx/branches.h"
#include "onnx/graph_walk.h"

#include <memory>
#include <string>
#include <unordered_map>

namespace ingot::onnx {

/// One ONNX graph (or function body) while it is imported: the names visible there.
class Scope final : public GraphWalk {
public:
    /// The scope of the main graph or of a function.
    Scope(Import& run, const Model& model, const OpsetImports& opsets, ingot::Graph& graph)
        : GraphWalk(model, opsets), g(graph), run_(run) {}
    /// The scope of a body in `outer`.
    Scope(Import& run, const Model& model, Scope& outer, const Graph& source, ingot::Graph& graph)
        : GraphWalk(model, outer.opsets()), g(graph), depth(outer.depth + 1), run_(run),
          outer_(&outer), source_(&source) {}

    ingot::Graph& g;
    int depth = 0;
    bool waits = false; // RanksDiffer is no refusal yet
    std::unordered_map<std::string, Value> names;
    // For bodies: captured outer values, in input order.
    std::vector<std::string> capture_names;
    Values captures; // values of the outer scope's graph

    /// The value of a name; one of an outer scope is captured.
    Lookup find(const std::string& name, Value& out);

private:
    Lookup find(const std::string& name) override {
        Value v;
        return find(name, v);
    }
    std::vector<std::string> read_by(const Node& node) const override { return node.inputs; }
    void check_node(const Node& node, size_t index) override;
    void add_initializer(const Tensor& t) override;
    void add_input(const ValueInfo& info) override;
    void add_node(const Node& node, size_t index) override;
    void add_output(const ValueInfo& info) override;
    bool is_refusal(const Error& e) const override;
    void refused_initializer(const std::string& name, const Error& e) override;
    void refused_input(const std::string& name, const Error& e) override;
    void refused_node(const Node& node, size_t index, const Error& e) override;
    void missing_input(const Node& node, size_t index, const std::string& reason) override;
    void missing_output(const std::string& reason) override;
    void name_outputs(const Node& node, const Values& made);

    Import& run_;
    Scope* outer_ = nullptr; // null for the main graph and for functions
    const Graph* source_ = nullptr;
};

class Import {
public:
    Import(const Model& model, const ImportOptions& options) : model_(model), options_(options) {}

    ImportResult run();
    /// import_node.h
    Values single(ingot::Graph& g, const Node& node, size_t index,
                  std::unordered_map<std::string, Value> names);
    /// Builds a closed body from a graph attribute of a node in `scope`.
    struct OpenBody {
        std::shared_ptr<ingot::Graph> graph;
        std::vector<std::string> capture_names;
        Values captures;
    };
    OpenBody body(Scope& scope, const Graph& source, std::span<const Type> inputs,
                  const OpenBody* captured_first);
    Scope& current() { return *current_; }
    const ImportOptions& options() const { return options_; }
    /// The results of a node.
    Values call(Scope& scope, const Node& node);
    /// Ends the import when there are too many to be of use.
    void note(Refusal refusal);
    size_t refusal_count() const { return refusals_.size(); }
    /// Drops the refusals after the first `before`. Returns them as text.
    std::string take_refusals(size_t before);

private:
    void take_nodes(Scope& scope, const Graph& source);
    void take_node(Scope& scope, const Node& node, size_t index, bool waits);
    bool try_open_if(Scope& scope, OpenIf& open, const Graph& source,
                     std::span<const size_t> later);
    void refuse_open_if(Scope& scope, const OpenIf& open);
    Values call_function(Scope& scope, const FunctionProto& f, const Node& node,
                         const Values& inputs);

    const Model& model_;
    const ImportOptions& options_;
    std::vector<Refusal> refusals_;
    Scope* current_ = nullptr;
    size_t called_nodes_ = 0; // of functions, one for each call
};

/// A constant from the reader's tensor; shares the mapped bytes if they are aligned.
ingot::Tensor tensor_from(const Tensor& t);
/// The type of a graph input. Errors: Unsupported.
Type input_type(const ValueInfo& info);
/// A dim_param as an expression over symbols when it parses as one ("past + 1"), else as a single
/// symbol.
Dim dim_from_param(std::string_view param);

} // namespace ingot::onnx
