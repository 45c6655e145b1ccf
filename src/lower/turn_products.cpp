// SPDX-License-Identifier: Apache-2.0
// turn_products: a product along an axis that does not lie innermost (MLP-Mixer multiplies along
// tokens) is that of its weights and the activations, which are read as they lie. Its result has
// the activations' innermost axis innermost too, as those who permute it want it: no copy turns
// anything. Rows of weights get a pitch that TMA can read.
#include "ir/rewrite.h"
#include "lower/lift_maps.h"
#include "lower/users.h"
#include "lower/weight_rows.h"
#include "ops/ops.h"
#include "plan/row_alignment.h"

#include <algorithm>
#include <numeric>

namespace ingot::plan {

namespace {

using Axes = std::vector<int64_t>;

constexpr int longest_chain = 8;

bool contains(const Axes& axes, int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Axes first_axes(size_t count) {
    Axes axes(count);
    std::iota(axes.begin(), axes.end(), int64_t{0});
    return axes;
}

/// The product of activations along one of their axes with constant weights of 16 bits.
bool is_layer(const Graph& g, const Node& n) {
    if (!n.is(dot_def)) {
        return false;
    }
    const auto& d = n.as<Dot>();
    const Type& x = g.type(n.inputs[0]);
    const Type& w = g.type(n.inputs[1]);
    bool halves = bit_width(x.dtype) == 16 && is_float(x.dtype) && x.dtype == w.dtype;
    return halves && d.a_batch.empty() && d.a_contract.size() == 1 && w.rank() == 2 &&
           g.constant(n.inputs[0]) == nullptr && g.constant(n.inputs[1]) != nullptr;
}

/// Finds products to turn, and how the values around them lie.
class Turns {
public:
    explicit Turns(const Graph& g)
        : g_(g), users_(users_of(g)), orders_(g.value_count()), is_output_(g.value_count(), 0) {
        for (Value v : g.outputs()) {
            is_output_[v.id] = 1;
        }
        for (Value v : g.inputs()) {
            orders_[v.id] = first_axes(static_cast<size_t>(g.type(v).rank()));
        }
        for (const Node& n : g.nodes()) {
            for (Value v : n.outputs) {
                orders_[v.id] = order_of(n, v);
            }
        }
    }

    /// The axes of a layer's activations, outermost first as they are taken to lie, where it is to
    /// be turned; else empty.
    Axes order_of_turned(const Node& n) const {
        if (!is_layer(g_, n)) {
            return {};
        }
        const Axes& order = orders_[n.inputs[0].id];
        const Dims& dims = g_.type(n.inputs[0]).dims;
        int64_t depth = n.as<Dot>().a_contract[0];
        auto at = std::find(order.begin(), order.end(), depth);
        if (order.empty() || at + 1 == order.end()) {
            return {};
        }
        int64_t columns = 1;
        for (auto it = at + 1; it != order.end(); ++it) {
            std::optional<int64_t> size = dims[static_cast<size_t>(*it)].as_const();
            columns = size ? columns * *size : 0;
        }
        bool readable = columns > 0 && columns % (row_alignment / 2) == 0;
        return readable && goes_on_turned(n.outputs[0], 0) ? order : Axes();
    }

private:
    /// Empty: not known, since the planner chooses it (convolutions), or it follows no order.
    Axes order_of(const Node& n, Value v) const {
        auto rank = static_cast<size_t>(g_.type(v).rank());
        if (n.is(permute_def)) {
            const Axes& from = orders_[n.inputs[0].id];
            const Axes& perm = n.as<Permute>().perm;
            Axes order;
            for (int64_t axis : from) {
                order.push_back(std::find(perm.begin(), perm.end(), axis) - perm.begin());
            }
            return order;
        }
        if (n.is(map_def) || n.is(slice_def)) {
            for (Value in : n.inputs) {
                bool whole = n.is(slice_def) || g_.type(in).dims == g_.type(v).dims;
                if (whole && g_.constant(in) == nullptr) {
                    return orders_[in.id];
                }
            }
        }
        if (n.is(reshape_def)) {
            const Axes& from = orders_[n.inputs[0].id];
            bool as_written = std::is_sorted(from.begin(), from.end()) && !from.empty();
            return as_written ? first_axes(rank) : Axes();
        }
        Axes turned = order_of_turned(n);
        if (!turned.empty()) {
            return order_of_result(turned, n.as<Dot>().a_contract[0]);
        }
        bool chosen = n.is(ops::conv_def) || n.is(ops::conv_transpose_def) || n.is(ops::pool_def) ||
                      n.is(ops::resize_def) || n.is(concat_def);
        return chosen ? Axes() : first_axes(rank);
    }

    /// The free axes of the activations, then the weights' columns, which lie where the depth lay.
    static Axes order_of_result(const Axes& order, int64_t depth) {
        Axes result;
        for (int64_t axis : order) {
            result.push_back(axis == depth ? static_cast<int64_t>(order.size()) - 1
                                           : axis - (axis > depth ? 1 : 0));
        }
        return result;
    }

    /// Whether all readers want another axis innermost than v's last one, a layer's columns.
    bool goes_on_turned(Value v, int steps) const {
        if (is_output_[v.id] != 0 || steps == longest_chain || users_[v.id].empty()) {
            return false;
        }
        int64_t last = g_.type(v).rank() - 1;
        return std::all_of(users_[v.id].begin(), users_[v.id].end(), [&](const Node* n) {
            if (n->is(permute_def)) {
                return n->as<Permute>().perm.back() != last;
            }
            if (n->is(map_def)) {
                return g_.type(n->outputs[0]).dims == g_.type(v).dims &&
                       goes_on_turned(n->outputs[0], steps + 1);
            }
            return is_layer(g_, *n) && n->inputs[0] == v && n->as<Dot>().a_contract[0] == last &&
                   goes_on_turned(n->outputs[0], steps + 1);
        });
    }

    const Graph& g_;
    Users users_;
    std::vector<Axes> orders_; // by value, axes outermost first
    std::vector<char> is_output_;
};

Value turned(Graph& g, const Node& n, Value x, const Tensor& w, const Axes& order) {
    const auto& d = n.as<Dot>();
    const Dims dims = g.type(x).dims;
    int64_t depth = d.a_contract[0];
    Dot now;
    now.dtype = d.dtype;
    now.b_contract = {depth};
    Value rows = weights_in_rows(g, w, d.b_contract[0] == 0);
    // Axes outside of the depth are a batch, for which the weights are repeated.
    Dims repeated;
    for (int64_t axis : order) {
        if (axis == depth) {
            break;
        }
        if (!(dims[static_cast<size_t>(axis)] == Dim(1))) {
            now.a_batch.push_back(static_cast<int64_t>(now.a_batch.size()));
            now.b_batch.push_back(axis);
            repeated.push_back(dims[static_cast<size_t>(axis)]);
        }
    }
    now.a_contract = {static_cast<int64_t>(repeated.size()) + 1};
    if (!repeated.empty()) {
        const Dims& one = g.type(rows).dims;
        repeated.insert(repeated.end(), one.begin(), one.end());
        rows = ops::broadcast_to(g, rows, repeated);
    }
    // The result: the batch, the weights' columns, the other axes of x in their order.
    Axes axes = now.b_batch;
    axes.push_back(depth);
    for (int64_t axis = 0; axis < g.type(x).rank(); ++axis) {
        if (axis != depth && !contains(now.b_batch, axis)) {
            axes.push_back(axis);
        }
    }
    Value y = ops::dot(g, now, rows, x);
    Axes perm;
    for (int64_t axis = 0; axis <= g.type(x).rank(); ++axis) {
        bool last = axis == g.type(x).rank();
        if (last || axis != depth) {
            perm.push_back(std::find(axes.begin(), axes.end(), last ? depth : axis) - axes.begin());
        }
    }
    return ops::permute(g, y, perm);
}

/// Maps behind turned products move in front of what permutes their results.
Graph turn(const Graph& g, const Pass& lift, const PassOptions& options) {
    if (std::none_of(g.nodes().begin(), g.nodes().end(),
                     [&g](const Node& n) { return is_layer(g, n); })) {
        return g;
    }
    Turns turns(g);
    bool any = false;
    Graph out = rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        Axes order = turns.order_of_turned(n);
        any = any || !order.empty();
        return order.empty() ? std::nullopt
                             : std::optional(Values{
                                   turned(r.out(), n, in[0], *g.constant(n.inputs[1]), order)});
    });
    return any ? lift.run(dead_code(out), options) : g;
}

} // namespace

Pass turn_products(const KernelSet& kernels) {
    return {
        .name = "turn_products",
        .summary = "products along an axis that does not lie innermost read it as it lies",
        .run = [lift = lift_maps(kernels)](const Graph& g,
                                           const PassOptions& o) { return turn(g, lift, o); },
    };
}

} // namespace ingot::plan
