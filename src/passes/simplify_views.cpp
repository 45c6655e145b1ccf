// SPDX-License-Identifier: Apache-2.0
// Rules for views: chains of reshapes, permutations, broadcasts and slices.
#include "passes/dims_util.h"
#include "passes/simplify.h"

namespace ingot::passes {

namespace {

// --- reshape

std::optional<Values> reshape_of_nothing(Site& s) {
    if (s.as<Reshape>().dims == s.in_type().dims) {
        return Values{s.in()};
    }
    const Node* p = s.producer(0, reshape_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    // Each step may hold for some sizes, both for none: that fails when it runs, where it stands.
    Dim more = product(s.as<Reshape>().dims) - product(s.g().type(p->inputs[0]).dims);
    if (more.is_const() && !more.is_const(0)) {
        return std::nullopt;
    }
    return Values{ops::reshape(s.g(), p->inputs[0], s.as<Reshape>().dims)};
}

// Values that are stacked on a new axis, which then joins the next one: a concat.
std::optional<Values> reshape_of_stack(Site& s) {
    const Node* p = s.producer(0, concat_def);
    size_t axis = p == nullptr ? 0 : static_cast<size_t>(p->as<Concat>().axis);
    if (p == nullptr || axis + 1 >= s.in_type().dims.size()) {
        return std::nullopt;
    }
    auto joined = [axis](Dims d) {
        d[axis + 1] = d[axis] * d[axis + 1];
        d.erase(d.begin() + static_cast<int64_t>(axis));
        return d;
    };
    Values parts;
    for (Value v : p->inputs) {
        const Node* part = s.produced(v, reshape_def);
        if (part == nullptr || !(s.g().type(part->inputs[0]).dims == joined(s.g().type(v).dims))) {
            return std::nullopt;
        }
        parts.push_back(part->inputs[0]);
    }
    bool fits = s.as<Reshape>().dims == joined(s.in_type().dims);
    return fits ? std::optional(Values{ops::concat(s.g(), parts, static_cast<int64_t>(axis))})
                : std::nullopt;
}

// The atoms that an axis of the permuted shape spans, given how many each axis before it spans.
std::vector<int64_t> permuted_atoms(const std::vector<size_t>& spans,
                                    const std::vector<int64_t>& perm) {
    std::vector<size_t> first(spans.size(), 0);
    for (size_t i = 1; i < spans.size(); ++i) {
        first[i] = first[i - 1] + spans[i - 1];
    }
    std::vector<int64_t> out;
    for (int64_t axis : perm) {
        for (size_t k = 0; k < spans[static_cast<size_t>(axis)]; ++k) {
            out.push_back(static_cast<int64_t>(first[static_cast<size_t>(axis)] + k));
        }
    }
    return out;
}

// Axes of a permuted shape as runs of atoms that are adjacent before the permutation too.
struct Runs {
    Dims dims;                 // of the runs in their old order
    std::vector<int64_t> perm; // from there to the permuted shape
};

// `perm` permutes `atoms`; `spans` counts the permuted atoms of each new axis.
std::optional<Runs> runs(const Dims& atoms, const std::vector<int64_t>& perm,
                         const std::vector<size_t>& spans) {
    std::vector<std::pair<int64_t, Dim>> groups; // first atom, size
    size_t at = 0;
    for (size_t span : spans) {
        Dim size = 1;
        for (size_t k = 0; k < span; ++k) {
            if (perm[at + k] != perm[at] + static_cast<int64_t>(k)) {
                return std::nullopt;
            }
            size = size * atoms[static_cast<size_t>(perm[at + k])];
        }
        if (span > 0) {
            groups.emplace_back(perm[at], size);
        }
        at += span;
    }
    Runs out;
    out.dims.resize(groups.size());
    for (const auto& [first, size] : groups) {
        int64_t before = 0;
        for (const auto& other : groups) {
            before += other.first < first ? 1 : 0;
        }
        out.perm.push_back(before);
        out.dims[static_cast<size_t>(before)] = size;
    }
    return out;
}

// reshape(permute(reshape(x))) where the last reshape joins only neighbours in x: becomes one
// reshape of x, the permutation, and perhaps a reshape that adds axes of size 1.
std::optional<Values> reshape_around_permute(Site& s) {
    const Node* permute = s.producer(0, permute_def);
    const Node* first = permute == nullptr ? nullptr : s.produced(permute->inputs[0], reshape_def);
    if (first == nullptr) {
        return std::nullopt;
    }
    Graph& g = s.g();
    Value x = first->inputs[0];
    const Dims from = g.type(x).dims;
    auto parts = refine(from, g.type(permute->inputs[0]).dims);
    if (!parts) {
        return std::nullopt;
    }
    std::vector<int64_t> perm = permuted_atoms(parts->b, permute->as<Permute>().perm);
    Dims moved;
    for (int64_t a : perm) {
        moved.push_back(parts->atoms[static_cast<size_t>(a)]);
    }
    const Dims& want = s.as<Reshape>().dims;
    auto joined = refine(moved, want);
    if (!joined || joined->atoms.size() != moved.size()) {
        return std::nullopt;
    }
    auto groups = runs(parts->atoms, perm, joined->b);
    if (!groups || (groups->dims != from && without_ones(want).size() != want.size())) {
        return std::nullopt;
    }
    Value v = ops::permute(g, ops::reshape(g, x, groups->dims), groups->perm);
    return Values{ops::reshape(g, v, want)};
}

// --- permute

std::optional<Values> permute_of_nothing(Site& s) {
    const std::vector<int64_t>& perm = s.as<Permute>().perm;
    if (is_identity(perm)) {
        return Values{s.in()};
    }
    if (const Node* p = s.producer(0, permute_def)) {
        std::vector<int64_t> both;
        for (int64_t axis : perm) {
            both.push_back(p->as<Permute>().perm[static_cast<size_t>(axis)]);
        }
        return Values{ops::permute(s.g(), p->inputs[0], both)};
    }
    int64_t last = -1;
    for (int64_t axis : perm) {
        if (s.in_type().dims[static_cast<size_t>(axis)].is_const(1)) {
            continue;
        }
        if (axis < last) {
            return std::nullopt;
        }
        last = axis;
    }
    return Values{ops::reshape(s.g(), s.in(), s.result().dims)};
}

// The operand of the permutation that makes v, or that v is a slice of: then sliced like v.
std::optional<Value> before_permute(Graph& g, Value v, const std::vector<int64_t>& perm) {
    const Node* slice = g.producer(v);
    slice = slice != nullptr && slice->is(slice_def) ? slice : nullptr;
    const Node* p = g.producer(slice == nullptr ? v : slice->inputs[0]);
    if (p == nullptr || !p->is(permute_def) || p->as<Permute>().perm != perm) {
        return std::nullopt;
    }
    if (slice == nullptr) {
        return p->inputs[0];
    }
    const Slice& a = slice->as<Slice>();
    Slice out = a;
    for (size_t i = 0; i < perm.size(); ++i) {
        auto axis = static_cast<size_t>(perm[i]);
        out.starts[axis] = a.starts[i];
        out.sizes[axis] = a.sizes[i];
        out.steps[axis] = a.steps[i];
    }
    return g.add1(slice_def, out, {p->inputs[0]});
}

// Permuted values that are concatenated and permuted back: a concat along another axis.
std::optional<Values> permute_of_concat(Site& s) {
    const Node* p = s.producer(0, concat_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    const std::vector<int64_t>& perm = s.as<Permute>().perm;
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    const Values operands = p->inputs;
    int64_t axis = back[static_cast<size_t>(p->as<Concat>().axis)];
    Values parts;
    for (Value v : operands) {
        auto part = before_permute(s.g(), v, back);
        if (!part) {
            return std::nullopt;
        }
        parts.push_back(*part);
    }
    return Values{ops::concat(s.g(), parts, axis)};
}

// --- broadcast

std::optional<Values> broadcast_of_nothing(Site& s) {
    const Dims& dims = s.as<Broadcast>().dims;
    if (dims == s.in_type().dims) {
        return Values{s.in()};
    }
    if (const Node* p = s.producer(0, broadcast_def)) {
        return Values{ops::broadcast_to(s.g(), p->inputs[0], dims)};
    }
    const Node* p = s.producer(0, reshape_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    // A reshape that only prepends ones, which broadcasting does too.
    const Dims& from = s.g().type(p->inputs[0]).dims;
    const Dims& to = s.in_type().dims;
    if (from.size() >= to.size() || !std::equal(from.rbegin(), from.rend(), to.rbegin())) {
        return std::nullopt;
    }
    for (size_t i = 0; i < to.size() - from.size(); ++i) {
        if (!to[i].is_const(1)) {
            return std::nullopt;
        }
    }
    return Values{ops::broadcast_to(s.g(), p->inputs[0], dims)};
}

// A repeated number in another shape.
std::optional<Values> view_of_scalar(Site& s) {
    const Node* p = s.producer(0, broadcast_def);
    const Tensor* t = p == nullptr ? nullptr : s.g().constant(p->inputs[0]);
    if (t == nullptr || t->count() != 1) {
        return std::nullopt;
    }
    Value one = ops::constant(s.g(), t->reshaped({}));
    return Values{ops::broadcast_to(s.g(), one, s.result().dims)};
}

// --- slice

bool is_whole(const Slice& a, const Dims& in, size_t axis) {
    return a.starts[axis].is_const(0) && a.steps[axis] == 1 && a.sizes[axis] == in[axis];
}

std::optional<Values> slice_of_nothing(Site& s) {
    const Slice& a = s.as<Slice>();
    for (size_t i = 0; i < a.sizes.size(); ++i) {
        if (!is_whole(a, s.in_type().dims, i)) {
            return std::nullopt;
        }
    }
    return Values{s.in()};
}

std::optional<Values> slice_of_slice(Site& s) {
    const Node* p = s.producer(0, slice_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    const Slice& inner = p->as<Slice>();
    Slice both = s.as<Slice>();
    for (size_t i = 0; i < both.sizes.size(); ++i) {
        both.starts[i] = inner.starts[i] + both.starts[i] * Dim(inner.steps[i]);
        if (__builtin_mul_overflow(both.steps[i], inner.steps[i], &both.steps[i])) {
            return std::nullopt;
        }
    }
    return Values{s.g().add1(slice_def, both, {p->inputs[0]})};
}

// The operand of a concat that contains elements start .. start + size - 1, and where it starts.
struct Part {
    Value value;
    Dim offset;
};

std::optional<Part> part_with(const Graph& g, const Node& concat, size_t axis, const Dim& start,
                              const Dim& size) {
    Dim offset = 0;
    for (Value v : concat.inputs) {
        Dim end = offset + g.type(v).dims[axis];
        if (always_le(offset, start) && always_le(start + size, end)) {
            return Part{v, offset};
        }
        offset = end;
    }
    return std::nullopt;
}

std::optional<Values> slice_of_concat(Site& s) {
    const Node* p = s.producer(0, concat_def);
    Slice a = s.as<Slice>();
    if (p == nullptr) {
        return std::nullopt;
    }
    auto axis = static_cast<size_t>(p->as<Concat>().axis);
    Dim first = a.starts[axis];
    Dim span = (a.sizes[axis] - Dim(1)) * Dim(a.steps[axis]) + Dim(1);
    if (a.steps[axis] < 0) {
        first = first + span - Dim(1);
        span = Dim(2) - span;
    }
    auto part = part_with(s.g(), *p, axis, first, span);
    if (!part) {
        return std::nullopt;
    }
    a.starts[axis] = a.starts[axis] - part->offset;
    return Values{s.g().add1(slice_def, a, {part->value})};
}

// A slice along repeated axes becomes a smaller repetition.
std::optional<Values> slice_of_broadcast(Site& s) {
    const Node* p = s.producer(0, broadcast_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    const Slice& a = s.as<Slice>();
    const Dims& to = s.in_type().dims;
    const Dims& from = s.g().type(p->inputs[0]).dims;
    size_t shift = to.size() - from.size();
    for (size_t i = 0; i < to.size(); ++i) {
        bool repeated = i < shift || from[i - shift].is_const(1);
        if (!repeated && !is_whole(a, to, i)) {
            return std::nullopt;
        }
    }
    return Values{ops::broadcast_to(s.g(), p->inputs[0], a.sizes)};
}

// A slice that has nothing of the padding, along the axes that it cuts.
std::optional<Values> slice_of_pad(Site& s) {
    const Node* p = s.producer(0, pad_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    Slice a = s.as<Slice>();
    Pad pad = p->as<Pad>();
    const Dims& whole = s.in_type().dims;
    const Dims& inner = s.g().type(p->inputs[0]).dims;
    bool padded = false, cut = false;
    for (size_t i = 0; i < a.sizes.size(); ++i) {
        if (is_whole(a, whole, i)) {
            a.sizes[i] = inner[i];
            padded = padded || !pad.low[i].is_const(0) || !pad.high[i].is_const(0);
            continue;
        }
        bool inside = a.steps[i] > 0 && always_le(pad.low[i], a.starts[i]) &&
                      always_le(a.starts[i] + (a.sizes[i] - Dim(1)) * Dim(a.steps[i]) + Dim(1),
                                pad.low[i] + inner[i]);
        if (!inside) {
            return std::nullopt;
        }
        a.starts[i] = a.starts[i] - pad.low[i];
        cut = cut || !pad.low[i].is_const(0) || !pad.high[i].is_const(0);
        pad.low[i] = pad.high[i] = 0;
    }
    if (!cut || (padded && pad.mode != "constant")) {
        return std::nullopt;
    }
    Values in = p->inputs;
    in[0] = s.g().add1(slice_def, a, {in[0]});
    return Values{padded ? s.g().add1(pad_def, pad, in) : in[0]};
}

// Merges axes `axis` and `axis + 1`, of which the slice takes one element of the inner one, or of
// the outer one.
std::optional<Slice> merged(const Slice& a, const Dims& in, size_t axis, bool inner_one) {
    const Dim& inner = in[axis + 1];
    Slice out = a;
    auto erase = [axis](auto& v) { v.erase(v.begin() + static_cast<int64_t>(axis)); };
    erase(out.starts);
    erase(out.sizes);
    erase(out.steps);
    out.starts[axis] = a.starts[axis] * inner + a.starts[axis + 1];
    if (inner_one) {
        out.sizes[axis] = a.sizes[axis];
        bool known = inner.is_const() &&
                     !__builtin_mul_overflow(a.steps[axis], inner.value(), &out.steps[axis]);
        return known ? std::optional(out) : std::nullopt;
    }
    return out;
}

// One element of the last axis, or of the one before, where a reshape made both of one axis:
// x[..., i::n] and the like.
std::optional<Values> slice_of_split_axis(Site& s) {
    const Node* p = s.producer(0, reshape_def);
    const Slice& a = s.as<Slice>();
    size_t rank = a.sizes.size();
    if (p == nullptr || rank < 2) {
        return std::nullopt;
    }
    const Dims in = s.in_type().dims;
    auto takes_one = [&](size_t i) { return a.sizes[i].is_const(1) && !in[i].is_const(1); };
    bool inner_one = takes_one(rank - 1);
    if (!inner_one && !takes_one(rank - 2)) {
        return std::nullopt;
    }
    Graph& g = s.g();
    Dims whole(in.begin(), in.end() - 1);
    whole.back() = in[rank - 2] * in[rank - 1];
    const Dims& from = g.type(p->inputs[0]).dims;
    bool split = !from.empty() && exact_quotient(from.back(), whole.back());
    auto narrow = split ? merged(a, in, rank - 2, inner_one) : std::nullopt;
    if (!narrow) {
        return std::nullopt;
    }
    Value x = ops::reshape(g, p->inputs[0], whole);
    return Values{ops::reshape(g, g.add1(slice_def, *narrow, {x}), s.result().dims)};
}

// --- others

std::optional<Values> bitcast_of_nothing(Site& s) {
    DType to = s.as<Bitcast>().dtype;
    if (to == s.in_type().dtype) {
        return Values{s.in()};
    }
    const Node* p = s.producer(0, bitcast_def);
    if (p == nullptr) {
        return std::nullopt;
    }
    const Type& from = s.g().type(p->inputs[0]);
    // Through wider elements, sizes must divide: a check that would be lost.
    bool direct = bit_width(from.dtype) == bit_width(to) && from.dims == s.result().dims;
    return direct ? std::optional(Values{ops::bitcast(s.g(), p->inputs[0], to)}) : std::nullopt;
}

std::optional<Values> window_of_nothing(Site& s) {
    const Window& w = s.as<Window>();
    for (size_t i = 0; i < w.axes.size(); ++i) {
        if (w.sizes[i] != 1 || w.strides[i] != 1) {
            return std::nullopt;
        }
    }
    return Values{ops::reshape(s.g(), s.in(), s.result().dims)};
}

} // namespace

Rules view_rules() {
    static const RuleRow rows[] = {
        {&reshape_def, reshape_of_nothing}, {&reshape_def, reshape_around_permute},
        {&reshape_def, reshape_of_stack},   {&reshape_def, view_of_scalar},
        {&permute_def, view_of_scalar},     {&permute_def, permute_of_nothing},
        {&permute_def, permute_of_concat},  {&broadcast_def, broadcast_of_nothing},
        {&slice_def, slice_of_nothing},     {&slice_def, slice_of_slice},
        {&slice_def, slice_of_concat},      {&slice_def, slice_of_broadcast},
        {&slice_def, slice_of_split_axis},  {&slice_def, slice_of_pad},
        {&bitcast_def, bitcast_of_nothing}, {&window_def, window_of_nothing},
    };
    return rows;
}

} // namespace ingot::passes
