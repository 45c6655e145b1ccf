// SPDX-License-Identifier: Apache-2.0
// raise_quantization: quantisation and dequantisation as arithmetic: clip(round(x / scale) + zero,
// low, high) converted to a narrow integer, (q - zero) * scale, and both at once in floats.
#include "passes/passes.h"
#include "passes/raise.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot::passes {

namespace {

// One number, or one per position of an axis.
struct Parameter {
    std::vector<double> values;
    int64_t axis = -1;

    bool same(const Parameter& o) const { return values == o.values && axis == o.axis; }
};

std::optional<Parameter> parameter(const View& v, Term t, int64_t rank) {
    if (auto n = v.number(t)) {
        return Parameter{{*n}, -1};
    }
    while (v.is(t, ExprOp::Cast)) {
        t = v.arg(t, 0);
    }
    auto leaf = v.leaf(t);
    const Tensor* c = leaf ? v.graph().constant(*leaf) : nullptr;
    if (c == nullptr || c->rank() > rank) {
        return std::nullopt;
    }
    Parameter p;
    for (int64_t i = 0; i < c->rank(); ++i) {
        if (c->shape()[static_cast<size_t>(i)] != 1) {
            if (p.axis >= 0) {
                return std::nullopt;
            }
            p.axis = rank - c->rank() + i;
        }
    }
    for (int64_t i = 0; i < c->count(); ++i) {
        p.values.push_back(c->get_f64(i));
    }
    return p.axis < 0 ? std::nullopt : std::optional(p);
}

struct Range {
    DType dtype;
    double low;
    double high;
};

constexpr std::array<Range, 6> ranges = {{{DType::I8, -128, 127},
                                          {DType::U8, 0, 255},
                                          {DType::I16, -32768, 32767},
                                          {DType::U16, 0, 65535},
                                          {DType::I4, -8, 7},
                                          {DType::U4, 0, 15}}};

// t as min(max(x, low), high) in either order, for the range of an integer type.
struct Clip {
    Term x;
    DType dtype = DType::I8;
};

std::optional<Clip> clip(const View& v, Term t) {
    ExprOp outer = v.op(t);
    if (outer != ExprOp::Min && outer != ExprOp::Max) {
        return std::nullopt;
    }
    auto a = v.number(v.arg(t, 1));
    Term inner = v.arg(t, 0);
    ExprOp other = outer == ExprOp::Min ? ExprOp::Max : ExprOp::Min;
    auto b = v.is(inner, other) ? v.number(v.arg(inner, 1)) : std::nullopt;
    if (!a || !b) {
        return std::nullopt;
    }
    double low = outer == ExprOp::Min ? *b : *a;
    double high = outer == ExprOp::Min ? *a : *b;
    for (const Range& r : ranges) {
        if (r.low == low && r.high == high) {
            return Clip{v.arg(inner, 0), r.dtype};
        }
    }
    return std::nullopt;
}

// x / scale, in that form or as a product with a number whose reciprocal is exact.
struct Divided {
    Term x;
    Parameter scale;
};

std::optional<Divided> divided(const View& v, Term t, int64_t rank) {
    if (v.is(t, ExprOp::Div)) {
        auto p = parameter(v, v.arg(t, 1), rank);
        return p ? std::optional(Divided{v.arg(t, 0), *p}) : std::nullopt;
    }
    auto k = v.is(t, ExprOp::Mul) ? v.number(v.arg(t, 1)) : std::nullopt;
    if (!k) {
        return std::nullopt;
    }
    auto scale = static_cast<float>(1 / *k);
    bool exact = static_cast<double>(1 / scale) == *k;
    return exact ? std::optional(Divided{v.arg(t, 0), {{static_cast<double>(scale)}, -1}})
                 : std::nullopt;
}

bool whole_in(const Parameter& zero, DType t) {
    for (double z : zero.values) {
        bool inside = false;
        for (const Range& r : ranges) {
            inside = inside || (r.dtype == t && z >= r.low && z <= r.high);
        }
        if (!inside || z != std::floor(z)) {
            return false;
        }
    }
    return true;
}

// term + number, or term + constant of one axis.
struct Shifted {
    Term term;
    Parameter by;
};

std::optional<Shifted> shifted(const View& v, Term t, int64_t rank) {
    Sum s = v.sum(t);
    if (s.parts.size() == 1 && s.parts[0].coefficient == 1) {
        return Shifted{s.parts[0].term, {{s.bias}, -1}};
    }
    for (size_t i = 0; i < 2 && s.parts.size() == 2 && s.bias == 0; ++i) {
        auto p = parameter(v, s.parts[1 - i].term, rank);
        if (p && s.parts[i].coefficient == 1) {
            for (double& x : p->values) {
                x *= s.parts[1 - i].coefficient;
            }
            return Shifted{s.parts[i].term, *p};
        }
    }
    return std::nullopt;
}

struct Quantised {
    Term x;
    Parameter scale;
    Parameter zero;
    DType dtype = DType::I8;
};

// clip(round(x / scale) + zero), or round(clip(x / scale)).
std::optional<Quantised> quantised(const View& v, Term t, int64_t rank) {
    bool rounds_last = v.is(t, ExprOp::Round);
    auto c = clip(v, rounds_last ? v.arg(t, 0) : t);
    if (!c) {
        return std::nullopt;
    }
    Term steps = c->x;
    Parameter zero{{0}, -1};
    if (!rounds_last) {
        auto s = shifted(v, c->x, rank);
        if (!s || !v.is(s->term, ExprOp::Round) || !whole_in(s->by, c->dtype)) {
            return std::nullopt;
        }
        zero = s->by;
        steps = v.arg(s->term, 0);
    }
    auto d = divided(v, steps, rank);
    if (!d || (zero.axis >= 0 && zero.axis != d->scale.axis)) {
        return std::nullopt;
    }
    return Quantised{d->x, d->scale, zero, c->dtype};
}

Value constant_of(Graph& g, const Parameter& p, DType t, size_t count) {
    std::vector<double> v = p.values;
    if (p.axis < 0) {
        v.resize(count, p.values[0]);
    }
    Shape shape;
    if (count > 1 || p.axis >= 0) {
        shape.push_back(static_cast<int64_t>(count));
    }
    return ops::constant(g, Tensor::of(t, shape, std::span<const double>(v)));
}

struct Parameters {
    Value scale;
    Value zero;
    int64_t axis = 1;
};

Parameters constants(Graph& g, const Parameter& scale, const Parameter& zero, DType t) {
    Parameters p;
    p.scale = constant_of(g, scale, DType::F32, scale.values.size());
    if (zero.values != std::vector<double>{0}) {
        p.zero = constant_of(g, zero, t, scale.values.size());
    }
    p.axis = scale.axis >= 0 ? scale.axis : 1;
    return p;
}

bool positive(const Parameter& scale) {
    for (double x : scale.values) {
        if (!(x > 0) || !std::isfinite(x)) {
            return false;
        }
    }
    return true;
}

// The value of x in the shape of the result; f32 only, because quantisation computes in f32.
std::optional<Value> operand(const View& v, Term x, const Dims& dims) {
    auto value = v.value(x);
    bool fits =
        value && v.graph().type(*value).dims == dims && v.graph().type(*value).dtype == DType::F32;
    return fits ? value : std::nullopt;
}

std::optional<Values> raise_quantize(Site& s) {
    Type out = s.result();
    const ExprInstr& last = s.as<Map>().body.code.back();
    if (last.op != ExprOp::Cast || !is_integer(last.to) || last.to != out.dtype) {
        return std::nullopt;
    }
    Graph& g = s.g();
    View v(g);
    Term root = v.term(s.copied()[0]);
    auto q = v.is(root, ExprOp::Cast) ? quantised(v, v.arg(root, 0), out.rank()) : std::nullopt;
    auto x = q && q->dtype == out.dtype && positive(q->scale) ? operand(v, q->x, out.dims)
                                                              : std::nullopt;
    if (!x) {
        return std::nullopt;
    }
    Parameters p = constants(g, q->scale, q->zero, out.dtype);
    return Values{ops::quantize(g, {p.axis, 0, out.dtype, true}, *x, p.scale, p.zero)};
}

// (t - zero) * scale
struct Dequantised {
    Term steps;
    Parameter scale;
    Parameter zero;
};

std::optional<Dequantised> dequantised(const View& v, Term t, int64_t rank) {
    if (!v.is(t, ExprOp::Mul)) {
        return std::nullopt;
    }
    for (int k = 0; k < 2; ++k) {
        auto scale = parameter(v, v.arg(t, k), rank);
        if (!scale) {
            continue;
        }
        Term steps = v.arg(t, 1 - k);
        bool converts = v.is(steps, ExprOp::Cast); // after a subtraction of integers
        Term inner = converts ? v.arg(steps, 0) : steps;
        bool sums = v.is(inner, ExprOp::Add) || v.is(inner, ExprOp::Sub);
        auto s = shifted(v, sums ? inner : steps, rank);
        if (!s || (s->by.axis >= 0 && s->by.axis != scale->axis)) {
            continue;
        }
        for (double& z : s->by.values) {
            z = z == 0 ? 0 : -z;
        }
        return Dequantised{s->term, *scale, s->by};
    }
    return std::nullopt;
}

std::optional<Values> raise_dequantize(Site& s) {
    Type out = s.result();
    if (out.dtype != DType::F32 || s.as<Map>().body.code.back().op != ExprOp::Mul) {
        return std::nullopt;
    }
    Graph& g = s.g();
    View v(g);
    auto d = dequantised(v, v.term(s.copied()[0]), out.rank());
    if (!d || !positive(d->scale)) {
        return std::nullopt;
    }
    if (auto q = quantised(v, d->steps, out.rank())) { // quantise and dequantise in one
        auto x = q->scale.same(d->scale) && q->zero.same(d->zero) ? operand(v, q->x, out.dims)
                                                                  : std::nullopt;
        if (!x) {
            return std::nullopt;
        }
        Parameters p = constants(g, q->scale, q->zero, q->dtype);
        Value y = ops::quantize(g, {p.axis, 0, q->dtype, true}, *x, p.scale, p.zero);
        return Values{ops::dequantize(g, {p.axis, 0, DType::F32}, y, p.scale, p.zero)};
    }
    while (v.is(d->steps, ExprOp::Cast)) {
        d->steps = v.arg(d->steps, 0);
    }
    auto q = v.leaf(d->steps);
    if (!q || !(g.type(*q).dims == out.dims) || !whole_in(d->zero, g.type(*q).dtype)) {
        return std::nullopt;
    }
    Parameters p = constants(g, d->scale, d->zero, g.type(*q).dtype);
    return Values{ops::dequantize(g, {p.axis, 0, DType::F32}, *q, p.scale, p.zero)};
}

// Whether a map rounds or reads integers: without one there is nothing to raise.
bool may_quantise(const Graph& g) {
    return std::any_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) {
        if (!n.is(map_def)) {
            return false;
        }
        const std::vector<ExprInstr>& code = n.as<Map>().body.code;
        return std::any_of(code.begin(), code.end(), [](const ExprInstr& c) {
            return c.op == ExprOp::Round || (c.op == ExprOp::In && is_integer(c.type));
        });
    });
}

} // namespace

const Pass raise_quantization = {
    .name = "raise_quantization",
    .summary = "recognise quantisation and its inverse",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&map_def, raise_quantize},
                                           {&map_def, raise_dequantize}};
            return may_quantise(g) ? apply_rules(g, Rules(rows)) : ingot::dead_code(g);
        },
};

} // namespace ingot::passes
