// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include "base/error.h"
#include "base/hash.h"
#include "ir/infer.h"
#include "ir/value_reads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace ingot {

Graph::Graph(std::string name)
    : name_(std::move(name)), store_(new Store), next_symbol_(std::make_shared<int64_t>(0)) {}

Graph Graph::sibling(std::string name) const {
    Graph g(std::move(name));
    g.next_symbol_ = next_symbol_;
    return g;
}

void Graph::fail_unknown(Value v) const {
    CHECK(false, "value ", v.id, " is not one of graph '", name_, "'");
    std::abort();
}

Graph::Store& Graph::own() {
    if (!store_) {
        store_ = StoreRef(new Store);
        node_count_ = value_count_ = 0;
        return *store_;
    }
    Store& s = *store_;
    auto nodes_end = s.nodes.begin() + static_cast<int64_t>(node_count_);
    if (store_.is_only()) {
        s.nodes.erase(nodes_end, s.nodes.end());
        s.values.resize_down(value_count_);
        return s;
    }
    StoreRef copy(new Store);
    copy->nodes.reserve(s.nodes.size());
    copy->nodes.assign(s.nodes.begin(), nodes_end);
    for (size_t i = 0; i < value_count_; ++i) {
        copy->values.push_back(s.values[i]);
    }
    store_ = std::move(copy);
    return *store_;
}

Value Graph::add_input(std::string name, Type type) {
    check_size("an input", type);
    ValueData d;
    d.type = std::make_shared<const Type>(std::move(type));
    d.index = static_cast<int>(inputs_.size());
    d.name = std::move(name);
    own().values.push_back(std::move(d));
    Value v{static_cast<uint32_t>(value_count_++)};
    inputs_.push_back(v);
    return v;
}

