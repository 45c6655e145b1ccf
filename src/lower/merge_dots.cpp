// SPDX-License-Identifier: Apache-2.0
// merge_dots: matrix products of one operand with several constants (query, key and value; gate and
// up), quantised ones too, become one product with the constants concatenated; its parts are
// slices. Equal maps behind the products, such as scales and biases, are merged too.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "passes/match.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ingot::plan {

namespace {

/// Maps behind each of several dots, or behind other such maps.
using Level = std::vector<const Node*>;

/// Dots to merge, in graph order, and the levels of equal maps behind them.
struct Family {
    std::vector<const Node*> dots;
    std::vector<Level> maps;

    const Level& last() const { return maps.empty() ? dots : maps.back(); }
};

int64_t size_at(const Tensor& t, int64_t axis) {
    return t.shape()[static_cast<size_t>(axis)];
}

/// Whether a value is a transposed constant of rank 2.
bool is_exchanged_constant(const Graph& g, const Node& p) {
    return p.is(permute_def) && g.constant(p.inputs[0]) != nullptr &&
           p.as<Permute>().perm == std::vector<int64_t>{1, 0};
}

/// Whether a scale or zero point of a quantised operand, if present, is constant with an element
/// per column (and block).
bool goes_by_column(const Graph& g, Value v, int64_t axis, int64_t columns) {
    const Node* p = g.producer(v);
    const Dims& dims = g.type(v).dims;
    auto at = dims.size() == 1 ? size_t{0} : static_cast<size_t>(axis);
    return p != nullptr && !is_packed(g.type(v).dtype) &&
           (p->is(constant_def) || is_exchanged_constant(g, *p)) &&
           (dims.size() == 1 || dims.size() == 2) && dims[at].is_const(columns);
}

/// The constant zero point of one element at operand i, else null.
const Tensor* zero_for_all(const Graph& g, const Node& n, size_t i) {
    const Tensor* t = i == 3 ? g.constant(n.inputs[i]) : nullptr;
    return t != nullptr && t->count() == 1 && is_integer(t->dtype()) ? t : nullptr;
}

/// free_axis for a product with a quantised operand. Rows of 4-bit elements must be whole bytes to
/// be concatenated.
int64_t quantised_free_axis(const Graph& g, const Node& n) {
    const auto& a = n.as<ops::QuantizedDot>();
    const Tensor* q = g.constant(n.inputs[1]);
    if (q == nullptr || q->rank() != 2 || a.b_contract.size() != 1) {
        return -1;
    }
    int64_t axis = 1 - a.b_contract[0];
    bool joins = !is_packed(q->dtype()) || (axis == 0 && size_at(*q, 1) % 2 == 0);
    bool by_column = a.block > 0 ? a.axis != axis : a.axis == axis;
    for (size_t i = 2; i < n.inputs.size(); ++i) {
        by_column = by_column && (zero_for_all(g, n, i) != nullptr ||
                                  goes_by_column(g, n.inputs[i], axis, size_at(*q, axis)));
    }
    return joins && by_column && size_at(*q, axis) > 1 ? axis : -1;
}

/// The free axis of the constant operand of a mergeable product, or -1.
int64_t free_axis(const Graph& g, const Node& n) {
    if (n.is(ops::quantized_dot_def)) {
        return quantised_free_axis(g, n);
    }
    if (!n.is(dot_def)) {
        return -1;
    }
    const auto& d = n.as<Dot>();
    const Tensor* w = g.constant(n.inputs[1]);
    bool plain = !d.exact && w != nullptr && w->rank() == 2 && !is_packed(w->dtype()) &&
                 d.b_batch.empty() && d.b_contract.size() == 1;
    return plain ? 1 - d.b_contract[0] : -1;
}

constexpr size_t most_levels = 16;

/// A vector of one number.
Tensor repeated(const Tensor& one, int64_t count) {
    Tensor out = Tensor::empty(one.dtype(), {count});
    size_t width = byte_size(one.dtype(), 1);
    std::byte* to = out.mutable_bytes().data();
    for (int64_t i = 0; i < count; ++i) {
        std::memcpy(to + static_cast<size_t>(i) * width, one.bytes().data(), width);
    }
    return out;
}

/// For rank 2.
Tensor with_axes_exchanged(const Tensor& t) {
    int64_t rows = t.shape()[0];
    int64_t columns = t.shape()[1];
    Tensor out = Tensor::empty(t.dtype(), {columns, rows});
    size_t width = byte_size(t.dtype(), 1);
    const std::byte* from = t.bytes().data();
    std::byte* to = out.mutable_bytes().data();
    for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
            std::memcpy(to + static_cast<size_t>(c * rows + r) * width,
                        from + static_cast<size_t>(r * columns + c) * width, width);
        }
    }
    return out;
}

