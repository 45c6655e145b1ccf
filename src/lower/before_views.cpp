// SPDX-License-Identifier: Apache-2.0
#include "lower/before_views.h"

#include "ir/rewrite.h"
#include "lower/dequantised.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

bool is_by_one_scale(const Graph& g, const Node& n, int64_t block) {
    return block == 0 && !is_packed(g.type(n.inputs[0]).dtype) &&
           !is_packed(g.type(n.outputs[0]).dtype) &&
           std::all_of(n.inputs.begin() + 1, n.inputs.end(), [&g](Value v) {
               return g.type(v).rank() <= 1 && is_one(g, v) && g.constant(v) != nullptr;
           });
}

/// Reshapes and permutes in front of a node, the last one first, and the value that they view.
struct Views {
    std::vector<const Node*> nodes;
    Value base;
};

Views views_before(const Graph& g, const Node& n, std::span<const uint32_t> uses) {
    Views out{{}, n.inputs[0]};
    for (const Node* p = g.producer(out.base);
         p != nullptr && (p->is(reshape_def) || p->is(permute_def)) && uses[out.base.id] == 1;
         p = g.producer(out.base)) {
        out.nodes.push_back(p);
        out.base = p->inputs[0];
    }
    return out;
}

/// The node on the base of the views, then the views.
Values moved(Rewriter& r, const Node& n, std::span<const Value> in, const Views& views) {
    Graph& g = r.out();
    Values operands = {r.mapped(views.base)};
    operands.insert(operands.end(), in.begin() + 1, in.end());
    Value v = g.add(*n.def, n.attrs, operands)[0];
    for (size_t i = views.nodes.size(); i-- > 0;) {
        v = g.add(*views.nodes[i]->def, views.nodes[i]->attrs, std::array{v})[0];
    }
    return {v};
}

} // namespace

Graph quantised_before_views(const Graph& g) {
    std::vector<uint32_t> uses = use_counts(g);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value> in) -> std::optional<Values> {
            if (!n.is(ops::quantize_def) || !is_by_one_scale(g, n, n.as<ops::Quantize>().block)) {
                return std::nullopt;
            }
            Views views = views_before(g, n, uses);
            return views.nodes.empty() ? std::nullopt : std::optional(moved(r, n, in, views));
        }));
}

Graph dequantised_before_views(const Graph& g) {
    std::vector<uint32_t> uses = use_counts(g);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value> in) -> std::optional<Values> {
            if (!n.is(ops::dequantize_def) ||
                !is_by_one_scale(g, n, n.as<ops::Dequantize>().block)) {
                return std::nullopt;
            }
            Views views = views_before(g, n, uses);
            const Node* p = g.producer(views.base);
            bool own = p != nullptr && p->is(ops::quantize_def) && uses[views.base.id] == 1;
            return views.nodes.empty() || !own ? std::nullopt
                                               : std::optional(moved(r, n, in, views));
        }));
}

} // namespace ingot::plan
