// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_plan.h"

#include "ir/rewrite.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "ops/refusal.h"

#include <algorithm>
#include <cmath>

namespace ingot::passes {

namespace {

// Views that repeat elements stay above this size.
constexpr double max_repeated = 1024;

double count_of_type(const Type& t) {
    double n = 1;
    for (const Dim& d : t.dims) {
        n *= d.is_const() ? static_cast<double>(d.value()) : INFINITY;
    }
    return n;
}

double bytes_of_type(const Type& t) {
    return count_of_type(t) * bit_width(t.dtype) / 8;
}

double bytes_of(const Graph& g, std::span<const Value> values) {
    double out = 0;
    for (Value v : values) {
        out += bytes_of_type(g.type(v));
    }
    return out;
}

// A rough count of a node's scalar operations; infinite where sizes are unknown.
double operations(const Graph& g, const Node& n, int depth = 0) {
    double out = 0;
    for (Value v : n.outputs) {
        out += count_of_type(g.type(v));
    }
    double in = 0;
    for (Value v : n.inputs) {
        in += count_of_type(g.type(v));
    }
    if (n.is(reshape_def)) {
        return 0;
    }
    if (n.is(map_def)) {
        return out * static_cast<double>(n.as<Map>().body.code.size());
    }
    if (n.is(dot_def)) {
        double k = 1;
        for (int64_t axis : n.as<Dot>().a_contract) {
            k *= count_of_type({DType::F32, {g.type(n.inputs[0]).dims[static_cast<size_t>(axis)]}});
        }
        return out * k;
    }
    if (n.def->is_composite() && depth < 8) {
        Graph body = g.sibling("cost");
        Values args;
        for (Value v : n.inputs) {
            args.push_back(body.add_input({}, g.type(v)));
        }
        n.def->expand(body, n.attrs.get(), args);
        double sum = 0;
        for (const Node& inner : body.nodes()) {
            sum += operations(body, inner, depth + 1);
        }
        return sum;
    }
    return in + out;
}

bool repeats_much(const Graph& g, const Node& n) {
    return (n.is(broadcast_def) || n.is(iota_def) || n.is(window_def)) &&
           count_of_type(g.type(n.outputs[0])) > max_repeated;
}

} // namespace

bool moves_elements(const Node& n) {
    return n.is(scatter_def) || n.is(gather_def) || n.is(concat_def) || n.is(reduce_def) ||
           n.is(pad_def);
}

bool may_fold(const Graph& g, const Node& n) {
    bool never = !(n.def->is_composite() || n.def->eval != nullptr) || n.is(constant_def) ||
                 n.is(random_def) || n.is(tensor_to_dims_def) || n.is(ops::dequantize_def) ||
                 n.is(ops::refusal_def);
    if (never || !bodies(n).empty() || !declared_symbols(n).empty()) {
        return false;
    }
    SymbolSet symbols;
    collect_symbols(g, n, symbols);
    return symbols.empty();
}

FoldPlan::FoldPlan(const Graph& g, const PassOptions& options)
    : g_(g), options_(options), chosen_(g.value_count(), false), refused_(g.value_count(), false),
      stays_(g.value_count(), true), held_(g.value_count(), 0) {
    constexpr int most_rounds = 8; // each without what the last one refused
    for (int round = 0; round < most_rounds && chooses() && !keeps_growth(); ++round) {
    }
}

bool FoldPlan::known(Value v) const {
    const Node* p = g_.producer(v);
    return g_.constant(v) != nullptr || (p != nullptr && has(*p));
}

// An operand that stays as it is counts where what it repeats, or what its map reads, is known.
bool FoldPlan::has_operands(const Node& n) const {
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value v) {
        const Node* p = g_.producer(v);
        if (known(v) || p == nullptr) {
            return known(v);
        }
        bool through = (moves_elements(n) && p->is(broadcast_def)) ||
                       (n.is(reduce_def) && p->is(map_def) &&
                        bytes_of(g_, p->outputs) <= static_cast<double>(options_.fold_bytes));
        return through &&
               std::all_of(p->inputs.begin(), p->inputs.end(), [&](Value x) { return known(x); });
    });
}

// Chooses in the order of the nodes; false where there is none.
bool FoldPlan::chooses() {
    double work = 0;
    bool any = false;
    for (const Node& n : g_.nodes()) {
        double all_held = 0;
        for (Value v : n.inputs) {
            all_held += held(v);
        }
        double out = bytes_of(g_, n.outputs);
        size_t at = n.outputs[0].id;
        chosen_[at] = false;
        if (!refused_[at] && has_operands(n) && may_fold(g_, n) && !repeats_much(g_, n)) {
            double more = operations(g_, n);
            bool fits = work + more <= options_.fold_operations &&
                        (out <= static_cast<double>(options_.fold_bytes) || n.is(reshape_def)) &&
                        std::isfinite(out);
            chosen_[at] = fits;
            work += fits ? more : 0;
        }
        any = any || chosen_[at];
        for (Value v : n.outputs) {
            bool stays = n.is(constant_def) || !chosen_[at];
            held_[v.id] =
                stays ? bytes_of_type(g_.type(v)) : std::min(bytes_of_type(g_.type(v)), all_held);
        }
    }
    return any;
}

// From the last node on: refuses those whose results would stay and outgrow what they are made of.
// Whether there was none.
bool FoldPlan::keeps_growth() {
    stays_.assign(g_.value_count(), false);
    for (Value v : g_.outputs()) {
        stays_[v.id] = true;
    }
    double total = 0;
    bool all = true;
    auto nodes = g_.nodes();
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
        size_t at = n->outputs[0].id;
        if (chosen_[at] && !n->is(reshape_def)) {
            double growth = 0;
            for (Value v : n->outputs) {
                growth += stays_[v.id] ? bytes_of_type(g_.type(v)) : 0;
            }
            for (Value v : n->inputs) {
                growth -= held(v);
            }
            growth = std::max(growth, 0.0);
            bool fits = growth <= static_cast<double>(options_.fold_growth) &&
                        total + growth <= static_cast<double>(options_.fold_total_growth);
            total += fits ? growth : 0;
            chosen_[at] = fits;
            refused_[at] = !fits;
            all = all && fits;
        }
        for (Value v : n->inputs) {
            stays_[v.id] = stays_[v.id] || !chosen_[at];
        }
    }
    return all;
}

} // namespace ingot::passes
