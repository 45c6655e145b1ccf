// SPDX-License-Identifier: Apache-2.0
#include "passes/regions.h"

#include "ops/ops.h"

#include <algorithm>

namespace ingot::passes {

namespace {

Region whole(const Graph& g, Value v) {
    const Dims& dims = g.type(v).dims;
    Region r{v, Dims(dims.size(), 0), dims, std::vector<int64_t>(dims.size(), 1), {}};
    for (size_t i = 0; i < dims.size(); ++i) {
        r.axes.push_back(static_cast<int64_t>(i));
    }
    return r;
}

bool slice(Region& r, const Slice& a) {
    for (size_t i = 0; i < r.axes.size(); ++i) {
        if (r.axes[i] < 0) {
            if (!a.sizes[i].is_const(1)) {
                return false;
            }
            continue;
        }
        auto axis = static_cast<size_t>(r.axes[i]);
        r.starts[axis] = r.starts[axis] + a.starts[i] * Dim(r.steps[axis]);
        r.sizes[axis] = a.sizes[i];
        if (__builtin_mul_overflow(r.steps[axis], a.steps[i], &r.steps[axis])) {
            return false;
        }
    }
    return true;
}

/// Whether the reshape adds and removes axes of one element alone.
bool reshape(Region& r, const Dims& from, const Dims& to) {
    std::vector<int64_t> axes;
    size_t next = 0;
    auto skip_ones = [&] {
        while (next < from.size() && from[next].is_const(1)) {
            ++next;
        }
    };
    for (const Dim& d : to) {
        if (d.is_const(1)) {
            axes.push_back(-1);
            continue;
        }
        skip_ones();
        if (next == from.size() || !(from[next] == d)) {
            return false;
        }
        axes.push_back(r.axes[next++]);
    }
    skip_ones();
    r.axes = std::move(axes);
    return next == from.size();
}

bool view(Region& r, const Graph& g, const Node& n) {
    if (n.is(slice_def)) {
        return slice(r, n.as<Slice>());
    }
    if (n.is(permute_def)) {
        std::vector<int64_t> axes;
        for (int64_t axis : n.as<Permute>().perm) {
            axes.push_back(r.axes[static_cast<size_t>(axis)]);
        }
        r.axes = std::move(axes);
        return true;
    }
    return reshape(r, g.type(n.inputs[0]).dims, g.type(n.outputs[0]).dims);
}

bool is_one(const Region& r, size_t axis) {
    return r.axes[axis] < 0 || r.sizes[static_cast<size_t>(r.axes[axis])].is_const(1);
}

/// Whether both see the same axes, but for those of one element: of both, or of either at `axis`.
bool same_axes(const Region& a, const Region& b, size_t axis) {
    for (size_t i = 0; i < a.axes.size(); ++i) {
        bool ones = i == axis ? a.axes[i] < 0 || b.axes[i] < 0 : is_one(a, i) && is_one(b, i);
        if (a.axes[i] != b.axes[i] && !ones) {
            return false;
        }
    }
    return true;
}

/// The axes of the base in the order in which they are seen, then those of one element that are
/// not.
std::vector<int64_t> seen_order(const Region& r) {
    std::vector<int64_t> order;
    std::copy_if(r.axes.begin(), r.axes.end(), std::back_inserter(order),
                 [](int64_t axis) { return axis >= 0; });
    for (size_t i = 0; i < r.sizes.size(); ++i) {
        auto axis = static_cast<int64_t>(i);
        if (std::find(r.axes.begin(), r.axes.end(), axis) == r.axes.end()) {
            order.push_back(axis);
        }
    }
    return order;
}

} // namespace

std::optional<Region> Viewed::region(const Graph& g, Region r) const {
    bool ok =
        std::all_of(views.begin(), views.end(), [&](const Node* n) { return view(r, g, *n); });
    return ok ? std::optional(std::move(r)) : std::nullopt;
}

Viewed viewed(const Graph& g, Value v) {
    Viewed out{v, {}};
    for (const Node* n = g.producer(v);
         n != nullptr && (n->is(slice_def) || n->is(permute_def) || n->is(reshape_def));
         n = g.producer(out.base)) {
        out.views.push_back(n);
        out.base = n->inputs[0];
    }
    std::reverse(out.views.begin(), out.views.end());
    return out;
}

std::optional<Region> region_of(const Graph& g, Value v) {
    Viewed views = viewed(g, v);
    return views.region(g, whole(g, views.base));
}

std::optional<Region> joined(const Region& a, const Region& b, size_t axis) {
    int64_t seen = std::max(a.axes[axis], b.axes[axis]); // a region of one element may see none
    if (a.base != b.base || seen < 0 || !same_axes(a, b, axis) || a.steps != b.steps) {
        return std::nullopt;
    }
    auto along = static_cast<size_t>(seen);
    for (size_t i = 0; i < a.sizes.size(); ++i) {
        bool fits = i == along ? a.steps[i] == 1 && b.starts[i] == a.starts[i] + a.sizes[i]
                               : b.starts[i] == a.starts[i] && b.sizes[i] == a.sizes[i];
        if (!fits) {
            return std::nullopt;
        }
    }
    Region out = a;
    out.axes[axis] = seen;
    out.sizes[along] = out.sizes[along] + b.sizes[along];
    return out;
}

Value sliced(Graph& g, const Region& r) {
    return g.add1(slice_def, Slice{r.starts, r.sizes, r.steps}, {r.base});
}

Value as_viewed(Graph& g, const Region& r, Value v, const Dims& dims) {
    return ops::reshape(g, ops::permute(g, v, seen_order(r)), dims);
}

Value as_in_base(Graph& g, const Region& r, Value v) {
    std::vector<int64_t> order = seen_order(r);
    std::vector<int64_t> back(order.size());
    Dims dims = g.type(v).dims;
    Dims seen;
    for (size_t i = 0; i < order.size(); ++i) {
        auto axis = static_cast<size_t>(order[i]);
        back[axis] = static_cast<int64_t>(i);
        auto at = std::find(r.axes.begin(), r.axes.end(), order[i]);
        seen.push_back(at == r.axes.end() ? Dim(1)
                                          : dims[static_cast<size_t>(at - r.axes.begin())]);
    }
    return ops::permute(g, ops::reshape(g, v, seen), back);
}

} // namespace ingot::passes
