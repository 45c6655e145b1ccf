// SPDX-License-Identifier: Apache-2.0
// align_weights: constant weights of products whose rows have odd lengths get gaps behind them, so
// that each row begins at a multiple of 16 bytes, as activations do (Kernel::aligned_rows).
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "lower/weight_rows.h"
#include "ops/ops.h"
#include "plan/row_alignment.h"

#include <map>

namespace ingot::plan {

namespace {

class Aligner {
public:
    std::optional<Values> align(Rewriter& r, const Node& n, std::span<const Value> in) {
        Values operands(in.begin(), in.end());
        bool any = false;
        auto replace = [&](size_t input, const Dot& d) {
            if (std::optional<Value> v = aligned(r.out(), n.inputs[input], in[input], d)) {
                operands[input] = *v;
                any = true;
            }
        };
        if (n.is(dot_def)) {
            replace(1, n.as<Dot>());
        } else if (n.is(fused_def)) {
            const Graph& body = *n.as<Fused>().body;
            for (const Node& inner : body.nodes()) {
                for (size_t i = 0; inner.is(dot_def) && i < body.inputs().size(); ++i) {
                    if (body.inputs()[i] == inner.inputs[1]) {
                        replace(i, inner.as<Dot>());
                    }
                }
            }
        }
        return any ? std::optional(r.copy(n, operands)) : std::nullopt;
    }

private:
    std::optional<Value> aligned(Graph& g, Value old, Value v, const Dot& d) {
        const Tensor* w = g.constant(v);
        bool plain = w != nullptr && w->rank() == 2 && d.b_batch.empty() &&
                     d.b_contract.size() == 1 && bit_width(w->dtype()) >= 8;
        if (!plain) {
            return std::nullopt;
        }
        bool depth_first = d.b_contract[0] == 0;
        int64_t depth = w->shape()[depth_first ? 0 : 1];
        if (aligned_pitch(depth, w->dtype()) == depth || depth < shortest_aligned_row) {
            return std::nullopt;
        }
        auto [it, is_new] = aligned_.try_emplace({old, depth_first});
        if (is_new) {
            Value rows = weights_in_rows(g, *w, depth_first);
            it->second = depth_first ? ops::permute(g, rows, {1, 0}) : rows;
        }
        return it->second;
    }

    std::map<std::pair<Value, bool>, Value> aligned_; // by weights and whether the depth is first
};

} // namespace

Pass align_weights(const KernelSet&) {
    return {
        .name = "align_weights",
        .summary = "rows of constant weights begin at multiples of 16 bytes",
        .run =
            [](const Graph& g, const PassOptions&) {
                Aligner aligner;
                return dead_code(
                    rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                        return aligner.align(r, n, in);
                    }));
            },
        .structural = true,
    };
}

} // namespace ingot::plan
