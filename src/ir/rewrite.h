// SPDX-License-Identifier: Apache-2.0
// Rewriting: a pass walks a graph in order and writes a new one, node by node. Graphs are never
// edited in place, so a rule sees its operands already rewritten. Up to the first change the new
// graph shares the nodes of the old one: a pass that finds nothing costs a walk.
#pragma once

#include "ir/graph.h"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace ingot {

using SymbolSet = std::set<std::string, std::less<>>;
using SymbolMap = std::map<std::string, Dim, std::less<>>;

// --- attributes ------------------------------------------------------------------------------

/// How to change each kind of attribute; an empty function leaves its kind alone.
struct AttrMap {
    std::function<Dim(const Dim&)> dim;
    std::function<DType(DType)> dtype;
    std::function<Expr(const Expr&)> expr;
    std::function<Tensor(const Tensor&)> tensor;
    std::function<GraphRef(const GraphRef&)> body; // never called with null
};
std::shared_ptr<const void> map_attrs(const OpDef& def, const void* attrs, const AttrMap& map);
/// The bodies of a node's attributes, in order of declaration.
std::vector<GraphRef> bodies(const Node& n);
/// Symbols that a node defines when it runs: those in its attributes `symbols` and `count`. The
/// first node that declares a symbol defines it; input types define theirs before all nodes.
SymbolSet declared_symbols(const Node& n);
/// Symbols of the types of a graph's inputs.
SymbolSet input_symbols(const Graph& g);

// --- rewriting ---------------------------------------------------------------------------------

/// A graph being rewritten: the new value of each old one, and the symbols replaced so far. Inputs,
/// value names, host values, origins, outputs and their names are kept.
class Rewriter {
public:
    explicit Rewriter(const Graph& from);

    const Graph& from() const { return from_; }
    Graph& out() { return out_; }
    /// The new value of an old one, which must have been written.
    Value mapped(Value old) const;
    Values mapped(std::span<const Value> old) const;
    bool is_mapped(Value old) const { return is_same_ ? old.id < known_ : map_[old.id].valid(); }
    /// Whether all nodes so far were kept: each value is the one that it was.
    bool is_same() const { return is_same_; }
    bool has_replaced_symbols() const { return !symbols_.empty(); }
    /// The node with operands and attributes as they are in the new graph; no results.
    Node current(const Node& n) const;
    /// Appends the node with its operands mapped, or with the given ones.
    Values copy(const Node& n);
    Values copy(const Node& n, std::span<const Value> in);
    /// copy() for free, where all nodes so far were kept and both graphs can share this one; its
    /// results are then those that it has. False: nothing was done.
    bool share(const Node& n);
    /// share() and replace() by itself.
    bool keep(const Node& n);
    /// Replaces the results of an old node. An invalid replacement requires that the result has no
    /// use. Errors: Internal when a type differs (apart from replaced symbols).
    void replace(const Node& n, std::span<const Value> by);
    /// From here on, writes the symbol as `by` in attributes and expected types. Call only while
    /// the node that defines it is being rewritten.
    void replace_symbol(std::string_view name, const Dim& by);
    Dim mapped(const Dim& d) const;
    Dims mapped(const Dims& d) const;
    Graph finish();

private:
    std::shared_ptr<const void> mapped_attrs(const Node& n) const;
    void carry(Value from, Value to);
    void know_results(const Node& n);
    void differ();

    const Graph& from_;
    Graph out_;
    bool is_same_ = true;
    size_t known_ = 0; // while it is the same: the number of values that are mapped, to themselves
    Values map_;       // from then on
    SymbolMap symbols_;
    const Node* shared_ = nullptr; // the last copy, when both graphs share it
};

/// Returns results in r.out() that replace the node, or nullopt to keep it. `in` holds the new
/// operands.
using Rule =
    std::function<std::optional<Values>(Rewriter& r, const Node& n, std::span<const Value> in)>;
/// Applies a rule to every node, in order. Bodies are left alone (see rewrite_bodies).
Graph rewrite(const Graph& g, const Rule& rule);
/// Replaces the bodies of the graph's nodes (of those `wanted`, where that is given) by f(body); f
/// is responsible for nested bodies.
Graph rewrite_bodies(const Graph& g, const std::function<Graph(const Graph&)>& f,
                     const std::function<bool(const Node&)>& wanted = nullptr);
/// Applies f to all bodies, innermost first, then to the graph itself.
Graph rewrite_all(const Graph& g, const std::function<Graph(const Graph&)>& f);

/// The graph without unused nodes. A node is live when a result is used or when it defines a symbol
/// that a live node mentions. Bodies are cleaned too; graph inputs stay.
Graph dead_code(const Graph& g);
/// Expands composites, recursively and in bodies too, except where `keep` returns true.
Graph expand_composites(const Graph& g, const std::function<bool(const Graph&, const Node&)>& keep);
/// Appends a copy of `body` to `out` with its inputs replaced by `args`; returns its results.
/// Symbols that the body defines are renamed; those of its input types become the arguments' sizes.
Values inline_graph(Graph& out, const Graph& body, std::span<const Value> args);
/// The graph with symbols replaced in all types and attributes (to specialise input sizes).
Graph substitute_symbols(const Graph& g, const SymbolMap& symbols);

// --- queries -------------------------------------------------------------------------------------

/// How often each value is an operand or a graph output; indexed by value id.
std::vector<uint32_t> use_counts(const Graph& g);
/// Nodes in the graph and in all bodies.
size_t count_nodes(const Graph& g);
/// f(graph, node) for every node of the graph and of all bodies, a node before its bodies.
void visit_nodes(const Graph& g, const std::function<void(const Graph&, const Node&)>& f);

} // namespace ingot
