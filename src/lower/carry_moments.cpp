// SPDX-License-Identifier: Apache-2.0
// carry_moments: where a kernel makes rows, and products with constant weights alone read their
// layer norm, the kernel stores the moments of the rows as a second result, and the products read
// the raw rows and the moments. Others may read the raw rows too, as the next residual sum does.
#include "ir/rewrite.h"
#include "lower/centred_product.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <algorithm>
#include <map>
#include <set>

namespace ingot::plan {

namespace {

using Moves = std::vector<const Node*>; // of rows, in their order

/// A product of normalised rows, and the rows before they were.
struct NormedOperand {
    const Node* norm = nullptr;
    Value made;   // by the kernel that is to store the moments
    Moves before; // the norm
    Moves after;
};
struct NormedProduct {
    const Node* product = nullptr;
    Moves after;
};

class Carry {
public:
    Carry(const Graph& g, const KernelSet& kernels)
        : g_(g), kernels_(kernels), readers_(g.value_count()), uses_(use_counts(g)) {
        for (const Node& n : g.nodes()) {
            std::set<uint32_t> seen;
            for (Value v : n.inputs) {
                if (seen.insert(v.id).second) {
                    readers_[v.id].push_back(&n);
                }
            }
        }
        for (const Node& n : g.nodes()) {
            if (n.is(ops::layer_norm_def)) {
                find(n);
            }
        }
    }

    Graph result() {
        return products_.empty() ? g_
                                 : dead_code(rewrite(g_, [this](Rewriter& r, const Node& n,
                                                                std::span<const Value> in) {
                                       return replaced(r, n, in);
                                   }));
    }

private:
    void find(const Node& norm);
    bool find_products(const Node& norm, Value rows, const Moves& moves,
                       std::vector<NormedProduct>& out) const;
    std::optional<Values> replaced(Rewriter& r, const Node& n, std::span<const Value> in);
    Values with_moments(Graph& g, const Node& n, std::span<const Value> in);
    std::optional<Values> by_moments(Graph& g, const Rewriter& r, const Node& n,
                                     std::span<const Value> in, const NormedOperand& operand);