/// The only map that reads a result beside constants of rank 1 along its last axis.
const Node* bias_map(const Graph& g, Value result,
                     const std::map<Value, std::vector<const Node*>>& users) {
    auto it = users.find(result);
    if (it == users.end() || it->second.size() != 1 || it->second[0] == nullptr ||
        !it->second[0]->is(map_def)) {
        return nullptr;
    }
    const Node& m = *it->second[0];
    for (Value v : m.inputs) {
        const Tensor* c = g.constant(v);
        bool scalar = c != nullptr && c->count() == 1;
        bool row = c != nullptr && c->rank() == 1 && Dim(c->count()) == g.type(result).dims.back();
        if (v != result && !scalar && !row) {
            return nullptr;
        }
    }
    return &m;
}

/// Whether two maps of results are equal apart from the numbers of constants, for all columns or
/// for each.
bool alike(const Graph& g, const Node& a, Value of_a, const Node& b, Value of_b) {
    const auto& x = a.as<Map>();
    const auto& y = b.as<Map>();
    if (x.dtype != y.dtype || !(x.body == y.body) || a.inputs.size() != b.inputs.size()) {
        return false;
    }
    for (size_t i = 0; i < a.inputs.size(); ++i) {
        bool result_a = a.inputs[i] == of_a;
        bool result_b = b.inputs[i] == of_b;
        if (result_a != result_b) {
            return false;
        }
        if (result_a) {
            continue;
        }
        const Tensor* p = g.constant(a.inputs[i]);
        const Tensor* q = g.constant(b.inputs[i]);
        if (p->dtype() != q->dtype() || (p->count() == 1) != (q->count() == 1)) {
            return false;
        }
    }
    return true;
}

/// Whether a map of a result adds a constant of a number a column, rounded as the result is.
bool adds_row(const Graph& g, const Node& m, Value result) {
    const Tensor* row =
        passes::is_addition(m) ? g.constant(m.inputs[m.inputs[0] == result ? 1 : 0]) : nullptr;
    return row != nullptr && row->rank() == 1 && m.as<Map>().dtype == g.type(result).dtype;
}

class Merger {
public:
    explicit Merger(const Graph& g) : g_(g) {
        std::map<Value, std::vector<const Node*>> users;
        std::map<std::pair<Value, std::string>, Family> found;
        for (const Node& n : g.nodes()) {
            for (Value v : n.inputs) {
                users[v].push_back(&n);
            }
        }
        for (Value v : g.outputs()) {
            users[v].push_back(nullptr); // a graph output stays
        }
        for (const Node& n : g.nodes()) {
            if (free_axis(g, n) >= 0) {
                std::string key = str(n.def->name, ' ', attrs_key(*n.def, n.attrs.get()), ' ',
                                      g.type(n.inputs[1]).dims[free_axis(g, n) == 0 ? 1 : 0]);
                for (size_t i = 1; i < n.inputs.size(); ++i) {
                    const Type& t = g.type(n.inputs[i]);
                    const Tensor* zero = zero_for_all(g, n, i);
                    append(key, str(' ', t.dtype, ' ', t.rank()));
                    if (zero != nullptr) {
                        append(key, str(" = ", zero->get_i64(0)));
                    }
                }
                found[{n.inputs[0], key}].dots.push_back(&n);
            }
        }
        for (auto& [key, f] : found) {
            if (f.dots.size() > 1) {
                add(std::move(f), users);
            }
        }
    }

