// SPDX-License-Identifier: Apache-2.0
// raise_rope: rotary embeddings, written as x * cos + rotated(x) * sin or as two halves (or even
// and odd elements) that are rotated and concatenated.
#include "passes/passes.h"
#include "passes/raise.h"
#include "passes/rope_angles.h"
#include "passes/simplify.h"

namespace ingot::passes {

namespace {

using ops::Rope;

// A slice, perhaps with an axis of size 1 behind it; `x` is not sliced along the last axis alone.
struct Piece {
    Value x;
    Slice of; // of x; its last axis is what follows
    Dim start;
    Dim size;
    int64_t step = 1;
};

// The value to which a reshape only appends an axis of size 1.
std::optional<Value> squeezed(const Graph& g, Value v) {
    const Node* n = g.producer(v);
    Dims dims = g.type(v).dims;
    if (n == nullptr || !n->is(reshape_def) || dims.empty() || !dims.back().is_const(1)) {
        return std::nullopt;
    }
    dims.pop_back();
    return g.type(n->inputs[0]).dims == dims ? std::optional(n->inputs[0]) : std::nullopt;
}

std::optional<Piece> piece(const Graph& g, Value v) {
    const Node* n = g.producer(squeezed(g, v).value_or(v));
    if (n == nullptr || !n->is(slice_def)) {
        return std::nullopt;
    }
    const Slice& a = n->as<Slice>();
    return Piece{n->inputs[0], a, a.starts.back(), a.sizes.back(), a.steps.back()};
}

// Whether both have the same elements along all axes but the last.
bool beside(const Piece& a, const Piece& b) {
    bool same = a.x == b.x;
    for (size_t i = 0; same && i + 1 < a.of.sizes.size(); ++i) {
        same = a.of.starts[i] == b.of.starts[i] && a.of.sizes[i] == b.of.sizes[i] &&
               a.of.steps[i] == b.of.steps[i];
    }
    return same;
}

bool equal(const Piece& a, const Piece& b) {
    return beside(a, b) && a.start == b.start && a.size == b.size && a.step == b.step;
}

// The elements that a and b have together, as the first and second elements of the pairs of its
// last axis.
struct Whole {
    Piece piece;
    bool interleaved = false;
};

std::optional<Whole> pairs(const Piece& a, const Piece& b) {
    if (!beside(a, b) || !(a.size == b.size) || a.step != b.step) {
        return std::nullopt;
    }
    bool halves = a.step == 1 && b.start == a.start + a.size;
    bool interleaved = a.step == 2 && b.start == a.start + Dim(1);
    Whole w{a, interleaved};
    w.piece.size = a.size * Dim(2);
    w.piece.step = 1;
    w.piece.of.sizes.back() = w.piece.size;
    w.piece.of.steps.back() = 1;
    return halves || interleaved ? std::optional(w) : std::nullopt;
}

// Whether v has the elements of a piece, and no others.
bool is_whole(const Graph& g, Value v, const Piece& p) {
    if (v == p.x) {
        const Dims& dims = g.type(v).dims;
        bool all = p.of.sizes == dims;
        for (size_t i = 0; all && i < dims.size(); ++i) {
            all = p.of.starts[i].is_const(0) && p.of.steps[i] == 1;
        }
        return all;
    }
    auto own = piece(g, v);
    return own && equal(*own, p);
}

Value value_of(Graph& g, const Piece& p) {
    return is_whole(g, p.x, p) ? p.x : g.add1(slice_def, p.of, {p.x});
}

// The two halves that are concatenated along the last axis, or (interleaved) element by element.
struct Joined {
    Term first;
    Term second;
    Dims dims; // of both
    bool interleaved = false;
    bool unit = false; // the terms have an axis of size 1 behind that of the elements
};

bool joins_last(const Graph& g, const Node* n) {
    return n != nullptr && n->is(concat_def) && n->inputs.size() > 1 &&
           n->as<Concat>().axis == g.type(n->outputs[0]).rank() - 1;
}

// The concat of two values along their last axis that makes a value, or that is converted to it.
const Node* pair_of(const View& v, Value value) {
    const Graph& g = v.graph();
    auto leaf = v.leaf(v.term(value));
    const Node* n = leaf && g.type(*leaf).dims == g.type(value).dims ? g.producer(*leaf) : nullptr;
    return joins_last(g, n) && n->inputs.size() == 2 ? n : nullptr;
}

// concat of [..., D/2, 1] twice, then reshape
std::optional<Joined> interleaved(const View& v, const Node& reshape) {
    const Graph& g = v.graph();
    const Node* n = pair_of(v, reshape.inputs[0]);
    if (n == nullptr || g.type(n->outputs[0]).rank() < 2 ||
        !g.type(n->inputs[0]).dims.back().is_const(1) ||
        !g.type(n->inputs[1]).dims.back().is_const(1)) {
        return std::nullopt;
    }
    Dims dims = g.type(n->outputs[0]).dims;
    dims.pop_back();
    dims.back() = dims.back() * Dim(2);
    auto first = squeezed(g, n->inputs[0]);
    auto second = squeezed(g, n->inputs[1]);
    bool both = first && second;
    return Joined{v.term(both ? *first : n->inputs[0]), v.term(both ? *second : n->inputs[1]), dims,
                  true, !both};
}

std::optional<Joined> joined(const View& v, Value value) {
    const Graph& g = v.graph();
    const Node* n = g.producer(value);
    if (n != nullptr && n->is(reshape_def)) {
        return interleaved(v, *n);
    }
    n = pair_of(v, value);
    return n == nullptr ? std::nullopt
                        : std::optional(Joined{v.term(n->inputs[0]), v.term(n->inputs[1]),
                                               g.type(value).dims});
}

// --- the two spellings

// The two factors of a product, or none.
std::vector<Term> factors(const View& v, Term t) {
    if (!v.is(t, ExprOp::Mul)) {
        return {};
    }
    return {v.arg(t, 0), v.arg(t, 1)};
}

// -second and first, concatenated: the factor of the sines.
std::optional<Whole> rotated(const View& v, Term t) {
    auto leaf = v.leaf(t);
    auto j = leaf ? joined(v, *leaf) : std::nullopt;
    if (!j || !(j->dims == v.graph().type(*leaf).dims)) {
        return std::nullopt;
    }
    View::Scaled minus = v.scaled(j->first);
    auto second = v.leaf(j->second);
    auto first = minus.scale == -1 ? v.leaf(minus.term) : std::nullopt;
    auto a = second ? piece(v.graph(), *second) : std::nullopt;
    auto b = first ? piece(v.graph(), *first) : std::nullopt;
    auto whole = a && b ? pairs(*a, *b) : std::nullopt;
    return whole && whole->interleaved == j->interleaved ? whole : std::nullopt;
}

// Takes the factor that has the elements of a piece.
std::optional<Value> take_whole(const View& v, std::vector<Term>& factors, const Piece& p) {
    if (is_whole(v.graph(), p.x, p)) {
        return take(v, factors, v.term(p.x)) ? std::optional(p.x) : std::nullopt;
    }
    for (size_t i = 0; i < factors.size(); ++i) {
        auto leaf = v.leaf(factors[i]);
        if (leaf && is_whole(v.graph(), *leaf, p)) {
            factors.erase(factors.begin() + static_cast<int64_t>(i));
            return leaf;
        }
    }
    return std::nullopt;
}

Value made(Site& s, Value x, Value cos, Value sin, bool interleaved) {
    Graph& g = s.g();
    Type out = s.result();
    DType wide = wider(g.type(x).dtype, out.dtype);
    Value y = ops::rope(g, Rope{interleaved}, ops::cast(g, x, wide), cos, sin);
    return ops::cast(g, y, out.dtype);
}

// Whether the angles broadcast against half of x without enlarging its shape.
bool angles_fit(const Graph& g, Value angle, const Dims& x) {
    Dims want = x;
    want.back() = floor_div(x.back(), 2);
    return is_float(g.type(angle).dtype) && broadcast(g.type(angle).dims, want) == want;
}

std::optional<Values> sum_spelling(Site& s) {
    Type out = s.result();
    if (!is_float(out.dtype) || out.rank() < 2) {
        return std::nullopt;
    }
    Graph& g = s.g();
    View v(g);
    Sum sum = v.sum(v.term(s.copied()[0]));
    if (sum.bias != 0 || sum.parts.size() != 2 || sum.parts[0].coefficient != 1 ||
        sum.parts[1].coefficient != 1) {
        return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
        std::vector<Term> with_sin = factors(v, sum.parts[i].term);
        std::vector<Term> with_cos = factors(v, sum.parts[1 - i].term);
        for (size_t k = 0; k < with_sin.size() && with_cos.size() == 2; ++k) {
            auto r = rotated(v, with_sin[k]);
            auto sin = r ? v.value(with_sin[1 - k]) : std::nullopt;
            auto x = sin ? take_whole(v, with_cos, r->piece) : std::nullopt;
            if (!x || !(g.type(*x).dims == out.dims)) {
                continue;
            }
            auto cos = v.value(with_cos[0]);
            auto c = cos ? half_angles(g, *cos, r->interleaved) : std::nullopt;
            auto d = c ? half_angles(g, *sin, r->interleaved) : std::nullopt;
            if (d && angles_fit(g, *c, out.dims) && angles_fit(g, *d, out.dims)) {
                return Values{made(s, *x, *c, *d, r->interleaved)};
            }
            break;
        }
    }
    return std::nullopt;
}

// p + q, or p - q (sign -1), where p and q are products of a piece of x and an angle.
struct Rotation {
    Piece first; // times the first angle
    Value angle;
    Piece second; // times the second angle, added or subtracted
    Value other;
};

std::vector<Rotation> rotations(const View& v, Term t, double sign) {
    std::vector<Rotation> out;
    Sum s = v.sum(t);
    if (s.bias != 0 || s.parts.size() != 2) {
        return out;
    }
    for (size_t i = 0; i < 2; ++i) {
        std::vector<Term> p = factors(v, s.parts[i].term);
        std::vector<Term> q = factors(v, s.parts[1 - i].term);
        bool plain = s.parts[i].coefficient == 1 && s.parts[1 - i].coefficient == sign &&
                     !p.empty() && !q.empty();
        for (size_t k = 0; plain && k < 4; ++k) {
            auto x = v.leaf(p[k & 1]);
            auto y = v.leaf(q[k >> 1]);
            auto a = x ? piece(v.graph(), *x) : std::nullopt;
            auto b = y ? piece(v.graph(), *y) : std::nullopt;
            auto c = v.value(p[1 - (k & 1)]);
            auto d = v.value(q[1 - (k >> 1)]);
            if (a && b && c && d && beside(*a, *b)) {
                out.push_back({*a, *c, *b, *d});
            }
        }
    }
    return out;
}

// An angle of half of x, broadcast against it.
std::optional<Value> angle(Graph& g, Value v, const Dims& x, bool unit) {
    if (unit && g.type(v).rank() > 0) {
        Dims dims = g.type(v).dims;
        if (!dims.back().is_const(1)) {
            return std::nullopt;
        }
        dims.pop_back();
        v = ops::reshape(g, v, dims);
    }
    return angles_fit(g, v, x) ? std::optional(v) : std::nullopt;
}

std::optional<Value> rotation(Site& s, const Joined& j) {
    Graph& g = s.g();
    View v(g);
    for (const Rotation& real : rotations(v, j.first, -1)) {     // x1 cos - x2 sin
        for (const Rotation& imag : rotations(v, j.second, 1)) { // x2 cos + x1 sin
            auto whole = pairs(real.first, real.second);
            bool same = equal(imag.first, real.second) && equal(imag.second, real.first) &&
                        imag.angle == real.angle && imag.other == real.other;
            if (!whole || whole->interleaved != j.interleaved || !same ||
                !(whole->piece.of.sizes == j.dims)) {
                continue;
            }
            auto cos = angle(g, real.angle, j.dims, j.unit);
            auto sin = angle(g, real.other, j.dims, j.unit);
            if (cos && sin) {
                return made(s, value_of(g, whole->piece), *cos, *sin, j.interleaved);
            }
        }
    }
    return std::nullopt;
}

std::optional<Values> joined_spelling(Site& s) {
    const Type out = s.result();
    if (!is_float(out.dtype) || out.rank() < 2) {
        return std::nullopt;
    }
    auto j = joined(View(s.g()), s.copied()[0]);
    auto whole = j ? rotation(s, *j) : std::nullopt;
    return whole ? std::optional(Values{ops::reshape(s.g(), *whole, out.dims)}) : std::nullopt;
}

// Halves that are concatenated with the elements that are not rotated.
std::optional<Values> joined_with_others(Site& s) {
    Type out = s.result();
    Values parts(s.inputs().begin(), s.inputs().end());
    if (!is_float(out.dtype) || out.rank() < 2 || parts.size() < 3 ||
        s.as<Concat>().axis != out.rank() - 1) {
        return std::nullopt;
    }
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        View v(s.g());
        Dims dims = out.dims;
        dims.back() = s.in_type(i).dims.back() + s.in_type(i + 1).dims.back();
        auto whole = rotation(s, {v.term(parts[i]), v.term(parts[i + 1]), dims});
        if (whole) {
            parts[i] = *whole;
            parts.erase(parts.begin() + static_cast<int64_t>(i) + 1);
            return Values{ops::concat(s.g(), parts, out.rank() - 1)};
        }
    }
    return std::nullopt;
}

} // namespace

const Pass raise_rope = {
    .name = "raise_rope",
    .summary = "recognise rotary embeddings",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, sum_spelling},
                                           {&concat_def, joined_spelling},
                                           {&concat_def, joined_with_others},
                                           {&reshape_def, joined_spelling}};
            Graph raised = apply_rules(g, Rules(rows), {&concat_def});
            // Attention looks for scales behind rotations of its own type.
            return apply_rules(raised, rounding_rules(), {&ops::rope_def});
        },
};

} // namespace ingot::passes
