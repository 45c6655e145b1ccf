// SPDX-License-Identifier: Apache-2.0
// One run of the importer: scopes, opsets, refusals. Private to the importer core.
#pragma once

#include "onnx/importer.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ingot::onnx {

/// Names visible while one ONNX graph (or function body) is imported.
struct Scope {
    ingot::Graph* g = nullptr;
    Scope* parent = nullptr; // null for the main graph and for functions
    std::unordered_map<std::string, Value> names;
    std::unordered_set<std::string> poisoned; // results of refused nodes
    const OpsetImports* opsets = nullptr;
    // For bodies: captured outer values, in input order.
    std::vector<std::string> capture_names;
    Values captures; // values of parent->g
    int depth = 0;
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

private:
    enum class Lookup { Found, Poisoned, Missing };
    Lookup find(Scope& scope, const std::string& name, Value& out);
    void import_graph(Scope& scope, const Graph& source);
    void import_node(Scope& scope, const Node& node, size_t index);
    Values call(Scope& scope, const Node& node, Values inputs);
    Values call_function(Scope& scope, const FunctionProto& f, const Node& node,
                         const Values& inputs);
    const FunctionProto* find_function(const Node& node) const;
    void add_initializers(Scope& scope, const Graph& source);
    void name_outputs(Scope& scope, const Node& node, const Values& made);

    const Model& model_;
    const ImportOptions& options_;
    std::vector<Refusal> refusals_;
    Scope* current_ = nullptr;
};

/// A constant from the reader's tensor; shares the mapped bytes if they are aligned.
ingot::Tensor tensor_from(const Tensor& t);
/// An execution order: file order when valid, else a topological order. Errors: InvalidModel naming
/// the members of a cycle.
std::vector<size_t> node_order(const std::vector<Node>& nodes);
/// The type of a graph input. Errors: Unsupported.
Type input_type(const ValueInfo& info);
/// A dim_param as an expression over symbols when it parses as one ("past + 1"), else as a single
/// symbol.
Dim dim_from_param(std::string_view param);

} // namespace ingot::onnx
