// SPDX-License-Identifier: Apache-2.0
// lift_maps: a map that reads a kernel's result through views (reshape, permute) moves before the
// views, so that it can become the kernel's epilogue; inverse views apply to its other operands. A
// map over a concatenation moves to the parts.
#include "lower/lift_maps.h"

#include "ir/rewrite.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr size_t longest_chain = 4;

bool is_view_to_lift_over(const Node& n) {
    return n.is(permute_def) || n.is(reshape_def);
}

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
    std::vector<int64_t> out(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    return out;
}

/// Adds leading axes of size 1 up to a rank.
Value with_rank(Graph& g, Value v, int rank) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank - g.type(v).rank(); ++i) {
        axes.push_back(i);
    }
    return axes.empty() ? v : ops::unsqueeze(g, v, axes);
}

/// The views between a map's operand and the kernel that made it, outermost first; empty when the
/// map should stay.
std::vector<const Node*> views_above(const Graph& g, Value v, std::span<const uint32_t> uses) {
    std::vector<const Node*> chain;
    const Node* p = g.producer(v);
    bool permuted = false;
    while (p != nullptr && is_view_to_lift_over(*p) && chain.size() < longest_chain) {
        // A reshape of a permuted value would copy.
        if (uses[p->inputs[0].id] != 1 || (p->is(reshape_def) && permuted)) {
            return {};
        }
        permuted = permuted || p->is(permute_def);
        chain.push_back(p);
        p = g.producer(p->inputs[0]);
    }
    bool is_kernel = p != nullptr && !is_view_to_lift_over(*p) && !p->is(constant_def) &&
                     !p->is(slice_def) && !p->is(broadcast_def) && !p->is(concat_def) &&
                     p->outputs.size() == 1;
    return is_kernel ? chain : std::vector<const Node*>();
}

bool is_one_element(const Dims& x) {
    return std::all_of(x.begin(), x.end(), [](const Dim& d) { return d == Dim(1); });
}

/// Whether an operand can follow a reshape from `outer` to `inner` sizes: equal sizes throughout,
/// one element, or one row along a last axis that stays.
bool fits_reshape(const Dims& x, const Dims& outer, const Dims& inner) {
    if (x == outer || is_one_element(x)) {
        return true;
    }
    bool same_last = !outer.empty() && !inner.empty() && outer.back() == inner.back();
    return same_last && x.back() == outer.back() &&
           std::all_of(x.begin(), x.end() - 1, [](const Dim& d) { return d == Dim(1); });
}

Value inside_reshape(Graph& g, Value v, const Dims& outer, const Dims& inner) {
    const Dims dims = g.type(v).dims;
    if (dims == outer) {
        return ops::reshape(g, v, inner);
    }
    return ops::reshape(g, v, is_one_element(dims) ? Dims() : Dims{dims.back()});
}

std::optional<Values> lift(Rewriter& r, const Node& n, std::span<const Value> in,
                           std::span<const uint32_t> uses) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    const Graph& from = r.from();
    Graph& out = r.out();
    for (size_t i = 0; i < in.size(); ++i) {
        auto occurrences = std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]);
        if (uses[n.inputs[i].id] != static_cast<uint32_t>(occurrences) || occurrences != 1 ||
            from.type(n.inputs[i]).dims != from.type(n.outputs[0]).dims) {
            continue;
        }
        std::vector<const Node*> chain = views_above(from, n.inputs[i], uses);
        bool fits = !chain.empty();
        for (const Node* view : chain) {
            for (size_t k = 0; fits && k < in.size() && view->is(reshape_def); ++k) {
                fits = k == i ||
                       fits_reshape(from.type(n.inputs[k]).dims, from.type(view->outputs[0]).dims,
                                    from.type(view->inputs[0]).dims);
            }
        }
        if (!fits) {
            continue;
        }
        Values operands(in.begin(), in.end());
        for (const Node* view : chain) {
            Node now = r.current(*view);
            const Dims outer = out.type(operands[i]).dims;
            operands[i] = now.inputs[0];
            const Dims inner = out.type(operands[i]).dims;
            for (size_t k = 0; k < operands.size(); ++k) {
                if (k == i) {
                    continue;
                }
                operands[k] =
                    view->is(permute_def)
                        ? ops::permute(out,
                                       with_rank(out, operands[k], static_cast<int>(outer.size())),
                                       inverse(view->as<Permute>().perm))
                        : inside_reshape(out, operands[k], outer, inner);
            }
        }
        Value result = out.add1(map_def, n.as<Map>(), std::span<const Value>(operands));
        for (size_t k = chain.size(); k-- > 0;) {
            Node now = r.current(*chain[k]);
            result = out.add(*now.def, now.attrs, std::span<const Value>(&result, 1))[0];
        }
        return Values{result};
    }
    return std::nullopt;
}

/// A map of one concat and single elements, where each part is a map without other readers or would
/// be copied into its place.
std::optional<Values> lift_over_concat(Rewriter& r, const Node& n, std::span<const Value> in,
                                       std::span<const uint32_t> uses) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    const Graph& from = r.from();
    Graph& out = r.out();
    auto is_single = [&](Value v) { return is_one_element(from.type(v).dims); };
    auto joined = std::find_if_not(n.inputs.begin(), n.inputs.end(), is_single);
    const Node* concat = joined == n.inputs.end() ? nullptr : from.producer(*joined);
    if (concat == nullptr || !concat->is(concat_def) || uses[joined->id] != 1 ||
        from.type(*joined).dims != from.type(n.outputs[0]).dims ||
        !std::all_of(joined + 1, n.inputs.end(), is_single)) {
        return std::nullopt;
    }
    for (Value part : concat->inputs) {
        const Node* p = from.producer(part);
        if (p != nullptr && !p->is(map_def) && uses[part.id] == 1) {
            return std::nullopt;
        }
    }
    Node now = r.current(*concat);
    Values operands(in.begin(), in.end());
    Values parts;
    for (Value part : now.inputs) {
        operands[static_cast<size_t>(joined - n.inputs.begin())] = part;
        parts.push_back(out.add1(map_def, n.as<Map>(), std::span<const Value>(operands)));
    }
    return out.add(*now.def, now.attrs, parts);
}

Graph lifted(const Graph& g) {
    std::vector<uint32_t> uses = use_counts(g);
    return dead_code(rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        auto lifted = lift(r, n, in, uses);
        return lifted ? lifted : lift_over_concat(r, n, in, uses);
    }));
}

} // namespace

Pass lift_maps(const KernelSet&) {
    return {
        .name = "lift_maps",
        .summary = "maps move before the views that part them from a kernel",
        .run = [](const Graph& g, const PassOptions&) { return lifted(g); },
        .structural = true,
    };
}

} // namespace ingot::plan
