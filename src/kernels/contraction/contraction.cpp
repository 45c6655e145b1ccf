// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/contraction.h"

#include "base/error.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::kernels {

int64_t Loops::count() const {
    int64_t n = 1;
    for (int64_t s : sizes) {
        n *= s;
    }
    return n;
}

void fill(Loops& loops, size_t stored) {
    loops.stored.resize(stored);
    if (loops.sizes.empty()) {
        loops.sizes = {1};
        loops.a = {0};
        loops.b = {0};
        for (Shape& s : loops.stored) {
            s = {0};
        }
    }
}

void merge(Loops& loops) {
    auto pad = [&loops](Shape s) {
        s.resize(loops.sizes.size(), 0);
        return s;
    };
    std::vector<View> views = {{loops.sizes, pad(loops.a)}, {loops.sizes, pad(loops.b)}};
    for (const Shape& s : loops.stored) {
        views.push_back({loops.sizes, pad(s)});
    }
    // In the memory order of the operand that has them, so that more of them merge.
    const View& leading = loops.a.empty() ? views[1] : views[0];
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(leading));
    loops.sizes = nest.sizes;
    loops.a = nest.strides[0];
    loops.b = nest.strides[1];
    for (size_t v = 0; v < loops.stored.size(); ++v) {
        loops.stored[v] = nest.strides[v + 2];
    }
    fill(loops, loops.stored.size());
}

namespace {

bool contains(const std::vector<int64_t>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Adds the next axis of the result, of which `loops` has `size`.
void add_stored(Loops& loops, const Contraction& c, size_t axis) {
    size_t views = c.epilogue.operands.size() + 1;
    loops.stored.resize(views);
    loops.stored[0].push_back(c.out.view.strides[axis]);
    for (size_t v = 1; v < views; ++v) {
        loops.stored[v].push_back(c.epilogue.operands[v - 1].view.strides[axis]);
    }
}

void pair_axes(Loops& loops, const View& a, const View& b, const std::vector<int64_t>& left,
               const std::vector<int64_t>& right) {
    for (size_t i = 0; i < left.size(); ++i) {
        auto l = static_cast<size_t>(left[i]);
        auto r = static_cast<size_t>(right[i]);
        require(a.shape[l] == b.shape[r], ErrorCode::InvalidArgument, "dot of ", a.shape, " and ",
                b.shape, ": axis ", l, " of the first is paired with axis ", r,
                " of the second, but their sizes differ");
        loops.sizes.push_back(a.shape[l]);
        loops.a.push_back(a.strides[l]);
        loops.b.push_back(b.strides[r]);
    }
}

/// Keeps the first half of the last axis; returns the distance to b's second half.
int64_t halve(Loops& columns) {
    int64_t size = columns.sizes.back() / 2;
    columns.sizes.back() = size;
    return size * columns.b.back();
}

/// Adds an innermost axis along which only b moves.
void append_axis(Loops& loops, int64_t size, int64_t b) {
    loops.sizes.push_back(size);
    loops.a.push_back(0);
    loops.b.push_back(b);
    for (Shape& s : loops.stored) {
        s.push_back(0);
    }
}

/// Rows of a along two axes that do not lie as one (a part of each of several sequences) become a
/// batch of rows, which TMA can load, where they fill tiles.
void rows_as_batch(Contraction& c) {
    constexpr int64_t fewest = 64;
    Loops& rows = c.rows;
    if (c.batch.count() != 1 || rows.rank() != 2 || rows.sizes[1] < fewest ||
        rows.a[0] == rows.a[1] * rows.sizes[1]) {
        return;
    }
    c.batch.sizes = {rows.sizes[0]};
    c.batch.a = {rows.a[0]};
    c.batch.b = {0};
    rows.sizes.erase(rows.sizes.begin());
    rows.a.erase(rows.a.begin());
    if (!rows.b.empty()) {
        rows.b.erase(rows.b.begin());
    }
    for (size_t i = 0; i < rows.stored.size(); ++i) {
        c.batch.stored[i] = {rows.stored[i][0]};
        rows.stored[i].erase(rows.stored[i].begin());
    }
}

} // namespace

Contraction contraction_of(const Problem& p) {
    return contraction_of(p, p.group.first().as<Dot>());
}

Contraction contraction_of(const Problem& p, const Dot& d) {
    const Node& n = p.group.first();
    Contraction c;
    c.a = p.operand(n.inputs[0]);
    c.b = p.operand(n.inputs[1]);
    c.out = p.out[0];
    c.b_constant = p.constants[static_cast<size_t>(p.group.input_index(n.inputs[1]))] != nullptr;
    c.epilogue = epilogue_of(p);
    c.backwards = p.backwards;
    const View& a = c.a.view;
    const View& b = c.b.view;
    size_t axis = 0;
    pair_axes(c.batch, a, b, d.a_batch, d.b_batch);
    for (; axis < d.a_batch.size(); ++axis) {
        add_stored(c.batch, c, axis);
    }
    for (int i = 0; i < a.rank(); ++i) {
        if (!contains(d.a_batch, i) && !contains(d.a_contract, i)) {
            c.rows.sizes.push_back(a.shape[static_cast<size_t>(i)]);
            c.rows.a.push_back(a.strides[static_cast<size_t>(i)]);
            add_stored(c.rows, c, axis++);
        }
    }
    for (int i = 0; i < b.rank(); ++i) {
        if (!contains(d.b_batch, i) && !contains(d.b_contract, i)) {
            c.columns.sizes.push_back(b.shape[static_cast<size_t>(i)]);
            c.columns.b.push_back(b.strides[static_cast<size_t>(i)]);
            add_stored(c.columns, c, axis++);
        }
    }
    int64_t half = c.paired() ? halve(c.columns) : 0;
    pair_axes(c.depth, a, b, d.a_contract, d.b_contract);
    size_t views = c.epilogue.operands.size() + 1;
    for (Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        fill(*l, l == &c.depth ? 0 : views);
        if (l->count() > 0) {
            merge(*l);
        }
    }
    rows_as_batch(c);
    if (c.paired()) {
        append_axis(c.columns, 2, half);
    }
    return c;
}

Contraction swapped(Contraction c) {
    std::swap(c.a, c.b);
    std::swap(c.rows, c.columns);
    c.b_constant = false;
    for (Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        std::swap(l->a, l->b);
    }
    return c;
}

std::string_view sum_c_type(DType a, DType b, DType result) {
    if (is_float(a)) {
        return a == DType::F64 ? "double" : "float";
    }
    bool small = bit_width(a) <= 8 && bit_width(b) <= 8;
    return small || bit_width(result) <= 32 ? "u32" : "u64";
}

bool all_multiples(const Shape& strides, int64_t n) {
    return std::all_of(strides.begin(), strides.end(), [n](int64_t s) { return s % n == 0; });
}

int64_t reach(const Loops& loops, const Shape& strides) {
    int64_t sum = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
        if (strides[i] < 0) {
            return -1;
        }
        sum += (loops.sizes[i] - 1) * strides[i];
    }
    return sum;
}

} // namespace ingot::kernels
