// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_operands.h"

#include <cmath>

namespace ingot::passes {

static int64_t free_axis(int64_t rank, const Axes& batch, const Axes& contract) {
    std::vector<bool> used(static_cast<size_t>(rank), false);
    for (const Axes* axes : {&batch, &contract}) {
        for (int64_t i : *axes) {
            used[static_cast<size_t>(i)] = true;
        }
    }
    for (int64_t i = 0; i < rank; ++i) {
        if (!used[static_cast<size_t>(i)]) {
            return i;
        }
    }
    return -1;
}

// One image's heads by one matrix for all of them: [1, heads, rows, columns] by [rows, columns].
static std::optional<Contraction> shared_contraction(const Graph& g, const Node& n) {
    const Dot& d = n.as<Dot>();
    const Type& a = g.type(n.inputs[0]);
    bool fits = d.a_batch.empty() && a.rank() == 4 && a.dims[0].is_const(1) &&
                d.a_contract == Axes{3} && g.type(n.inputs[1]).rank() == 2;
    if (!fits) {
        return std::nullopt;
    }
    int64_t contracted = d.b_contract[0];
    return Contraction{{n.inputs[0], {0, 1, 2, 3}}, {n.inputs[1], {1 - contracted, contracted}}, 2};
}

std::optional<Contraction> contraction(const Graph& g, const Node& n) {
    const Dot& d = n.as<Dot>();
    if (std::optional<Contraction> shared = shared_contraction(g, n)) {
        return shared;
    }
    size_t batch = d.a_batch.size();
    auto rank = static_cast<int64_t>(batch) + 2;
    if (d.a_contract.size() != 1 || g.type(n.inputs[0]).rank() != rank ||
        g.type(n.inputs[1]).rank() != rank) {
        return std::nullopt;
    }
    Contraction c{{n.inputs[0], d.a_batch}, {n.inputs[1], d.b_batch}, batch};
    c.a.axes.push_back(free_axis(rank, d.a_batch, d.a_contract));
    c.a.axes.push_back(d.a_contract[0]);
    c.b.axes.push_back(free_axis(rank, d.b_batch, d.b_contract));
    c.b.axes.push_back(d.b_contract[0]);
    return c;
}

// x without a scalar factor, and the factor.
static std::optional<std::pair<double, Value>> factor_of(const View& v, Value x) {
    View::Scaled s = v.scaled(v.term(x));
    auto value = v.value(s.term);
    bool same_shape = value && *value != x && v.graph().type(*value) == v.graph().type(x);
    return same_shape && std::isfinite(s.scale) ? std::optional(std::pair(s.scale, *value))
                                                : std::nullopt;
}

// Removes a scalar factor from an operand, also before reshapes.
static bool peel_factor(Graph& g, const View& v, Operand& o) {
    Value x = o.value;
    auto factor = factor_of(v, x);
    for (const Node* p = g.producer(x); !factor && p != nullptr && p->is(reshape_def);
         p = g.producer(x)) {
        x = p->inputs[0];
        factor = factor_of(v, x);
    }
    if (!factor) {
        return false;
    }
    const Dims d = g.type(o.value).dims;
    o.value = ops::reshape(g, factor->second, d);
    o.scale *= factor->first;
    return true;
}

void peel_permutation(const Graph& g, Operand& o) {
    for (const Node* p = g.producer(o.value); p != nullptr && p->is(permute_def);
         p = g.producer(o.value)) {
        for (int64_t& axis : o.axes) {
            axis = p->as<Permute>().perm[static_cast<size_t>(axis)];
        }
        o.value = p->inputs[0];
    }
}

void peel(Graph& g, const View& v, Operand& o) {
    do {
        peel_permutation(g, o);
    } while (peel_factor(g, v, o));
}

std::optional<Value> before_repetition(const Graph& g, const Operand& o, size_t head) {
    const Node* merge = g.producer(o.value);
    const Node* repeat =
        merge != nullptr && merge->is(reshape_def) ? g.producer(merge->inputs[0]) : nullptr;
    if (repeat == nullptr || !repeat->is(broadcast_def)) {
        return std::nullopt;
    }
    Dims split = g.type(merge->inputs[0]).dims;
    Dims source = g.type(repeat->inputs[0]).dims;
    const Dims& merged = g.type(o.value).dims;
    if (split.size() != merged.size() + 1 || source.size() != split.size() ||
        !(split[head] * split[head + 1] == merged[head]) || !source[head + 1].is_const(1)) {
        return std::nullopt;
    }
    source[head + 1] = split[head + 1];
    if (!(source == split)) {
        return std::nullopt;
    }
    for (size_t i = 0; i < merged.size(); ++i) {
        if (i != head && !(merged[i] == split[i < head ? i : i + 1])) {
            return std::nullopt;
        }
    }
    return repeat->inputs[0];
}

Dims four_dims(const Dims& d, size_t batch) {
    Dims out = d;
    if (batch <= 2) {
        out.insert(out.begin() + static_cast<int64_t>(batch), 2 - batch, Dim(1));
        return out;
    }
    for (size_t i = 1; i + 1 < batch; ++i) {
        out[0] = out[0] * d[i];
    }
    out.erase(out.begin() + 1, out.begin() + static_cast<int64_t>(batch) - 1);
    return out;
}

Value in_order(Graph& g, const Operand& o, size_t batch) {
    Value v = ops::permute(g, o.value, o.axes);
    Dims d = g.type(v).dims;
    d.insert(d.begin(), batch + 2 - o.axes.size(), Dim(1));
    d = four_dims(d, batch);
    return ops::reshape(g, v, d);
}

} // namespace ingot::passes
