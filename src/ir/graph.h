// SPDX-License-Identifier: Apache-2.0
// Graph: typed SSA. Nodes stand in an order in which every operand precedes its use.
#pragma once

#include "base/stable_vector.h"
#include "ir/op.h"

#include <atomic>
#include <string>
#include <unordered_map>
#include <utility>

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

/// Append-only apart from outputs and names. To change a graph, a pass builds a new one
/// (ir/rewrite.h). Copies share nodes and values until one of them is added to, so that a copy
/// costs little. Not thread safe while being built; const use is.
class Graph {
public:
    explicit Graph(std::string name = "main");

    /// An empty graph that draws fresh symbols from the same source: for bodies and rewrites.
    Graph sibling(std::string name) const;
    /// A sibling with the same inputs and none of the nodes; add_copy() gives it those.
    Graph without_nodes() const;
    /// Whether both share all nodes and values and have the same outputs: one is a copy of the
    /// other, or a rewrite that changed nothing. False says nothing.
    bool shares_all(const Graph& other) const;

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
    /// Appends node `n` of `from` over other operands. Where those have the types and contents that
    /// they have in `from`, nothing is inferred; where they are even the same values, and nothing
    /// else was added, both graphs share the node and the names of its results.
    Values add_copy(const Graph& from, const Node& n, std::shared_ptr<const void> attrs,
                    std::span<const Value> inputs);
    /// Where `n` follows this graph's last node in the store that `from` shares, appends it as it
    /// is: nothing is compared or copied. The caller has kept all nodes of `from` before it.
    bool share_next(const Graph& from, const Node& n);
    void add_output(std::string name, Value v);

    const std::string& name() const { return name_; }
    std::span<const Node> nodes() const {
        return store_ ? std::span<const Node>(store_->nodes.data(), node_count_)
                      : std::span<const Node>();
    }
    const Values& inputs() const { return inputs_; }
    const Values& outputs() const { return outputs_; }
    const std::vector<std::string>& output_names() const { return output_names_; }

    const Type& type(Value v) const { return *at(v).type; }
    /// The node that computes v, or null for graph inputs.
    const Node* producer(Value v) const;
    /// The index of v among its producer's results.
    int output_index(Value v) const { return at(v).index; }
    size_t value_count() const { return value_count_; }
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

    /// Whether all nodes were found to be of use (dead_code), and none was added since.
    bool is_live() const { return is_live_; }
    void set_live() { is_live_ = true; }

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
        std::shared_ptr<const Type> type; // often the operand's
        HostRef host;
        std::string name;
        int64_t node = -1;
        int index = 0;
    };
    struct Store {
        std::vector<Node> nodes;
        StableVector<ValueData> values; // references from type() stay valid while nodes are added
        std::unordered_map<std::string, std::vector<Type>> inferred; // composites, by key
        std::vector<Type> operands; // of the node that is being added; keeps its memory
        std::atomic<size_t> users{1};
    };
    /// Counts the graphs that share a store. (shared_ptr::use_count does not order what another
    /// thread read before it let go.)
    class StoreRef {
    public:
        StoreRef() = default;
        explicit StoreRef(Store* store) : store_(store) {}
        StoreRef(const StoreRef& o) : store_(o.store_) {
            if (store_ != nullptr) {
                store_->users.fetch_add(1, std::memory_order_relaxed);
            }
        }
        StoreRef(StoreRef&& o) noexcept : store_(std::exchange(o.store_, nullptr)) {}
        StoreRef& operator=(StoreRef o) noexcept {
            std::swap(store_, o.store_);
            return *this;
        }
        ~StoreRef() {
            if (store_ != nullptr && store_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                delete store_;
            }
        }
        bool is_only() const { return store_->users.load(std::memory_order_acquire) == 1; }
        explicit operator bool() const { return store_ != nullptr; }
        bool operator==(const StoreRef& o) const { return store_ == o.store_; }
        Store* operator->() const { return store_; }
        Store& operator*() const { return *store_; }

    private:
        Store* store_ = nullptr;
    };
    [[noreturn]] void fail_unknown(Value v) const;
    const ValueData& at(Value v) const {
        if (!store_ || v.id >= value_count_) {
            fail_unknown(v);
        }
        return store_->values[v.id];
    }
    bool is_next(const Graph& from, const Node& n, std::span<const Value> inputs) const;
    bool knows_as(const Graph& from, const Node& n, std::span<const Value> inputs) const;
    /// The store, which from now on is this graph's alone and holds no more than it has.
    Store& own();
    Values append(const OpDef& def, std::shared_ptr<const void> attrs,
                  std::span<const Value> inputs, std::span<ValueData> results);
    std::vector<Type> infer(const OpDef& def, const std::shared_ptr<const void>& attrs,
                            std::span<const Value> inputs);

    std::string name_;
    std::string origin_;
    StoreRef store_; // null after a move
    size_t node_count_ = 0;
    size_t value_count_ = 0;
    bool is_live_ = false;
    Values inputs_;
    Values outputs_;
    std::vector<std::string> output_names_;
    std::shared_ptr<int64_t> next_symbol_;
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
