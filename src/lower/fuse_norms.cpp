// SPDX-License-Identifier: Apache-2.0
// fuse_norms: a layer norm of 16-bit rows, which one product with constant weights alone reads,
// becomes part of that product. norm(x) has no mean, so that
//
//     (norm(x) * scale + bias) W + b = norm(x) V + (bias W + b),  V = scale W - its columns' means
//
// and norm(x) V = deviation(x)^-1 (x V): a kernel that multiplies the raw rows by V needs only
// their deviations, which it finds in the rows as they pass.
#include "ir/rewrite.h"
#include "lower/centred_product.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/roll.h"

#include <algorithm>

namespace ingot::plan {

namespace {

/// The norm behind a product's operand, and the moves of rows between, the last one first.
struct NormedRows {
    Node norm;
    std::vector<Node> moves;
};

/// Whether a node moves rows of the last axis as they are.
bool moves_rows(const Graph& g, const Node& n) {
    if (n.inputs.size() != 1 || g.type(n.inputs[0]).rank() == 0) {
        return false;
    }
    int64_t last = int64_t{g.type(n.inputs[0]).rank()} - 1;
    if (n.is(permute_def)) {
        return n.as<Permute>().perm.back() == last;
    }
    if (n.is(reshape_def)) {
        const Dims& to = g.type(n.outputs[0]).dims;
        return !to.empty() && to.back() == g.type(n.inputs[0]).dims.back();
    }
    if (n.is(ops::roll_def)) {
        const auto& axes = n.as<ops::Roll>().axes;
        return std::find(axes.begin(), axes.end(), last) == axes.end();
    }
    return false;
}

/// `operand` in `g`, and its counterpart `copy` in the graph `out` that is made of it: the norm
/// there, if each value up to the product has one reader.
std::optional<NormedRows> normed_rows(const Graph& g, Value operand, const Graph& out, Value copy,
                                      std::span<const uint32_t> readers) {
    NormedRows r;
    for (;;) {
        const Node* from = g.producer(operand);
        const Node* to = out.producer(copy);
        bool same = from != nullptr && to != nullptr && from->def == to->def;
        if (!same || readers[operand.id] != 1) {
            return std::nullopt;
        }
        if (to->is(ops::layer_norm_def)) {
            r.norm = *to;
            return r;
        }
        if (!moves_rows(out, *to)) {
            return std::nullopt;
        }
        r.moves.push_back(*to);
        operand = from->inputs[0];
        copy = to->inputs[0];
    }
}

std::optional<Values> fuse_norm(const KernelSet& kernels, Graph& g, const ProductNode& p,
                                const NormedRows& normed_rows) {
    const Node& norm = normed_rows.norm;
    if (g.type(norm.inputs[0]).dims.back().as_const().value_or(0) > most_found_elements) {
        return std::nullopt;
    }
    std::optional<CentredWeights> centred = fold(g, p, norm);
    if (!centred) {
        return std::nullopt;
    }
    Value raw = norm.inputs[0];
    for (auto n = normed_rows.moves.rbegin(); n != normed_rows.moves.rend(); ++n) {
        g.set_origin(n->name);
        raw = g.add(*n->def, n->attrs, Values{raw})[0];
    }
    return add_centred_product(kernels, g, p, norm, raw, {}, std::move(*centred));
}

Graph fused(const Graph& g, const KernelSet& kernels) {
    std::vector<uint32_t> readers = use_counts(g);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value> in) -> std::optional<Values> {
            std::optional<ProductNode> p = product_of(g, n, in);
            if (!p) {
                return std::nullopt;
            }
            Value operand = p->outside(p->dot->inputs[0]);
            auto at = std::find(in.begin(), in.end(), operand);
            if (at == in.end()) {
                return std::nullopt;
            }
            Value source = n.inputs[static_cast<size_t>(at - in.begin())];
            auto rows = normed_rows(g, source, r.out(), operand, readers);
            return rows ? fuse_norm(kernels, r.out(), *p, *rows) : std::nullopt;
        }));
}

} // namespace

Pass fuse_norms(const KernelSet& kernels) {
    return {
        .name = "fuse_norms",
        .summary = "layer norms become part of the only product that reads them",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
    };
}

} // namespace ingot::plan
