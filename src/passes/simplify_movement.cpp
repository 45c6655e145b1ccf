// SPDX-License-Identifier: Apache-2.0
// Rules for data movement and reductions: empty pads and concats, gathers that are slices, scatters
// that are concats, reductions over axes of one element.
#include "passes/affine_index.h"
#include "passes/dims_util.h"
#include "passes/regions.h"
#include "passes/simplify.h"

#include <algorithm>

namespace ingot::passes {

namespace {

bool is_zero(const Dim& d) {
    return d.is_const(0);
}

// --- pad

std::optional<Values> pad_of_nothing(Site& s) {
    const Pad& a = s.as<Pad>();
    bool nothing = std::all_of(a.low.begin(), a.low.end(), is_zero) &&
                   std::all_of(a.high.begin(), a.high.end(), is_zero);
    return nothing ? std::optional(Values{s.in()}) : std::nullopt;
}

std::optional<Values> pad_of_pad(Site& s) {
    const Node* p = s.producer(0, pad_def);
    Pad a = s.as<Pad>();
    if (p == nullptr || a.mode != "constant" || p->as<Pad>().mode != "constant") {
        return std::nullopt;
    }
    const Tensor* value = s.g().constant(s.in(1));
    const Tensor* inner = s.g().constant(p->inputs[1]);
    bool same =
        p->inputs[1] == s.in(1) || (value != nullptr && inner != nullptr && *value == *inner);
    if (!same) {
        return std::nullopt;
    }
    for (size_t i = 0; i < a.low.size(); ++i) {
        a.low[i] = a.low[i] + p->as<Pad>().low[i];
        a.high[i] = a.high[i] + p->as<Pad>().high[i];
    }
    return Values{s.g().add1(pad_def, a, {p->inputs[0], s.in(1)})};
}

// --- concat

// Two regions of one value that are adjacent along `axis`, as one value.
std::optional<Value> joined(Graph& g, Value a, Value b, size_t axis) {
    std::optional<Region> x = region_of(g, a);
    std::optional<Region> y = region_of(g, b);
    std::optional<Region> both = x && y ? joined(*x, *y, axis) : std::nullopt;
    if (!both) {
        return std::nullopt;
    }
    Dims dims = g.type(a).dims;
    dims[axis] = dims[axis] + g.type(b).dims[axis];
    return as_viewed(g, *both, sliced(g, *both), dims);
}

// Appends an operand, or its parts.
void append_part(Site& s, Value v, size_t axis, Values& out) {
    Graph& g = s.g();
    if (g.type(v).dims[axis].is_const(0)) {
        return;
    }
    const Node* p = s.produced(v, concat_def);
    if (p != nullptr && static_cast<size_t>(p->as<Concat>().axis) == axis && s.uses(v) <= 1) {
        out.insert(out.end(), p->inputs.begin(), p->inputs.end());
        return;
    }
    auto both = out.empty() ? std::nullopt : joined(g, out.back(), v, axis);
    if (both) {
        out.back() = *both;
        return;
    }
    out.push_back(v);
}

std::optional<Values> shorter_concat(Site& s) {
    auto axis = static_cast<size_t>(s.as<Concat>().axis);
    Values parts;
    for (Value v : s.inputs()) {
        append_part(s, v, axis, parts);
    }
    if (parts.empty()) {
        parts.push_back(s.in());
    }
    if (std::equal(parts.begin(), parts.end(), s.inputs().begin(), s.inputs().end())) {
        return s.input_count() == 1 ? std::optional(Values{s.in()}) : std::nullopt;
    }
    Value v = ops::concat(s.g(), parts, s.as<Concat>().axis);
    return s.g().type(v) == s.result() ? std::optional(Values{v}) : std::nullopt;
}

// --- gather

std::optional<Progression> constant_progression(const Tensor& t) {
    Progression p{t.count() == 0 ? 0 : t.get_i64(0), 1, t.count()};
    if (t.count() > 1) {
        p.step = t.get_i64(1) - t.get_i64(0);
    }
    for (int64_t i = 1; i < t.count(); ++i) {
        if (t.get_i64(i) != t.get_i64(i - 1) + p.step) {
            return std::nullopt;
        }
    }
    return p.step == 0 ? std::nullopt : std::optional(p);
}

// x + c or x - c in the integers, or a conversion between i32 and i64.
std::optional<Progression> mapped_progression(const Graph& g, const Node& n) {
    const Map& m = n.as<Map>();
    const auto& code = m.body.code;
    if (n.inputs.size() != 1 || code.size() > 3 || !is_integer(m.dtype) ||
        bit_width(m.dtype) < 32) {
        return std::nullopt;
    }
    auto p = progression(g, n.inputs[0]);
    if (!p || code.size() == 1) {
        return p;
    }
    const ExprInstr& last = code.back();
    if (code.size() == 2) {
        return last.op == ExprOp::Cast ? p : std::nullopt;
    }
    bool shifts = (last.op == ExprOp::Add || last.op == ExprOp::Sub) && last.args[0] == 0 &&
                  last.args[1] == 1 && code[0].op == ExprOp::In && code[1].op == ExprOp::Const;
    if (!shifts) {
        return std::nullopt;
    }
    Dim c = code[1].imm;
    p->start = last.op == ExprOp::Add ? p->start + c : p->start - c;
    return p;
}

// Indices start, start + step, ... along `axis`, in the shape of `indices`.
Value progression_slice(Graph& g, Value x, int64_t axis, const Progression& p,
                        const Dims& indices) {
    Value v = ops::slice(g, x, axis, p.start, p.count, p.step);
    Dims dims = g.type(v).dims;
    dims.erase(dims.begin() + axis);
    dims.insert(dims.begin() + axis, indices.begin(), indices.end());
    return ops::reshape(g, v, dims);
}

std::optional<Values> gather_of_progression(Site& s) {
    int64_t axis = s.as<Gather>().axis;
    auto p = progression(s.g(), s.in(1));
    const Dim& size = s.in_type().dims[static_cast<size_t>(axis)];
    if (!p || p->count.is_const(0)) {
        return std::nullopt;
    }
    // An out-of-range index must still fail at run time.
    Dim last = p->start + (p->count - Dim(1)) * Dim(p->step);
    bool checked = p->start.is_const() && last.is_const() && size.is_const();
    auto outside = [&](const Dim& i) { return i.value() < 0 || i.value() >= size.value(); };
    if (checked && (outside(p->start) || outside(last))) {
        return std::nullopt;
    }
    return Values{progression_slice(s.g(), s.in(), axis, *p, s.in_type(1).dims)};
}

// A gather of a whole axis, in order, in the shape of the indices.
std::optional<Values> gather_of_all(Site& s) {
    auto axis = static_cast<size_t>(s.as<Gather>().axis);
    auto index = affine_index(s.g(), s.in(1));
    if (!index || !index->offset.is_const(0)) {
        return std::nullopt;
    }
    const Dims& shape = s.in_type(1).dims;
    Dim count = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (!shape[i].is_const(1) && !(index->strides[i] == count)) {
            return std::nullopt;
        }
        count = count * shape[i];
    }
    return count == s.in_type().dims[axis]
               ? std::optional(Values{ops::reshape(s.g(), s.in(), s.result().dims)})
               : std::nullopt;
}

// Repeats rows after the gather, not before.
std::optional<Values> gather_of_broadcast(Site& s) {
    const Node* p = s.producer(1, broadcast_def);
    if (p == nullptr || s.as<Gather>().axis != 0) {
        return std::nullopt;
    }
    Value rows = ops::gather(s.g(), s.in(), p->inputs[0], 0);
    return Values{ops::broadcast_to(s.g(), rows, s.result().dims)};
}

// The element that a value repeats, else null.
const Tensor* repeated_scalar(const Site& s, Value v) {
    const Node* p = s.produced(v, broadcast_def);
    const Tensor* t = s.g_const().constant(p == nullptr ? v : p->inputs[0]);
    return t != nullptr && t->count() == 1 ? t : nullptr;
}

Value repeated(Site& s, const Tensor& scalar) {
    return ops::broadcast_to(s.g(), ops::constant(s.g(), scalar.reshaped({})), s.result().dims);
}

// A gather from one repeated number gives that number.
std::optional<Values> gather_of_scalar(Site& s) {
    const Tensor* t = repeated_scalar(s, s.in());
    return t != nullptr ? std::optional(Values{repeated(s, *t)}) : std::nullopt;
}

// --- scatter

// Rows that follow each other, written over a quarter of x or more: those before, them, and those
// behind. (Few rows are written in place.)
std::optional<Values> scatter_of_progression(Site& s) {
    auto p = progression(s.g(), s.in(1));
    const Dim& rows = s.in_type().dims[0];
    bool known = p && p->start.is_const() && p->count.is_const() && rows.is_const();
    if (!known || s.as<Scatter>().fn != "none" || p->step != 1 || s.in_type(1).rank() != 1) {
        return std::nullopt;
    }
    int64_t end = p->start.value() + p->count.value();
    if (p->start.value() < 0 || end > rows.value() || 4 * p->count.value() < rows.value()) {
        return std::nullopt;
    }
    Graph& g = s.g();
    Value before = ops::slice(g, s.in(), 0, 0, p->start);
    Value behind = ops::slice(g, s.in(), 0, end, rows.value() - end);
    Values parts = {before, s.in(2), behind};
    parts.erase(std::remove_if(parts.begin(), parts.end(),
                               [&g](Value v) { return g.type(v).dims[0].is_const(0); }),
                parts.end());
    auto sum = sum_of_regions(g, parts, 0);
    return Values{sum ? *sum : ops::concat(g, parts, 0)};
}

// The updates of n scatters of which each writes every nth row, in the order of their first rows.
std::optional<Values> interleaved_updates(const Graph& g, const Node& last, int64_t n) {
    const Dim& rows = g.type(last.inputs[0]).dims[0];
    std::vector<std::optional<Value>> updates(static_cast<size_t>(n));
    const Node* at = &last;
    for (int64_t i = 0; i < n; ++i) {
        bool written = at != nullptr && at->is(scatter_def) && at->as<Scatter>().fn == "none" &&
                       g.type(at->inputs[1]).rank() == 1;
        auto p = written ? progression(g, at->inputs[1]) : std::nullopt;
        bool in_turn = p && p->step == n && p->count * Dim(n) == rows && p->start.is_const() &&
                       p->start.value() >= 0 && p->start.value() < n;
        if (!in_turn || updates[static_cast<size_t>(p->start.value())]) {
            return std::nullopt;
        }
        updates[static_cast<size_t>(p->start.value())] = at->inputs[2];
        at = g.producer(at->inputs[0]);
    }
    Values out;
    for (const auto& u : updates) {
        out.push_back(*u);
    }
    return out;
}

// The operands of the permutations that make the values, if these are the same; else empty.
Values unpermuted(const Graph& g, const Values& values, std::vector<int64_t>& perm) {
    Values out;
    for (Value v : values) {
        const Node* p = g.producer(v);
        bool same =
            p != nullptr && p->is(permute_def) && (out.empty() || p->as<Permute>().perm == perm);
        if (!same) {
            return {};
        }
        perm = p->as<Permute>().perm;
        out.push_back(p->inputs[0]);
    }
    return out;
}

constexpr int64_t max_in_turn = 8;

// x[0::n] = a, x[1::n] = b, ... until no row of x is left: the rows of a, b, ... in turn. Exporters
// move the axis that is written to the front and back.
std::optional<Values> scatters_in_turn(Site& s) {
    auto p = progression(s.g(), s.in(1));
    auto updates = p && p->step > 1 && p->step <= max_in_turn
                       ? interleaved_updates(s.g(), s.node(), p->step)
                       : std::nullopt;
    if (!updates) {
        return std::nullopt;
    }
    Graph& g = s.g();
    std::vector<int64_t> perm;
    Values parts = unpermuted(g, *updates, perm);
    bool permuted = !parts.empty();
    parts = permuted ? parts : *updates;
    int64_t axis = permuted ? perm[0] : 0;
    Dims dims = g.type(parts[0]).dims;
    dims[static_cast<size_t>(axis)] = s.in_type().dims[0];
    for (Value& v : parts) {
        v = ops::unsqueeze(g, v, {axis + 1});
    }
    Value whole = ops::reshape(g, ops::concat(g, parts, axis + 1), dims);
    return Values{permuted ? ops::permute(g, whole, perm) : whole};
}

// --- reductions

std::optional<Values> reduce_of_one(Site& s) {
    const Reduce& a = s.as<Reduce>();
    const Dims& in = s.in_type().dims;
    if (a.axes.empty()) {
        return Values{s.in()};
    }
    Dims kept;
    std::vector<int64_t> axes;
    for (size_t i = 0; i < in.size(); ++i) {
        bool reduced = std::binary_search(a.axes.begin(), a.axes.end(), static_cast<int64_t>(i));
        if (reduced && in[i].is_const(1)) {
            continue;
        }
        if (reduced) {
            axes.push_back(static_cast<int64_t>(kept.size()));
        }
        kept.push_back(in[i]);
    }
    if (axes.size() == a.axes.size()) {
        return std::nullopt;
    }
    return Values{ops::reduce(s.g(), a.fn, ops::reshape(s.g(), s.in(), kept), axes)};
}

std::optional<Values> reduce_of_extremes(Site& s) {
    const Reduce& a = s.as<Reduce>();
    const Node* p = s.producer(0, reduce_def);
    if (p == nullptr || (a.fn != "min" && a.fn != "max") || p->as<Reduce>().fn != a.fn) {
        return std::nullopt;
    }
    std::vector<int64_t> all = p->as<Reduce>().axes;
    std::vector<int64_t> left;
    for (int64_t i = 0; i < s.g().type(p->inputs[0]).rank(); ++i) {
        if (!std::binary_search(p->as<Reduce>().axes.begin(), p->as<Reduce>().axes.end(), i)) {
            left.push_back(i);
        }
    }
    for (int64_t axis : a.axes) {
        all.push_back(left[static_cast<size_t>(axis)]);
    }
    return Values{ops::reduce(s.g(), a.fn, p->inputs[0], all)};
}

std::optional<Values> arg_reduce_of_one(Site& s) {
    if (!s.in_type().dims[static_cast<size_t>(s.as<ArgReduce>().axis)].is_const(1)) {
        return std::nullopt;
    }
    return Values{ops::full(s.g(), DType::I64, s.result().dims, 0)};
}

std::optional<Values> scan_of_one(Site& s) {
    const Scan& a = s.as<Scan>();
    if (a.exclusive || !s.in_type().dims[static_cast<size_t>(a.axis)].is_const(1)) {
        return std::nullopt;
    }
    return Values{s.in()};
}

// Sums of zeros.
std::optional<Values> scan_of_zeros(Site& s) {
    const Tensor* t = repeated_scalar(s, s.in());
    bool zeros = t != nullptr && s.as<Scan>().fn == "sum" && t->get_f64(0) == 0;
    return zeros ? std::optional(Values{repeated(s, *t)}) : std::nullopt;
}

std::optional<Values> pool_of_one(Site& s) {
    const ops::Pool& a = s.as<ops::Pool>();
    auto one = [](int64_t v) { return v == 1; };
    bool nothing = std::all_of(a.sizes.begin(), a.sizes.end(), one) &&
                   std::all_of(a.strides.begin(), a.strides.end(), one) &&
                   s.result() == s.in_type() && std::all_of(a.low.begin(), a.low.end(), is_zero);
    return nothing ? std::optional(Values{s.in()}) : std::nullopt;
}

} // namespace