std::vector<Type> Graph::infer(const OpDef& def, const std::shared_ptr<const void>& attrs,
                               std::span<const Value> inputs) {
    Store& s = own();
    s.operands.resize(std::max(s.operands.size(), inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
        s.operands[i] = type(inputs[i]);
    }
    return infer_types(def, attrs.get(), std::span(s.operands).first(inputs.size()), s.inferred);
}

Values Graph::add(const OpDef& def, std::shared_ptr<const void> attrs,
                  std::span<const Value> inputs) {
    std::vector<Type> types = infer(def, attrs, inputs);
    std::vector<HostRef> host;
    if (def.host != nullptr) {
        std::vector<HostRef> in;
        in.reserve(inputs.size());
        for (Value v : inputs) {
            in.push_back(this->host(v));
        }
        host = def.host(attrs.get(), in, types);
        for (const HostRef& h : host) {
            CHECK(h == nullptr || static_cast<int64_t>(h->elements.size()) == count_of(h->shape),
                  def.name, ": ", h->elements.size(), " symbolic elements of shape ", h->shape);
        }
    }
    std::vector<ValueData> results(types.size());
    for (size_t i = 0; i < types.size(); ++i) {
        auto same = std::find_if(inputs.begin(), inputs.end(),
                                 [&](Value v) { return type(v) == types[i]; });
        results[i].type = same != inputs.end() ? at(*same).type
                                               : std::make_shared<const Type>(std::move(types[i]));
        results[i].host = i < host.size() ? host[i] : nullptr;
    }
    return append(def, std::move(attrs), inputs, results);
}

Values Graph::append(const OpDef& def, std::shared_ptr<const void> attrs,
                     std::span<const Value> inputs, std::span<ValueData> results) {
    Node n;
    n.def = &def;
    n.attrs = std::move(attrs);
    n.inputs.assign(inputs.begin(), inputs.end());
    n.name = origin_;
    n.outputs.reserve(results.size());
    Store& s = own();
    for (size_t i = 0; i < results.size(); ++i) {
        results[i].node = static_cast<int64_t>(node_count_);
        results[i].index = static_cast<int>(i);
        s.values.push_back(std::move(results[i]));
        n.outputs.push_back(Value{static_cast<uint32_t>(value_count_++)});
    }
    s.nodes.push_back(std::move(n));
    ++node_count_;
    is_live_ = false;
    return s.nodes.back().outputs;
}

Graph Graph::without_nodes() const {
    Graph out = sibling(name_);
    bool lead = true;
    for (size_t i = 0; i < inputs_.size(); ++i) {
        lead = lead && inputs_[i].id == i;
    }
    if (lead && store_) {
        out.store_ = store_;
        out.inputs_ = inputs_;
        out.value_count_ = inputs_.size();
        return out;
    }
    for (Value v : inputs_) {
        out.set_host(out.add_input(value_name(v), type(v)), host(v));
    }
    return out;
}

bool Graph::shares_all(const Graph& other) const {
    return store_ == other.store_ && node_count_ == other.node_count_ &&
           value_count_ == other.value_count_ && inputs_ == other.inputs_ &&
           outputs_ == other.outputs_ && output_names_ == other.output_names_ &&
           name_ == other.name_;
}

bool Graph::share_next(const Graph& from, const Node& n) {
    if (!(store_ == from.store_) || node_count_ >= from.node_count_ ||
        &n != &store_->nodes[node_count_] ||
        (!n.outputs.empty() && n.outputs[0].id != value_count_)) {
        return false;
    }
    ++node_count_;
    value_count_ += n.outputs.size();
    is_live_ = false;
    return true;
}

/// Whether the node follows the last one in the store that both share.
bool Graph::is_next(const Graph& from, const Node& n, std::span<const Value> inputs) const {
    return store_ == from.store_ && node_count_ < from.node_count_ &&
           &n == &store_->nodes[node_count_] && n.name == origin_ &&
           std::equal(inputs.begin(), inputs.end(), n.inputs.begin(), n.inputs.end()) &&
           (n.outputs.empty() || n.outputs[0].id == value_count_);
}

/// Whether the operands have the types and contents of the node's own.
bool Graph::knows_as(const Graph& from, const Node& n, std::span<const Value> inputs) const {
    return std::equal(inputs.begin(), inputs.end(), n.inputs.begin(), n.inputs.end(),
                      [&](Value here, Value there) {
                          const ValueData& a = at(here);
                          const ValueData& b = from.at(there);
                          return (a.type == b.type || *a.type == *b.type) &&
                                 (a.host == b.host || n.def->host == nullptr);
                      });
}

Values Graph::add_copy(const Graph& from, const Node& n, std::shared_ptr<const void> attrs,
                       std::span<const Value> inputs) {
    if (attrs != n.attrs || !knows_as(from, n, inputs)) {
        return add(*n.def, std::move(attrs), inputs);
    }
    if (is_next(from, n, inputs)) {
        share_next(from, n);
        return n.outputs;
    }
    std::vector<ValueData> results;
    results.reserve(n.outputs.size());
    for (Value v : n.outputs) {
        const ValueData& old = from.at(v);
        results.push_back({old.type, old.host, {}, -1, 0});
    }
    return append(*n.def, std::move(attrs), inputs, results);
}

void Graph::add_output(std::string name, Value v) {
    CHECK(v.id < value_count_, "output '", name, "' is not a value of graph '", name_, "'");
    outputs_.push_back(v);
    output_names_.push_back(std::move(name));
}

const Node* Graph::producer(Value v) const {
    int64_t n = at(v).node;
    return n < 0 ? nullptr : &store_->nodes[static_cast<size_t>(n)];
}

void Graph::set_value_name(Value v, std::string name) {
    if (at(v).name != name) {
        own().values[v.id].name = std::move(name);
    }
}

void Graph::set_host(Value v, HostRef host) {
    const ValueData& now = at(v);
    if (host == now.host || (is_input(v) && (now.type->rank() > 1 || is_float(now.type->dtype)))) {
        return; // the text and binary forms keep contents of inputs as lists of sizes
    }
    own().values[v.id].host = std::move(host);
}

const Tensor* Graph::constant(Value v) const {
    const Node* n = producer(v);
    if (n == nullptr || !n->is(constant_def)) {
        return nullptr;
    }
    ValueReads::note(*this, v);
    return &n->as<Constant>().value;
}

Dim Graph::fresh_symbol(bool is_signed) {
    return Dim::symbol(str(is_signed ? "~?" : "?", (*next_symbol_)++));
}

namespace {

// Collects symbols of attributes, bodies included.
struct SymbolCollector : NullVisitor {
    using NullVisitor::field;
    std::set<std::string, std::less<>>& out;
    explicit SymbolCollector(std::set<std::string, std::less<>>& o) : out(o) {}
    void field(std::string_view, Dim& v) override { v.collect_symbols(out); }
    void field(std::string_view, Dims& v) override {
        for (const Dim& d : v) {
            d.collect_symbols(out);
        }
    }
    void field(std::string_view, GraphRef& v) override {
        if (v == nullptr) {
            return;
        }
        for (const Node& n : v->nodes()) {
            collect_symbols(*v, n, out);
        }
    }
};

// Prints every field in an unambiguous form.
struct KeyPrinter : AttrVisitor {
    std::string out;
    template <class T>
    void put(std::string_view name, const T& v) {
        append(out, str(name, "=", v, ";"));
    }
    void field(std::string_view n, bool& v) override { put(n, v); }
    void field(std::string_view n, int64_t& v) override { put(n, v); }
    void field(std::string_view n, double& v) override { put(n, v); }
    void field(std::string_view n, std::string& v) override { put(n, quote(v)); }
    void field(std::string_view n, DType& v) override { put(n, v); }
    void field(std::string_view n, Dim& v) override { put(n, v); }
    void field(std::string_view n, std::vector<int64_t>& v) override { put(n, v); }
    void field(std::string_view n, std::vector<double>& v) override { put(n, v); }
    void field(std::string_view n, std::vector<std::string>& v) override {
        for (const std::string& s : v) {
            put(n, quote(s));
        }
        put(n, v.size());
    }
    void field(std::string_view n, Dims& v) override { put(n, v); }
    void field(std::string_view n, Expr& v) override { put(n, v); }
    void field(std::string_view n, Tensor& v) override {
        put(n, v.type());
        put(n, xxh3_128(v.bytes()));
    }
    void field(std::string_view n, GraphRef& v) override {
        if (v == nullptr) {
            return put(n, "none");
        }
        put(n, v->name());
        for (Value i : v->inputs()) {
            put("in", v->type(i));
        }
        for (const Node& node : v->nodes()) {
            put(node.def->name, attrs_key(*node.def, node.attrs.get()));
            for (Value i : node.inputs) {
                put("", i.id);
            }
        }
        for (Value o : v->outputs()) {
            put("out", o.id);
        }
    }
};

} // namespace

void Graph::reserve_symbols() {
    std::set<std::string, std::less<>> names;
    for (Value v : inputs_) {
        for (const Dim& d : type(v).dims) {
            d.collect_symbols(names);
        }
    }
    for (const Node& n : nodes()) {
        collect_symbols(*this, n, names);
    }
    for (const std::string& name : names) {
        std::string_view digits = name;
        if (digits.starts_with('~')) {
            digits.remove_prefix(1);
        }
        int64_t index = 0;
        if (digits.starts_with('?') &&
            std::from_chars(digits.data() + 1, digits.data() + digits.size(), index).ec ==
                std::errc() &&
            index < INT64_MAX) {
            *next_symbol_ = std::max(*next_symbol_, index + 1);
        }
    }
}

std::shared_ptr<const void> with_visitor(const OpDef& def, const void* attrs,
                                         AttrVisitor& visitor) {
    std::shared_ptr<void> copy = def.copy(attrs);
    def.visit(copy.get(), visitor);
    return copy;
}

void visit_attrs(const OpDef& def, const void* attrs, AttrVisitor& visitor) {
    def.visit(const_cast<void*>(attrs), visitor);
}

std::string attrs_key(const OpDef& def, const void* attrs) {
    KeyPrinter p;
    visit_attrs(def, attrs, p);
    return std::move(p.out);
}

void collect_symbols(const Graph& g, const Node& n, std::set<std::string, std::less<>>& out) {
    SymbolCollector c(out);
    visit_attrs(*n.def, n.attrs.get(), c);
    for (Value v : n.outputs) {
        for (const Dim& d : g.type(v).dims) {
            d.collect_symbols(out);
        }
    }
}

std::optional<Dims> HostValue::dims() const {
    Dims out;
    for (const auto& e : elements) {
        if (!e || e->denominator != 1) {
            return std::nullopt;
        }
        out.push_back(e->numerator);
    }
    return out;
}

} // namespace ingot
