// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite.h"

#include "base/error.h"
#include "base/interrupt.h"

#include <algorithm>

namespace ingot {

namespace {

// Applies an AttrMap to every field.
struct MappingVisitor : NullVisitor {
    using NullVisitor::field;
    const AttrMap& map;
    explicit MappingVisitor(const AttrMap& m) : map(m) {}
    void field(std::string_view, DType& v) override {
        if (map.dtype) {
            v = map.dtype(v);
        }
    }
    void field(std::string_view, Dim& v) override {
        if (map.dim) {
            v = map.dim(v);
        }
    }
    void field(std::string_view, Dims& v) override {
        if (map.dim) {
            for (Dim& d : v) {
                d = map.dim(d);
            }
        }
    }
    void field(std::string_view, Expr& v) override {
        if (map.expr) {
            v = map.expr(v);
        }
    }
    void field(std::string_view, Tensor& v) override {
        if (map.tensor && v.defined()) {
            v = map.tensor(v);
        }
    }
    void field(std::string_view, GraphRef& v) override {
        if (map.body && v != nullptr) {
            v = map.body(v);
        }
    }
};

struct BodyCollector : NullVisitor {
    using NullVisitor::field;
    std::vector<GraphRef> out;
    void field(std::string_view, GraphRef& v) override {
        if (v != nullptr) {
            out.push_back(v);
        }
    }
};

// By convention, ops declare symbols in fields of these two names.
struct DeclarationCollector : NullVisitor {
    using NullVisitor::field;
    SymbolSet out;
    void take(const Dim& d) {
        if (!d.symbol_name().empty()) {
            out.emplace(d.symbol_name());
        }
    }
    void field(std::string_view n, Dim& v) override {
        if (n == "count") {
            take(v);
        }
    }
    void field(std::string_view n, Dims& v) override {
        if (n == "symbols") {
            for (const Dim& d : v) {
                take(d);
            }
        }
    }
};

Dim substitute(const Dim& d, const SymbolMap& symbols) {
    if (d.is_const() || symbols.empty()) {
        return d;
    }
    return d.substitute([&symbols](std::string_view name) -> std::optional<Dim> {
        auto at = symbols.find(name);
        return at == symbols.end() ? std::nullopt : std::optional(at->second);
    });
}

Dims substitute(const Dims& dims, const SymbolMap& symbols) {
    Dims out;
    out.reserve(dims.size());
    for (const Dim& d : dims) {
        out.push_back(substitute(d, symbols));
    }
    return out;
}

HostRef substitute(const HostRef& host, const SymbolMap& symbols) {
    if (host == nullptr || symbols.empty()) {
        return host;
    }
    auto copy = std::make_shared<HostValue>(*host);
    for (auto& e : copy->elements) {
        if (e) {
            e->numerator = substitute(e->numerator, symbols);
        }
    }
    return copy;
}

std::shared_ptr<const void> substitute(const Node& n, const SymbolMap& symbols) {
    if (symbols.empty()) {
        return n.attrs;
    }
    AttrMap map;
    map.dim = [&](const Dim& d) { return substitute(d, symbols); };
    map.body = [&](const GraphRef& b) {
        return std::make_shared<const Graph>(substitute_symbols(*b, symbols));
    };
    return map_attrs(*n.def, n.attrs.get(), map);
}

bool has_bodies(const Graph& g) {
    for (const Node& n : g.nodes()) {
        if (n.def->has_bodies && !bodies(n).empty()) {
            return true;
        }
    }
    return false;
}

} // namespace

std::shared_ptr<const void> map_attrs(const OpDef& def, const void* attrs, const AttrMap& map) {
    MappingVisitor v(map);
    return with_visitor(def, attrs, v);
}

std::vector<GraphRef> bodies(const Node& n) {
    if (!n.def->has_bodies) {
        return {};
    }
    BodyCollector c;
    visit_attrs(*n.def, n.attrs.get(), c);
    return std::move(c.out);
}

SymbolSet declared_symbols(const Node& n) {
    if (!n.def->declares_symbols) {
        return {};
    }
    DeclarationCollector c;
    visit_attrs(*n.def, n.attrs.get(), c);
    return std::move(c.out);
}

SymbolSet input_symbols(const Graph& g) {
    SymbolSet out;
    for (Value v : g.inputs()) {
        for (const Dim& d : g.type(v).dims) {
            d.collect_symbols(out);
        }
    }
    return out;
}

Rewriter::Rewriter(const Graph& from)
    : from_(from), out_(from.without_nodes()), known_(from.inputs().size()) {
    if (from.inputs() != out_.inputs()) {
        is_same_ = false;
        map_.resize(from.value_count());
        for (size_t i = 0; i < from.inputs().size(); ++i) {
            map_[from.inputs()[i].id] = out_.inputs()[i];
        }
    }
}

/// From here on, values may be others than before.
void Rewriter::differ() {
    is_same_ = false;
    map_.resize(from_.value_count());
    for (size_t i = 0; i < known_; ++i) {
        map_[i] = Value{static_cast<uint32_t>(i)};
    }
}

void Rewriter::know_results(const Node& n) {
    known_ = n.outputs.empty() ? known_ : n.outputs.back().id + size_t{1};
}

Value Rewriter::mapped(Value old) const {
    CHECK(old.id < from_.value_count() && is_mapped(old), "value ", old.id, " of graph '",
          from_.name(), "' has not been rewritten");
    return is_same_ ? old : map_[old.id];
}

Values Rewriter::mapped(std::span<const Value> old) const {
    Values out;
    out.reserve(old.size());
    for (Value v : old) {
        out.push_back(mapped(v));
    }
    return out;
}

Dim Rewriter::mapped(const Dim& d) const {
    return substitute(d, symbols_);
}

Dims Rewriter::mapped(const Dims& d) const {
    return substitute(d, symbols_);
}

std::shared_ptr<const void> Rewriter::mapped_attrs(const Node& n) const {
    return substitute(n, symbols_);
}

Node Rewriter::current(const Node& n) const {
    return {n.def, mapped_attrs(n), mapped(n.inputs), {}, n.name};
}

Values Rewriter::copy(const Node& n) {
    return copy(n, mapped(n.inputs));
}

bool Rewriter::share(const Node& n) {
    if (!is_same_ || !out_.share_next(from_, n)) {
        return false;
    }
    shared_ = &n;
    return true;
}

bool Rewriter::keep(const Node& n) {
    if (!share(n)) {
        return false;
    }
    check_interrupt(); // most passes do nothing else over all nodes
    know_results(n);
    return true;
}

Values Rewriter::copy(const Node& n, std::span<const Value> in) {
    out_.set_origin(n.name); // of what callers add too
    if (std::equal(in.begin(), in.end(), n.inputs.begin(), n.inputs.end()) && share(n)) {
        return n.outputs;
    }
    Values made = out_.add_copy(from_, n, mapped_attrs(n), in);
    shared_ = !made.empty() && out_.producer(made[0]) == &n ? &n : nullptr;
    return made;
}

void Rewriter::carry(Value from, Value to) {
    const std::string& name = from_.value_name(from);
    if (!name.empty() && out_.value_name(to).empty()) {
        out_.set_value_name(to, name);
    }
    if (!out_.is_input(to) && out_.host(to) == nullptr && from_.host(from) != nullptr) {
        out_.set_host(to, substitute(from_.host(from), symbols_));
    }
}

void Rewriter::replace(const Node& n, std::span<const Value> by) {
    check_interrupt();
    if (is_same_ && shared_ == &n &&
        std::equal(by.begin(), by.end(), n.outputs.begin(), n.outputs.end())) {
        know_results(n);
        return;
    }
    if (is_same_) {
        differ();
    }
    CHECK(by.size() == n.outputs.size(), "node '", n.name, "' (", n.def->name, ") has ",
          n.outputs.size(), " results, replaced by ", by.size());
    for (size_t i = 0; i < by.size(); ++i) {
        if (shared_ == &n && by[i] != n.outputs[i]) {
            out_.set_value_name(n.outputs[i], {}); // the replacement gets it
        }
        if (!by[i].valid()) {
            continue;
        }
        const Type& old = from_.type(n.outputs[i]);
        const Type& now = out_.type(by[i]);
        const bool as_before = symbols_.empty();
        bool is_kept = as_before && &old == &now;
        if (!is_kept && (old.dtype != now.dtype ||
                         !(as_before ? old.dims == now.dims : mapped(old.dims) == now.dims))) {
            fail(ErrorCode::Internal, "rewriting node '", n.name, "' (", n.def->name, ") gave ",
                 now, ", expected ", Type{old.dtype, mapped(old.dims)});
        }
        map_[n.outputs[i].id] = by[i];
        carry(n.outputs[i], by[i]);
    }
}

void Rewriter::replace_symbol(std::string_view name, const Dim& by) {
    Dim target = mapped(by);
    if (target.symbol_name() == name) {
        return;
    }
    if (is_same_) {
        differ();
    }
    SymbolMap one;
    one.emplace(std::string(name), target);
    for (auto& [symbol, dim] : symbols_) {
        dim = substitute(dim, one);
    }
    symbols_.emplace(std::string(name), target);
}

Graph Rewriter::finish() {
    for (size_t i = 0; i < from_.outputs().size(); ++i) {
        out_.add_output(from_.output_names()[i], mapped(from_.outputs()[i]));
    }
    if (from_.is_live() && out_.shares_all(from_)) {
        out_.set_live();
    }
    return std::move(out_);
}

Graph rewrite(const Graph& g, const Rule& rule) {
    Rewriter r(g);
    for (const Node& n : g.nodes()) {
        const Values mapped = r.is_same() ? Values() : r.mapped(n.inputs);
        const std::span<const Value> in = r.is_same() ? n.inputs : mapped;
        r.out().set_origin(n.name);
        if (std::optional<Values> by = rule(r, n, in)) {
            r.replace(n, *by);
        } else if (!r.keep(n)) {
            r.replace(n, r.copy(n, in));
        }
    }
    return r.finish();
}

Graph rewrite_bodies(const Graph& g, const std::function<Graph(const Graph&)>& f,
                     const std::function<bool(const Node&)>& wanted) {
    if (!has_bodies(g)) {
        return g;
    }
    bool changed = false;
    AttrMap map;
    map.body = [&](const GraphRef& b) {
        Graph now = f(*b);
        bool same = now.shares_all(*b);
        changed = changed || !same;
        return same ? b : std::make_shared<const Graph>(std::move(now));
    };
    return rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        if (bodies(n).empty() || (wanted && !wanted(n))) {
            return std::optional<Values>();
        }
        changed = false;
        auto attrs = map_attrs(*n.def, n.attrs.get(), map);
        return changed ? std::optional(r.out().add(*n.def, attrs, in)) : std::nullopt;
    });
}

