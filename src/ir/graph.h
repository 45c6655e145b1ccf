// SPDX-License-Identifier: Apache-2.0
// Graph: typed SSA. Nodes stand in an order in which every operand precedes its use.
#pragma once

#include "ir/op.h"

#include <deque>
#include <string>
#include <unordered_map>

namespace ingot {

struct Node {
    const OpDef* def = nullptr;
    std::shared_ptr<const void> attrs;
    Values inputs;
    Values outputs;
    std::string name; // where it came from: ONNX node names, for messages and profiles

    bool is(const OpDef& d) const { return def == &d; }
    /// The attributes, when the caller knows the op.
    template <class A>
    const A& as() const {
        return *static_cast<const A*>(attrs.get());
    }
};

/// Owns its nodes and values; append-only apart from outputs and names. To change a graph, a pass
/// builds a new one (ir/rewrite.h). Not thread safe while being built; const use is.
class Graph {
public:
    explicit Graph(std::string name = "main");

    /// An empty graph that draws fresh symbols from the same source: for bodies and rewrites.
    Graph sibling(std::string name) const;

    Value add_input(std::string name, Type type);
    /// Appends a node; infers the types of its results (a composite's from its expansion,
    /// memoised). `attrs` must be the op's attribute struct. Errors: what infer or expand throw.
    Values add(const OpDef& def, std::shared_ptr<const void> attrs, std::span<const Value> inputs);
    template <class A>
    Values add(const OpDef& def, A attrs, std::span<const Value> inputs) {
        return add(def, std::shared_ptr<const void>(std::make_shared<const A>(std::move(attrs))),
                   inputs);
    }
    template <class A>
    Value add1(const OpDef& def, A attrs, std::span<const Value> inputs) {
        return add(def, std::move(attrs), inputs)[0];
    }
    template <class A>
    Value add1(const OpDef& def, A attrs, std::initializer_list<Value> inputs) {
        return add1(def, std::move(attrs), std::span<const Value>(inputs.begin(), inputs.size()));
    }
    void add_output(std::string name, Value v);

    const std::string& name() const { return name_; }
    std::span<const Node> nodes() const { return nodes_; }
    const Values& inputs() const { return inputs_; }
    const Values& outputs() const { return outputs_; }
    const std::vector<std::string>& output_names() const { return output_names_; }

    const Type& type(Value v) const { return at(v).type; }
    /// The node that computes v, or null for graph inputs.
    const Node* producer(Value v) const;
    /// The index of v among its producer's results.
    int output_index(Value v) const { return at(v).index; }
    size_t value_count() const { return values_.size(); }
    bool is_input(Value v) const { return at(v).node < 0; }
    /// The name of an input, or of an ONNX tensor kept for inspection; may be empty.
    const std::string& value_name(Value v) const { return at(v).name; }
    void set_value_name(Value v, std::string name);
    /// Symbolic contents, when known; else null.
    HostRef host(Value v) const { return at(v).host; }
    /// Records contents that the caller knows (for shape inputs).
    void set_host(Value v, HostRef host);
    /// The constant tensor behind v when a constant node produces it, else null.
    const Tensor* constant(Value v) const;

    /// New nodes get this name until it changes.
    void set_origin(std::string name) { origin_ = std::move(name); }
    const std::string& origin() const { return origin_; }
    /// A symbol that is unused in this graph and its siblings: "?0", "?1", ...; signed ones begin
    /// with "~?".
    Dim fresh_symbol(bool is_signed = false);
    /// Makes fresh symbols start above those that this graph uses (after parsing or loading).
    void reserve_symbols();

private:
    struct ValueData {
        Type type;
        int64_t node = -1;
        int index = 0;
        std::string name;
        HostRef host;
    };
    const ValueData& at(Value v) const;
    std::vector<Type> infer(const OpDef& def, const std::shared_ptr<const void>& attrs,
                            std::span<const Value> inputs);

    std::string name_;
    std::string origin_;
    std::vector<Node> nodes_;
    std::deque<ValueData> values_; // references from type() stay valid while nodes are added
    Values inputs_;
    Values outputs_;
    std::vector<std::string> output_names_;
    std::shared_ptr<int64_t> next_symbol_;
    std::unordered_map<std::string, std::vector<Type>> inferred_; // composites, by key
};

/// A copy of `op`'s attributes after `visitor` has changed them.
std::shared_ptr<const void> with_visitor(const OpDef& def, const void* attrs, AttrVisitor& visitor);
/// Reads attributes with a visitor that changes nothing.
void visit_attrs(const OpDef& def, const void* attrs, AttrVisitor& visitor);
/// A visitor whose functions all do nothing: override the relevant ones.
struct NullVisitor : AttrVisitor {
    using AttrVisitor::field;
    void field(std::string_view, bool&) override {}
    void field(std::string_view, int64_t&) override {}
    void field(std::string_view, double&) override {}
    void field(std::string_view, std::string&) override {}
    void field(std::string_view, DType&) override {}
    void field(std::string_view, Dim&) override {}
    void field(std::string_view, std::vector<int64_t>&) override {}
    void field(std::string_view, std::vector<double>&) override {}
    void field(std::string_view, std::vector<std::string>&) override {}
    void field(std::string_view, Dims&) override {}
    void field(std::string_view, Expr&) override {}
    void field(std::string_view, Tensor&) override {}
    void field(std::string_view, GraphRef&) override {}
};
/// Text that is equal exactly when two attribute structs of one op are (tensors by content).
std::string attrs_key(const OpDef& def, const void* attrs);
/// Symbols that a node's attributes and result types mention.
void collect_symbols(const Graph& g, const Node& n, std::set<std::string, std::less<>>& out);

/// The op whose nodes hold constant tensors; its attributes begin with the tensor.
extern const OpDef constant_def;
struct Constant {
    Tensor value;
    static void fields(auto& s, auto&& f) { f("value", s.value); }
};

} // namespace ingot