    const Graph& g_;
    const KernelSet& kernels_;
    std::vector<std::vector<const Node*>> readers_; // of each value
    std::vector<uint32_t> uses_;
    std::map<const Node*, NormedOperand> products_;
    std::set<const Node*> makers_;
    std::map<uint32_t, Value> moments_; // by the id of the rows, in the new graph
};

/// Whether a node is a view of its operand that keeps each row of the last axis.
bool moves_rows(const Graph& g, const Node& n) {
    if (!n.is(reshape_def) && !n.is(permute_def)) {
        return false;
    }
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dims& to = g.type(n.outputs[0]).dims;
    return !from.empty() && !to.empty() && from.back() == to.back() &&
           (n.is(reshape_def) || n.as<Permute>().perm.back() + 1 == std::ssize(from));
}

/// Moves the moments as their rows.
Value moved_moments(Graph& g, Value moments, const Node& move, const Dims& rows) {
    if (move.is(permute_def)) {
        std::vector<int64_t> perm = move.as<Permute>().perm;
        perm.push_back(std::ssize(perm));
        return ops::permute(g, moments, perm);
    }
    Dims dims = rows;
    const Dims& m = g.type(moments).dims;
    dims.back() = m[m.size() - 2];
    dims.emplace_back(2);
    return ops::reshape(g, moments, dims);
}

std::string kernel_of(const Node& n) {
    return n.is(fused_def) ? n.as<Fused>().kernel : std::string(n.def->name);
}

/// The node's group followed by row_moments of its result. `types`: the graph of its operands.
Graph moments_group(const Graph& types, const Node& n) {
    Graph body = types.sibling("group");
    if (n.is(fused_def)) {
        body = *n.as<Fused>().body;
    } else {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(body.add_input("", types.type(v)));
        }
        body.set_origin(n.name);
        body.add_output("", body.add(*n.def, n.attrs, in)[0]);
    }
    body.set_origin(n.name);
    body.add_output("", ops::row_moments(body, {}, body.outputs()[0]));
    return body;
}

bool stores_moments(const KernelSet& kernels, const Graph& g, const Node& n) {
    constexpr int64_t chunk = ops::RowMoments{}.chunk;
    constexpr int64_t most_elements = 2048; // of which a warp finds the moments in its registers
    const Type& t = g.type(n.outputs[0]);
    auto size = t.rank() == 0 ? std::nullopt : t.dims.back().as_const();
    if (n.outputs.size() != 1 || n.is(constant_def) || !size || *size <= most_found_elements ||
        *size > most_elements || *size % chunk != 0 || bit_width(t.dtype) != 16 ||
        !is_float(t.dtype)) {
        return false;
    }
    Graph body = moments_group(g, n);
    Group group{body, body.nodes(), body.inputs(), body.outputs()};
    return kernels.find(kernel_of(n), group) != nullptr;
}

/// The products behind the norm; false where something else reads its result.
bool Carry::find_products(const Node& norm, Value rows, const Moves& moves,
                          std::vector<NormedProduct>& out) const {
    uint32_t found = 0;
    for (const Node* n : readers_[rows.id]) {
        if (std::count(n->inputs.begin(), n->inputs.end(), rows) != 1) {
            return false;
        }
        ++found;
        if (moves_rows(g_, *n)) {
            Moves more = moves;
            more.push_back(n);
            if (!find_products(norm, n->outputs[0], more, out)) {
                return false;
            }
            continue;
        }
        std::optional<ProductNode> p = product_of(g_, *n, n->inputs);
        if (!p || p->outside(p->dot->inputs[0]) != rows || !can_fold(g_, *p, norm)) {
            return false;
        }
        out.push_back({n, moves});
    }
    return found > 0 && found == uses_[rows.id];
}

void Carry::find(const Node& norm) {
    Value made = norm.inputs[0];
    Moves before;
    const Node* maker = g_.producer(made);
    while (maker != nullptr && moves_rows(g_, *maker)) {
        before.insert(before.begin(), maker);
        made = maker->inputs[0];
        maker = g_.producer(made);
    }
    std::vector<NormedProduct> products;
    if (maker == nullptr || products_.contains(maker) ||
        !find_products(norm, norm.outputs[0], {}, products) ||
        !stores_moments(kernels_, g_, *maker)) {
        return;
    }
    makers_.insert(maker);
    for (const NormedProduct& p : products) {
        products_[p.product] = {&norm, made, before, p.after};
    }
}

Values Carry::with_moments(Graph& g, const Node& n, std::span<const Value> in) {
    Graph body = moments_group(g_, n);
    g.set_origin(n.name);
    Values out =
        g.add(fused_def, Fused{kernel_of(n), std::make_shared<const Graph>(std::move(body))}, in);
    moments_[n.outputs[0].id] = out[1];
    return {out[0]};
}

std::optional<Values> Carry::by_moments(Graph& g, const Rewriter& r, const Node& n,
                                        std::span<const Value> in, const NormedOperand& operand) {
    ProductNode p = *product_of(g_, n, in);
    Node norm = r.current(*operand.norm);
    std::optional<CentredWeights> centred = fold(g, p, norm);
    if (!centred) {
        return std::nullopt;
    }
    g.set_origin(n.name);
    Value rows = r.mapped(operand.norm->inputs[0]);
    Value moments = moments_.at(operand.made.id);
    for (const Node* move : operand.before) {
        moments = moved_moments(g, moments, *move, g_.type(move->outputs[0]).dims);
    }
    for (const Node* move : operand.after) {
        Node current = r.current(*move);
        rows = g.add(*current.def, current.attrs, Values{rows})[0];
        moments = moved_moments(g, moments, *move, g_.type(move->outputs[0]).dims);
    }
    return add_centred_product(kernels_, g, p, norm, rows, moments, std::move(*centred));
}

std::optional<Values> Carry::replaced(Rewriter& r, const Node& n, std::span<const Value> in) {
    if (auto at = products_.find(&n); at != products_.end()) {
        return by_moments(r.out(), r, n, in, at->second);
    }
    return makers_.contains(&n) ? std::optional(with_moments(r.out(), n, in)) : std::nullopt;
}

} // namespace

Pass carry_moments(const KernelSet& kernels) {
    return {"carry_moments", "kernels store the statistics of rows for the norms behind them",
            [&kernels](const Graph& g, const PassOptions&) { return Carry(g, kernels).result(); },
            false};
}

} // namespace ingot::plan