Graph rewrite_all(const Graph& g, const std::function<Graph(const Graph&)>& f) {
    return has_bodies(g) ? f(rewrite_bodies(g, [&f](const Graph& b) { return rewrite_all(b, f); }))
                         : f(g);
}

Graph expand_composites(const Graph& g,
                        const std::function<bool(const Graph&, const Node&)>& keep) {
    auto expand = [&keep](const Graph& one) {
        Graph now = one;
        for (bool changed = true; changed;) {
            changed = false;
            now = rewrite(now, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                if (!n.def->is_composite() || keep(r.from(), n)) {
                    return std::optional<Values>();
                }
                changed = true;
                return std::optional(n.def->expand(r.out(), n.attrs.get(), in));
            });
        }
        return now;
    };
    return rewrite_all(g, expand);
}

Values inline_graph(Graph& out, const Graph& body, std::span<const Value> args) {
    CHECK(args.size() == body.inputs().size(), "body '", body.name(), "' takes ",
          body.inputs().size(), " values, got ", args.size());
    SymbolMap symbols;
    Values map(body.value_count());
    for (size_t i = 0; i < args.size(); ++i) {
        const Dims& want = body.type(body.inputs()[i]).dims;
        const Dims& have = out.type(args[i]).dims;
        for (size_t k = 0; k < want.size() && k < have.size(); ++k) {
            std::string_view name = want[k].symbol_name();
            if (!name.empty() && !(want[k] == have[k])) {
                symbols.emplace(std::string(name), have[k]);
            }
        }
        map[body.inputs()[i].id] = args[i];
    }
    SymbolSet outer = input_symbols(out);
    for (const Node& n : out.nodes()) {
        outer.merge(declared_symbols(n));
    }
    SymbolSet given = input_symbols(body);
    for (const Node& n : body.nodes()) {
        for (const std::string& s : declared_symbols(n)) {
            if (given.count(s) == 0 && outer.count(s) == 0 && symbols.count(s) == 0) {
                symbols.emplace(s, out.fresh_symbol(s.starts_with('~')));
            }
        }
    }
    for (const Node& n : body.nodes()) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(map[v.id]);
        }
        out.set_origin(n.name);
        Values results = out.add(*n.def, substitute(n, symbols), in);
        for (size_t i = 0; i < results.size(); ++i) {
            map[n.outputs[i].id] = results[i];
        }
    }
    Values results;
    for (Value v : body.outputs()) {
        results.push_back(map[v.id]);
    }
    return results;
}