std::optional<Progression> progression(const Graph& g, Value v) {
    const Type& t = g.type(v);
    if (const Tensor* c = g.constant(v)) {
        return constant_progression(*c);
    }
    if (HostRef host = g.host(v); host != nullptr && host->elements.size() == 1) {
        auto d = host->dims();
        return d ? std::optional(Progression{(*d)[0], 1, 1}) : std::nullopt;
    }
    const Node* n = g.producer(v);
    if (n == nullptr) {
        return std::nullopt;
    }
    if (n->is(iota_def) && is_integer(t.dtype)) {
        Dim size = n->as<Iota>().dims[static_cast<size_t>(n->as<Iota>().axis)];
        return size == product(t.dims) ? std::optional(Progression{0, 1, size}) : std::nullopt;
    }
    if (n->is(reshape_def)) {
        return progression(g, n->inputs[0]);
    }
    if (n->is(map_def)) {
        return mapped_progression(g, *n);
    }
    if (n->is(slice_def)) {
        const Slice& a = n->as<Slice>();
        auto p = progression(g, n->inputs[0]);
        size_t axis = 0;
        while (axis + 1 < a.sizes.size() && g.type(n->inputs[0]).dims[axis].is_const(1)) {
            ++axis;
        }
        if (!p || !(g.type(n->inputs[0]).dims[axis] == p->count)) {
            return std::nullopt;
        }
        return Progression{p->start + a.starts[axis] * Dim(p->step), p->step * a.steps[axis],
                           a.sizes[axis]};
    }
    return std::nullopt;
}

Rules movement_rules() {
    static const RuleRow rows[] = {
        {&pad_def, pad_of_nothing},           {&pad_def, pad_of_pad},
        {&concat_def, shorter_concat},        {&gather_def, gather_of_progression},
        {&gather_def, gather_of_all},         {&gather_def, gather_of_broadcast},
        {&reduce_def, reduce_of_one},         {&reduce_def, reduce_of_extremes},
        {&arg_reduce_def, arg_reduce_of_one}, {&scan_def, scan_of_one},
        {&scan_def, scan_of_zeros},           {&gather_def, gather_of_scalar},
        {&ops::pool_def, pool_of_one},        {&scatter_def, scatter_of_progression},
        {&scatter_def, scatters_in_turn},
    };
    return rows;
}

} // namespace ingot::passes