    std::optional<Values> rule(Rewriter& r, const Node& n, std::span<const Value> in) {
        if (auto it = family_of_.find(&n); it != family_of_.end()) {
            const Family& f = families_[it->second];
            if (f.dots.front() == &n) {
                merge(r, f, in[0]);
            }
        }
        auto it = results_.find(&n);
        return it == results_.end() ? std::nullopt : std::optional(Values{it->second});
    }

private:
    void add(Family f, const std::map<Value, std::vector<const Node*>>& users) {
        if (Level biases = some_biases(f, users); !biases.empty()) {
            f.maps.push_back(std::move(biases));
        }
        for (Level next = maps_behind(f, users); !next.empty() && f.maps.size() < most_levels;
             next = maps_behind(f, users)) {
            f.maps.push_back(std::move(next));
        }
        for (const Node* d : f.dots) {
            family_of_[d] = families_.size();
        }
        families_.push_back(std::move(f));
    }

    /// Additions of biases behind some of the products, alike, and the other products themselves,
    /// to which zeros are added; empty where all have maps or none has such a one.
    Level some_biases(const Family& f,
                      const std::map<Value, std::vector<const Node*>>& users) const {
        Level out;
        size_t first = f.dots.size();
        bool all = true;
        for (size_t i = 0; i < f.dots.size(); ++i) {
            const Node* m = bias_map(g_, f.dots[i]->outputs[0], users);
            bool adds = m != nullptr && adds_row(g_, *m, f.dots[i]->outputs[0]);
            first = adds ? std::min(first, i) : first;
            all = all && adds;
            out.push_back(adds ? m : f.dots[i]);
            if (adds &&
                !alike(g_, *out[first], f.dots[first]->outputs[0], *m, f.dots[i]->outputs[0])) {
                return {};
            }
        }
        return all || first == f.dots.size() ? Level() : out;
    }

    /// One map behind each node of the last level, all alike; empty where there is no such level.
    Level maps_behind(const Family& f,
                      const std::map<Value, std::vector<const Node*>>& users) const {
        const Level& before = f.last();
        Level out;
        for (const Node* n : before) {
            const Node* m = bias_map(g_, n->outputs[0], users);
            if (m == nullptr ||
                (!out.empty() && !alike(g_, *out[0], before[0]->outputs[0], *m, n->outputs[0]))) {
                return {};
            }
            out.push_back(m);
        }
        return out;
    }

    void merge(Rewriter& r, const Family& f, Value x) {
        Graph& out = r.out();
        int64_t axis = free_axis(g_, *f.dots[0]);
        std::vector<Tensor> weights;
        std::string origin;
        for (const Node* d : f.dots) {
            weights.push_back(*g_.constant(d->inputs[1]));
            origin += (origin.empty() ? "" : " + ") + d->name;
        }
        out.set_origin(origin);
        Value w = ops::constant(out, Tensor::joined(weights, axis));
        Values operands = {x, w};
        for (size_t i = 2; i < f.dots[0]->inputs.size(); ++i) {
            bool one = zero_for_all(g_, *f.dots[0], i) != nullptr;
            operands.push_back(one ? copied(r, f.dots[0]->inputs[i])
                                   : joined_parameters(out, f, i, axis));
        }
        Value products = out.add(*f.dots[0]->def, f.dots[0]->attrs, operands)[0];
        Value whole = products;
        slice_results(out, f.dots, weights, axis, whole);
        const Level* before = &f.dots;
        for (const Level& level : f.maps) {
            whole = merged_map(out, level, *before, whole);
            slice_results(out, level, weights, axis, whole);
            before = &level;
        }
    }

    /// The parts of `whole` as results of the nodes; those that later maps alone read are dead.
    void slice_results(Graph& out, const Level& nodes, const std::vector<Tensor>& weights,
                       int64_t axis, Value whole) {
        auto last = static_cast<int64_t>(out.type(whole).rank()) - 1;
        int64_t start = 0;
        for (size_t i = 0; i < nodes.size(); ++i) {
            int64_t size = size_at(weights[i], axis);
            out.set_origin(nodes[i]->name);
            results_[nodes[i]] = ops::slice(out, whole, last, start, size);
            start += size;
        }
    }