Graph substitute_symbols(const Graph& g, const SymbolMap& symbols) {
    Graph out = g.sibling(g.name());
    Values map(g.value_count());
    auto carry = [&](Value from, Value to) {
        map[from.id] = to;
        if (!g.value_name(from).empty()) {
            out.set_value_name(to, g.value_name(from));
        }
        if (out.host(to) == nullptr) {
            out.set_host(to, substitute(g.host(from), symbols));
        }
    };
    for (Value v : g.inputs()) {
        const Type& t = g.type(v);
        carry(v, out.add_input(g.value_name(v), {t.dtype, substitute(t.dims, symbols)}));
    }
    for (const Node& n : g.nodes()) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(map[v.id]);
        }
        out.set_origin(n.name);
        Values results = out.add(*n.def, substitute(n, symbols), in);
        for (size_t i = 0; i < results.size(); ++i) {
            carry(n.outputs[i], results[i]);
        }
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        out.add_output(g.output_names()[i], map[g.outputs()[i].id]);
    }
    return out;
}

std::vector<uint32_t> use_counts(const Graph& g) {
    std::vector<uint32_t> uses(g.value_count(), 0);
    for (const Node& n : g.nodes()) {
        for (Value v : n.inputs) {
            ++uses[v.id];
        }
    }
    for (Value v : g.outputs()) {
        ++uses[v.id];
    }
    return uses;
}

size_t count_nodes(const Graph& g) {
    size_t count = 0;
    visit_nodes(g, [&count](const Graph&, const Node&) { ++count; });
    return count;
}

void visit_nodes(const Graph& g, const std::function<void(const Graph&, const Node&)>& f) {
    for (const Node& n : g.nodes()) {
        f(g, n);
        for (const GraphRef& b : bodies(n)) {
            visit_nodes(*b, f);
        }
    }
}

} // namespace ingot
