// SPDX-License-Identifier: Apache-2.0
// Rules for values put together from regions of another one: `x[:, 1:] += y` is exported as what
// lies before the slice, beside the slice with y added.
#include "passes/match.h"
#include "passes/regions.h"
#include "passes/simplify.h"

#include <array>

namespace ingot::passes {

namespace {

/// A region with something added: views of an addition that has a region of `base` as an operand.
/// Nodes are copies: those of a graph move when it grows.
struct Increased {
    Region region;
    std::vector<Node> views;
    Node sum;
    size_t operand = 0; // of the sum: the region
};

std::optional<Increased> increased(const Graph& g, Value v, Value base) {
    Viewed views = viewed(g, v);
    const Node* sum = g.producer(views.base);
    if (sum == nullptr || !is_addition(*sum)) {
        return std::nullopt;
    }
    for (size_t k = 0; k < 2; ++k) {
        std::optional<Region> r = g.type(sum->inputs[k]).dims == g.type(views.base).dims
                                      ? region_of(g, sum->inputs[k])
                                      : std::nullopt;
        r = r && r->base == base ? views.region(g, std::move(*r)) : std::nullopt;
        if (r) {
            Increased out{std::move(*r), {}, *sum, k};
            for (const Node* n : views.views) {
                out.views.push_back(*n);
            }
            return out;
        }
    }
    return std::nullopt;
}

/// The value that the sum adds, with the axes of the base and with nothing added before and
/// behind it along `axis` of it.
Value padded(Graph& g, const Increased& part, size_t axis, const Dim& before, const Dim& behind) {
    const Dims dims = g.type(part.sum.outputs[0]).dims;
    Value v = ops::broadcast_to(g, part.sum.inputs[1 - part.operand], dims);
    for (const Node& n : part.views) {
        v = g.add(*n.def, n.attrs, Values{v})[0];
    }
    v = as_in_base(g, part.region, v);
    if (std::optional<Region> r = region_of(g, v)) { // one slice, which may be that of a pad
        const Dims seen = g.type(v).dims;
        v = as_viewed(g, *r, sliced(g, *r), seen);
    }
    Dims low(part.region.sizes.size(), 0);
    Dims high = low;
    low[axis] = before;
    high[axis] = behind;
    return ops::pad(g, v, low, high, -0.0); // which changes no number, not even -0
}

/// The region that the parts make, `part` in the place of parts[with]; what is before and behind
/// it.
struct Whole {
    Region region;
    Dim before = 0, behind = 0;
};

std::optional<Whole> whole_of(const Graph& g, std::span<const Value> parts, size_t axis,
                              size_t with, const Region& part) {
    std::optional<Region> all;
    Whole out;
    for (size_t i = 0; i < parts.size(); ++i) {
        std::optional<Region> r = i == with ? part : region_of(g, parts[i]);
        all = i == 0 ? r : r ? joined(*all, *r, axis) : std::nullopt;
        if (!all) {
            return std::nullopt;
        }
        Dim& side = i < with ? out.before : out.behind;
        side = i == with ? side : side + g.type(parts[i]).dims[axis];
    }
    out.region = std::move(*all);
    return out;
}

std::optional<Values> concat_with_sum(Site& s) {
    auto sum = sum_of_regions(s.g(), s.inputs(), static_cast<size_t>(s.as<Concat>().axis));
    return sum ? std::optional(Values{*sum}) : std::nullopt;
}

} // namespace

std::optional<Value> sum_of_regions(Graph& g, std::span<const Value> parts, size_t axis) {
    for (size_t with = 0; with < parts.size() && parts.size() > 1; ++with) {
        Value base = viewed(g, parts[with == 0 ? 1 : 0]).base;
        const Node* product = g.producer(base);
        std::optional<Increased> part = product != nullptr && product->is(dot_def)
                                            ? increased(g, parts[with], base)
                                            : std::nullopt;
        std::optional<Whole> all =
            part ? whole_of(g, parts, axis, with, part->region) : std::nullopt;
        if (!all) {
            continue;
        }
        Dims dims = g.type(parts[with]).dims;
        dims[axis] = all->before + dims[axis] + all->behind;
        auto along = static_cast<size_t>(all->region.axes[axis]);
        std::array<Value, 2> operands;
        operands[part->operand] = sliced(g, all->region);
        operands[1 - part->operand] = padded(g, *part, along, all->before, all->behind);
        Value sum = g.add(map_def, part->sum.attrs, operands)[0];
        return as_viewed(g, all->region, sum, dims);
    }
    return std::nullopt;
}

Rules region_rules() {
    static const RuleRow rows[] = {{&concat_def, concat_with_sum}};
    return rows;
}

} // namespace ingot::passes