    /// Copies a zero point that may not be written yet.
    static Value copied(Rewriter& r, Value v) {
        return r.is_mapped(v) ? r.mapped(v) : ops::constant(r.out(), *r.from().constant(v));
    }

    /// Concatenates scales or zero points once, not in every run. A transpose that some of them
    /// have moves behind the concatenation.
    Value joined_parameters(Graph& out, const Family& f, size_t input, int64_t axis) const {
        bool exchanged = g_.constant(f.dots[0]->inputs[input]) == nullptr;
        std::vector<Tensor> own;
        own.reserve(f.dots.size());
        for (const Node* d : f.dots) {
            own.push_back(parameter(d->inputs[input], exchanged));
        }
        int64_t along = own[0].rank() == 1 ? 0 : exchanged ? 1 - axis : axis;
        Value all = ops::constant(out, Tensor::joined(std::move(own), along));
        return exchanged ? ops::permute(out, all, {1, 0}) : all;
    }

    /// A constant, transposed or not, with or without a transpose.
    Tensor parameter(Value v, bool exchanged) const {
        if (const Tensor* t = g_.constant(v)) {
            return exchanged ? with_axes_exchanged(*t) : *t;
        }
        const Tensor& t = *g_.constant(g_.producer(v)->inputs[0]);
        return exchanged ? t : with_axes_exchanged(t);
    }

    /// Operand i of the maps, side by side unless it is one number for all.
    Tensor merged_constant(const Level& level, size_t i) const {
        std::vector<Tensor> own;
        own.reserve(level.size());
        bool same = true;
        for (const Node* m : level) {
            if (!m->is(map_def)) { // a product without a bias
                Dim columns = g_.type(m->outputs[0]).dims.back();
                DType t = g_.constant(map_of(level)->inputs[i])->dtype();
                own.push_back(Tensor::zeros(t, {columns.value()}));
                same = false;
                continue;
            }
            own.push_back(*g_.constant(m->inputs[i]));
            same = same && own.back().count() == 1 && own.back() == own[0];
        }
        if (same) {
            return own[0];
        }
        for (size_t k = 0; k < own.size(); ++k) {
            if (own[k].count() == 1) {
                Dim columns = g_.type(level[k]->outputs[0]).dims.back();
                own[k] = repeated(own[k], columns.value());
            }
        }
        return Tensor::joined(std::move(own), 0);
    }

    static const Node* map_of(const Level& level) {
        return *std::find_if(level.begin(), level.end(),
                             [](const Node* n) { return n->is(map_def); });
    }

    /// The maps of `level` as one of `whole`, which stands for what they read of `before`.
    Value merged_map(Graph& out, const Level& level, const Level& before, Value whole) const {
        auto at = static_cast<size_t>(std::find(level.begin(), level.end(), map_of(level)) -
                                      level.begin());
        const Node& first = *level[at];
        Value replaced = before[at]->outputs[0];
        Values in;
        for (size_t i = 0; i < first.inputs.size(); ++i) {
            if (first.inputs[i] == replaced) {
                in.push_back(whole);
                continue;
            }
            in.push_back(ops::constant(out, merged_constant(level, i)));
        }
        return out.add1(map_def, first.as<Map>(), std::span<const Value>(in));
    }

    const Graph& g_;
    std::vector<Family> families_;
    std::map<const Node*, size_t> family_of_;
    std::map<const Node*, Value> results_;
};

Graph merged(const Graph& g) {
    Merger merger(g);
    return dead_code(rewrite(g, [&merger](Rewriter& r, const Node& n, std::span<const Value> in) {
        return merger.rule(r, n, in);
    }));
}

} // namespace

Pass merge_dots(const KernelSet&) {
    return {
        .name = "merge_dots",
        .summary = "products of one operand with several constants become one",
        .run = [](const Graph& g, const PassOptions&) { return merged(g); },
        .structural = true,
    };
}

} // namespace ingot::plan
