// SPDX-License-Identifier: Apache-2.0
// The steps are a loop whose body holds the recurrent product; both directions run side by side,
// along a leading axis.
#include "ops/recurrence.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <array>

namespace ingot::ops {

namespace {

/// The operands of the steps, as values of the loop's body.
struct Inside {
    Value x;                     // [S,D,B,G*H], in the order of steps
    Value reset_bias, peepholes; // [D,1,H], [D,1,3*H]
    Value lengths;               // i64 [1,B,1]
    std::vector<Value> weights;
};

struct Layer {
    const Recurrence& a;
    const RecurrentProduct& product; // empty: of r
    Dim hidden;
    DType t; // of the operands
    DType wide;
};

// --- one step, in `wide`

/// A function of one f32, as one of `t`.
Expr in_type(const Expr& e, DType t) {
    Expr out = e;
    for (ExprInstr& i : out.code) {
        bool wide = t == DType::F64;
        i.type = wide && i.type == DType::F32 ? DType::F64 : i.type;
        i.to = wide && i.to == DType::F32 ? DType::F64 : i.to;
    }
    return out;
}

Value apply(Graph& g, const Expr& e, Value x) {
    DType t = g.type(x).dtype;
    return map(g, in_type(e, t), t, std::array{x});
}

/// Gates [from, from + count) of an axis.
Value part(Graph& g, const Layer& l, Value x, int64_t axis, int64_t from, int64_t count = 1) {
    return slice(g, x, axis, Dim(from) * l.hidden, Dim(count) * l.hidden);
}

Value one_minus(Graph& g, Value x) {
    DType t = g.type(x).dtype;
    Expr e;
    int one = e.constant(t, 1);
    e.op(ExprOp::Sub, one, e.in(0, t));
    return map(g, std::move(e), t, std::array{x});
}

/// h [D,B,H] times r [D,n,H].
Value times(Graph& g, const Layer& l, Value h, Value r) {
    return dot(g, Dot{{0}, {0}, {2}, {2}, l.wide}, cast(g, h, l.t), r);
}

Value all_products(Graph& g, const Layer& l, const Inside& in, Value step, Value h) {
    return l.product ? l.product(g, h, step, in.lengths, in.weights)
                     : times(g, l, h, in.weights[0]);
}

Values gru_step(Graph& g, const Layer& l, const Inside& in, Value step, Value x, Value h) {
    Value z;
    Value r;
    auto split = [&](Value products) {
        Value both = apply(g, l.a.gate, add(g, part(g, l, x, 2, 0, 2), products));
        z = part(g, l, both, 2, 0);
        r = part(g, l, both, 2, 1);
    };
    Value candidate;
    if (l.a.reset_after) {
        Value all = all_products(g, l, in, step, h);
        split(part(g, l, all, 2, 0, 2));
        Value inner = add(g, part(g, l, all, 2, 2), cast(g, in.reset_bias, l.wide));
        candidate = mul(g, r, inner);
    } else {
        Value weights = in.weights[0];
        split(times(g, l, h, part(g, l, weights, 1, 0, 2)));
        candidate = times(g, l, mul(g, r, h), part(g, l, weights, 1, 2));
    }
    candidate = apply(g, l.a.candidate, add(g, part(g, l, x, 2, 2), candidate));
    return {add(g, mul(g, one_minus(g, z), candidate), mul(g, z, h))};
}

Values lstm_step(Graph& g, const Layer& l, const Inside& in, Value all, Value before) {
    auto peeped = [&](int64_t which, int64_t peep, Value c) {
        Value v = part(g, l, all, 2, which);
        if (!in.peepholes.valid()) {
            return v;
        }
        Value weights = cast(g, part(g, l, in.peepholes, 2, peep), l.wide);
        return add(g, v, mul(g, weights, c));
    };
    Value i = apply(g, l.a.gate, peeped(0, 0, before));
    Value f = l.a.input_forget ? one_minus(g, i) : apply(g, l.a.gate, peeped(2, 2, before));
    Value candidate = apply(g, l.a.candidate, part(g, l, all, 2, 3));
    Value c = add(g, mul(g, f, before), mul(g, i, candidate));
    Value o = apply(g, l.a.gate, peeped(1, 1, c));
    return {mul(g, o, apply(g, l.a.output, c)), c};
}

/// States after one step, then the step's output in T. Ended sequences keep their states.
Values one_step(Graph& g, const Layer& l, const Inside& in, Value step, const Values& state) {
    Value x = cast(g, gather(g, in.x, step, 0), l.wide);
    Values next;
    if (l.a.cell == "gru") {
        next = gru_step(g, l, in, step, x, state[0]);
    } else {
        Value all = add(g, x, all_products(g, l, in, step, state[0]));
        next = l.a.cell == "lstm" ? lstm_step(g, l, in, all, state[1])
                                  : Values{apply(g, l.a.gate, all)};
    }
    Value y = next[0];
    if (in.lengths.valid()) {
        Value running = less(g, step, in.lengths);
        y = select(g, running, y, scalar(g, l.wide, 0));
        for (size_t i = 0; i < next.size(); ++i) {
            next[i] = select(g, running, next[i], state[i]);
        }
    }
    next.push_back(cast(g, y, l.t));
    return next;
}

// --- all steps

template <class F>
void each_value(Inside& in, F&& f) {
    f(in.x), f(in.reset_bias), f(in.peepholes), f(in.lengths);
    for (Value& v : in.weights) {
        f(v);
    }
}

GraphRef loop_body(const Graph& outer, const Layer& l, Inside in, const Values& state) {
    auto body = std::make_shared<Graph>(outer.sibling("recurrence"));
    Graph& g = *body;
    Value step = g.add_input("step", {DType::I64, {}});
    Value go = g.add_input("condition", {DType::Bool, {}});
    Values before;
    for (Value s : state) {
        before.push_back(g.add_input(str("state", before.size()), outer.type(s)));
    }
    int count = 0;
    each_value(in, [&](Value& v) {
        v = v.valid() ? g.add_input(str("weights", count++), outer.type(v)) : v;
    });
    Values results = one_step(g, l, in, step, before);
    g.add_output("condition", go);
    for (size_t i = 0; i < results.size(); ++i) {
        g.add_output(i < state.size() ? str("state", i) : std::string("output"), results[i]);
    }
    return body;
}

/// Last states, then the outputs of all steps [S,D,B,H].
Values all_steps(Graph& g, const Layer& l, Inside in, const Values& state, const Dim& steps) {
    if (steps.is_const(1)) {
        Values r = one_step(g, l, in, scalar_i64(g, DType::I64, 0), state);
        r.back() = unsqueeze(g, r.back(), {0});
        return r;
    }
    Loop loop;
    loop.body = loop_body(g, l, in, state);
    loop.carried = static_cast<int64_t>(state.size());
    loop.count = steps;
    Values operands = {dim_scalar(g, steps), scalar_i64(g, DType::Bool, 1)};
    operands.insert(operands.end(), state.begin(), state.end());
    each_value(in, [&](Value v) {
        if (v.valid()) {
            operands.push_back(v);
        }
    });
    return g.add(loop_def, std::move(loop), operands);
}

/// x [S,B,n] with each sequence reversed up to its length; steps beyond it stay.
Value reversed_steps(Graph& g, Value x, Value lengths) {
    if (!lengths.valid()) {
        return reverse(g, x, 0);
    }
    const Dims d = dims(g, x);
    Value number = iota(g, DType::I64, {d[0], 1}, 0);
    Value length = reshape(g, lengths, {1, d[1]});
    Value mirrored = sub(g, sub(g, length, number), scalar_i64(g, DType::I64, 1));
    Value place = select(g, less(g, number, length), mirrored, number); // [S,B]
    Value batch = iota(g, DType::I64, {1, d[1]}, 1);
    Value row = add(g, mul(g, place, dim_scalar(g, d[1])), batch);
    Value rows = reshape(g, x, {d[0] * d[1], d[2]});
    return gather(g, rows, row, 0);
}

// --- checks

void check_function(const Expr& e, std::string_view name) {
    std::array f32{DType::F32};
    require(!e.code.empty() && e.input_count() == 1 && e.type() == DType::F32,
            ErrorCode::InvalidModel, "recurrence: ", name, " \"", to_text(e),
            "\" is not a function of one f32");
    verify(e, f32);
}

void check(const Graph& g, const Recurrence& a, const RecurrenceInputs& in, const Dim& hidden) {
    const Type& x = g.type(in.x);
    require(is_float(x.dtype) && x.rank() == 3, ErrorCode::InvalidModel, "recurrence of ", x,
            ": expected floats [S,B,D*G*H]");
    const Dims states = {a.directions(), x.dims[1], hidden};
    Dim gates = Dim(a.gates()) * hidden;
    auto expect = [&](Value v, std::string_view name, DType t, const Dims& want) {
        if (v.valid()) {
            require(g.type(v) == Type{t, want}, ErrorCode::InvalidModel, "recurrence of ", x, ": ",
                    name, " is ", g.type(v), ", expected ", Type{t, want});
        }
    };
    expect(in.x, "x", x.dtype, {x.dims[0], x.dims[1], Dim(a.directions()) * gates});
    expect(in.r, "r", x.dtype, {a.directions(), gates, hidden});
    expect(in.h, "h", x.dtype, states);
    expect(in.c, "c", x.dtype, states);
    expect(in.reset_bias, "the reset's bias", x.dtype, {a.directions(), 1, hidden});
    expect(in.peepholes, "the peepholes", x.dtype, {a.directions(), 1, Dim(3) * hidden});
    expect(in.lengths, "lengths", DType::I64, {x.dims[1]});
    check_function(a.gate, "gate");
    check_function(a.candidate, "candidate");
    check_function(a.output, "output");
}

Values expand_recurrence(Graph& g, const Recurrence& a, std::span<const Value> operands) {
    RecurrenceInputs in = recurrence_inputs(a, operands);
    require(g.type(in.h).rank() == 3, ErrorCode::InvalidModel, "recurrence: h is ", g.type(in.h),
            ", expected [D,B,H]");
    Dim hidden = dims(g, in.h)[2];
    check(g, a, in, hidden);
    return recurrence_by(g, a, in, std::array{in.r}, {});
}

Rounding rounding_of(const Node& n) {
    const auto& a = n.as<Recurrence>();
    bool smooth = is_smooth(a.gate) && is_smooth(a.candidate) && is_smooth(a.output);
    return smooth ? Rounding::Smooth : Rounding::Matters;
}

} // namespace

RecurrenceInputs recurrence_inputs(const Recurrence& a, std::span<const Value> in) {
    require(a.cell == "rnn" || a.cell == "gru" || a.cell == "lstm", ErrorCode::InvalidModel,
            "recurrence with cell \"", a.cell, "\", expected rnn, gru or lstm");
    RecurrenceInputs out;
    std::vector<Value*> list = {&out.x, &out.r, &out.h};
    for (auto [given, place] : {std::pair(a.has_cell_state(), &out.c),
                                {a.reset_after, &out.reset_bias},
                                {a.peepholes, &out.peepholes},
                                {a.lengths, &out.lengths}}) {
        if (given) {
            list.push_back(place);
        }
    }
    require(in.size() == list.size(), ErrorCode::InvalidModel, "recurrence takes ", list.size(),
            " inputs with these attributes, got ", in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        *list[i] = in[i];
    }
    return out;
}

Values recurrence(Graph& g, Recurrence a, const RecurrenceInputs& in) {
    Values operands;
    for (Value v : {in.x, in.r, in.h, in.c, in.reset_bias, in.peepholes, in.lengths}) {
        if (v.valid()) {
            operands.push_back(v);
        }
    }
    return g.add(recurrence_def, std::move(a), operands);
}

Values recurrence_by(Graph& g, const Recurrence& a, const RecurrenceInputs& in,
                     std::span<const Value> weights, const RecurrentProduct& product) {
    DType t = g.type(in.x).dtype;
    const Dims xd = dims(g, in.x);
    Layer l{a, product, dims(g, in.h)[2], t, t == DType::F64 ? DType::F64 : DType::F32};
    Dim each = Dim(a.gates()) * l.hidden;
    std::vector<Value> directions;
    for (size_t d = 0; d < a.reversed.size(); ++d) {
        Value own = slice(g, in.x, 2, Dim(static_cast<int64_t>(d)) * each, each);
        own = a.reversed[d] != 0 ? reversed_steps(g, own, in.lengths) : own;
        directions.push_back(unsqueeze(g, own, {1}));
    }
    Inside inside;
    inside.x = concat(g, directions, 1);
    inside.reset_bias = in.reset_bias;
    inside.peepholes = in.peepholes;
    inside.lengths = in.lengths.valid() ? reshape(g, in.lengths, {1, xd[1], 1}) : in.lengths;
    inside.weights.assign(weights.begin(), weights.end());
    Values state = {cast(g, in.h, l.wide)};
    if (a.has_cell_state()) {
        state.push_back(cast(g, in.c, l.wide));
    }
    Values done = all_steps(g, l, inside, state, xd[0]);
    directions.clear();
    for (size_t d = 0; d < a.reversed.size(); ++d) {
        Value y = squeeze(g, slice(g, done.back(), 1, static_cast<int64_t>(d), 1), {1});
        y = a.reversed[d] != 0 ? reversed_steps(g, y, in.lengths) : y;
        directions.push_back(unsqueeze(g, y, {1}));
    }
    Values out;
    for (size_t i = 0; i < state.size(); ++i) {
        out.push_back(cast(g, done[i], t));
    }
    out.push_back(concat(g, directions, 1));
    return out;
}

const OpDef recurrence_def =
    composite<Recurrence>("recurrence", {rounding_of, InHalf::Narrow, like_result},
                          [](Graph& g, const Recurrence& a, std::span<const Value> in) {
                              return expand_recurrence(g, a, in);
                          });

} // namespace ingot::ops

namespace ingot {

extern const OpTable recurrence_ops;
static const OpDef* const list[] = {&ops::recurrence_def};
const OpTable recurrence_ops = list;

} // namespace ingot
