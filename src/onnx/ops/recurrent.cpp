// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM, and the LSTM of quantised weights that ONNX Runtime's quantize_dynamic makes. The
// inputs of all steps go through one matrix product; the steps are a loop whose body holds the
// recurrent product. Both directions run side by side, along a leading axis.
#include "base/error.h"
#include "onnx/ops/support/activations.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/quantized.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// The loop-invariant properties. Shapes: D directions, B batch, S steps, H hidden.
struct Cell {
    enum class Kind { Rnn, Gru, Lstm };
    Kind kind = Kind::Rnn;
    int64_t gates = 1;
    Dim hidden;
    std::vector<bool> reversed;                       // for each direction
    std::vector<std::vector<Activation>> activations; // for each direction
    double clip = 0;
    bool linear_before_reset = false;
    bool input_forget = false;
    bool quantized = false;   // W and R: [D,inputs,gates*H] and [D,H,gates*H], of 8 bits
    bool hides_ended = false; // states of sequences that have ended count as 0 in a quantised range
    DType t = DType::F32;

    int64_t directions() const { return static_cast<int64_t>(reversed.size()); }
};

// The tensors that every step reads. Unused ones are invalid.
struct Weights {
    Value x;       // [S,D,B,gates*H]: inputs times W, biases added
    Value r;       // [D,gates*H,H]; without the last gate when that is in `rh`
    Value rh;      // [D,H,H]: multiplies a GRU's reset state
    Value reset;   // [D,1,H]: bias inside the reset of a GRU with linear_before_reset
    Value peep;    // [D,1,3H]
    Value lengths; // i64 [1,B,1]
    // The scale of a quantised r[D,H,gates*H]: [D,1,1] or [D,1,gates*H].
    Value r_scale;
    Value r_zero; // i32; invalid for 0
    Value r_sums; // i32 [D,1,gates*H]: of the columns of r - r_zero

    template <class F>
    static void fields(auto& w, F&& f) {
        f(w.x), f(w.r), f(w.rh), f(w.reset), f(w.peep), f(w.lengths), f(w.r_scale), f(w.r_zero),
            f(w.r_sums);
    }
};

// --- attributes

std::vector<std::vector<Activation>> activations_of(const NodeContext& c, const Cell& cell) {
    std::vector<std::string> defaults = {"Tanh"};
    if (cell.kind == Cell::Kind::Gru) {
        defaults = {"Sigmoid", "Tanh"};
    } else if (cell.kind == Cell::Kind::Lstm) {
        defaults = {"Sigmoid", "Tanh", "Tanh"};
    }
    size_t each = defaults.size();
    size_t all = each * cell.reversed.size();
    std::vector<std::string> names;
    if (const Attribute* a = c.attribute("activations")) {
        names = a->strings;
        // ONNX's own default for RNN, which some writers spell out, has an entry for a reverse
        // direction too.
        if (names == std::vector<std::string>{"Tanh", "Tanh"} && all == 1) {
            names.pop_back();
        }
    }
    while (names.size() < all && (names.empty() || names.size() == each)) {
        names.insert(names.end(), defaults.begin(), defaults.end());
    }
    c.ensure(names.size() == all, "attribute 'activations' has ", names.size(),
             " entries, expected ", all);
    std::vector<double> alphas = c.floats("activation_alpha");
    std::vector<double> betas = c.floats("activation_beta");
    size_t next_alpha = 0;
    size_t next_beta = 0;
    std::vector<std::vector<Activation>> out(cell.reversed.size());
    for (size_t i = 0; i < all; ++i) {
        Activation a = activation(c, names[i]);
        int parameters = parameter_count(c, names[i]);
        if (parameters >= 1 && next_alpha < alphas.size()) {
            a.alpha = alphas[next_alpha++];
        }
        if (parameters >= 2 && next_beta < betas.size()) {
            a.beta = betas[next_beta++];
        }
        out[i / each].push_back(a);
    }
    return out;
}

Cell cell_of(const NodeContext& c, Cell::Kind kind, int64_t gates) {
    Cell cell;
    cell.kind = kind;
    cell.gates = gates;
    std::string direction = c.s("direction", "forward");
    if (direction == "bidirectional") {
        cell.reversed = {false, true};
    } else {
        c.ensure(direction == "forward" || direction == "reverse", "attribute 'direction' is '",
                 direction, "', expected forward, reverse or bidirectional");
        cell.reversed = {direction == "reverse"};
    }
    c.ensure(c.rank(0) == 3 && c.rank(1) == 3 && c.rank(2) == 3, "X, W and R are ", c.type(0), ", ",
             c.type(1), " and ", c.type(2), ", expected rank 3");
    cell.quantized = c.has(8);
    cell.hides_ended = c.wants(0);
    cell.hidden = c.dim(2, cell.quantized ? 1 : 2);
    if (!cell.hidden.is_const()) {
        cell.hidden = positive(c, "hidden_size");
    }
    cell.activations = activations_of(c, cell);
    cell.clip = c.f("clip", 0);
    cell.linear_before_reset = c.i("linear_before_reset", 0) != 0;
    cell.input_forget = c.i("input_forget", 0) != 0;
    cell.t = c.dtype(0) == DType::F64 ? DType::F64 : DType::F32;
    return cell;
}

// --- one step

Value activate(ingot::Graph& g, const Cell& cell, size_t which, Value x) {
    if (cell.clip > 0) {
        x = ops::maximum(g, ops::minimum(g, x, cell.clip), -cell.clip);
    }
    bool same = true;
    for (const auto& a : cell.activations) {
        const Activation& first = cell.activations[0][which];
        same = same && a[which].name == first.name && a[which].alpha == first.alpha &&
               a[which].beta == first.beta;
    }
    if (same) {
        return apply(g, cell.activations[0][which], x);
    }
    std::vector<Value> parts;
    for (size_t d = 0; d < cell.activations.size(); ++d) {
        Value one = ops::slice(g, x, 0, static_cast<int64_t>(d), 1);
        parts.push_back(apply(g, cell.activations[d][which], one));
    }
    return ops::concat(g, parts, 0);
}

// Gates [from, from + count) of the last axis.
Value gate(ingot::Graph& g, const Cell& cell, Value x, int64_t axis, int64_t from,
           int64_t count = 1) {
    return ops::slice(g, x, axis, Dim(from) * cell.hidden, Dim(count) * cell.hidden);
}

// h [D,B,H] times r [D,n,H] -> [D,B,n]
Value recurrent(ingot::Graph& g, const Cell& cell, Value h, Value r) {
    return ops::dot(g, Dot{{0}, {0}, {2}, {2}, cell.t}, h, r);
}

// i32 times the scales of both operands.
Value scaled(ingot::Graph& g, Value product, Value x_scale, Value w_scale) {
    return ops::mul(g, ops::cast(g, product, DType::F32), ops::mul(g, x_scale, w_scale));
}

// As `recurrent` with quantised weights: each step quantises the states of a direction with the
// range that they have. `number`: of the step.
Value quantized_recurrent(ingot::Graph& g, const Cell& cell, const Weights& w, Value h,
                          Value number) {
    if (w.lengths.valid() && cell.hides_ended) {
        Value last = ops::sub(g, number, ops::scalar_i64(g, DType::I64, 1));
        h = ops::select(g, ops::less(g, last, w.lengths), h, ops::scalar(g, cell.t, 0));
    }
    Quantized q = quantized_now(g, h, true);
    Value zero = ops::unsqueeze(g, ops::cast(g, q.zero, DType::I32), {1, 2});
    Value y = ops::sub(g, ops::matmul(g, q.v, w.r, DType::I32), ops::mul(g, zero, w.r_sums));
    if (w.r_zero.valid()) {
        Value rows = ops::reduce_sum(g, ops::cast(g, q.v, DType::I32), {2}, true);
        y = ops::sub(g, y, ops::mul(g, rows, w.r_zero));
    }
    return scaled(g, y, ops::unsqueeze(g, q.scale, {1, 2}), w.r_scale);
}

Value one_minus(ingot::Graph& g, Value x) {
    return ops::sub(g, ops::scalar(g, g.type(x).dtype, 1), x);
}

// New states from the previous ones; x is the step's [D,B,gates*H].
Values rnn_step(ingot::Graph& g, const Cell& cell, const Weights& w, Value x, const Values& state) {
    return {activate(g, cell, 0, ops::add(g, x, recurrent(g, cell, state[0], w.r)))};
}

Values gru_step(ingot::Graph& g, const Cell& cell, const Weights& w, Value x, const Values& state) {
    Value h = state[0];
    Value z;
    Value r;
    Value candidate;
    auto split = [&](Value zr) {
        Value both = activate(g, cell, 0, ops::add(g, gate(g, cell, x, 2, 0, 2), zr));
        z = gate(g, cell, both, 2, 0);
        r = gate(g, cell, both, 2, 1);
    };
    if (cell.linear_before_reset) {
        Value all = recurrent(g, cell, h, w.r);
        split(gate(g, cell, all, 2, 0, 2));
        Value inner = gate(g, cell, all, 2, 2);
        inner = w.reset.valid() ? ops::add(g, inner, w.reset) : inner;
        candidate = ops::mul(g, r, inner);
    } else {
        split(recurrent(g, cell, h, w.r));
        candidate = recurrent(g, cell, ops::mul(g, r, h), w.rh);
    }
    candidate = activate(g, cell, 1, ops::add(g, gate(g, cell, x, 2, 2), candidate));
    return {ops::add(g, ops::mul(g, one_minus(g, z), candidate), ops::mul(g, z, h))};
}

Values lstm_step(ingot::Graph& g, const Cell& cell, const Weights& w, Value number, Value x,
                 const Values& state) {
    Value before = state[1];
    Value product = cell.quantized ? quantized_recurrent(g, cell, w, state[0], number)
                                   : recurrent(g, cell, state[0], w.r);
    Value all = ops::add(g, x, product);
    auto peeped = [&](int64_t which, int64_t peep, Value c) {
        Value v = gate(g, cell, all, 2, which);
        return w.peep.valid() ? ops::add(g, v, ops::mul(g, gate(g, cell, w.peep, 2, peep), c)) : v;
    };
    Value i = activate(g, cell, 0, peeped(0, 0, before));
    Value f = cell.input_forget ? one_minus(g, i) : activate(g, cell, 0, peeped(2, 2, before));
    Value candidate = activate(g, cell, 1, gate(g, cell, all, 2, 3));
    Value c = ops::add(g, ops::mul(g, f, before), ops::mul(g, i, candidate));
    Value o = activate(g, cell, 0, peeped(1, 1, c));
    Cell unclipped = cell;
    unclipped.clip = 0;
    return {ops::mul(g, o, activate(g, unclipped, 2, c)), c};
}

// States after one step, then the step's output. Ended sequences keep their states.
Values step(ingot::Graph& g, const Cell& cell, const Weights& w, Value number,
            const Values& state) {
    Value x = ops::gather(g, w.x, number, 0);
    Values next = cell.kind == Cell::Kind::Lstm  ? lstm_step(g, cell, w, number, x, state)
                  : cell.kind == Cell::Kind::Gru ? gru_step(g, cell, w, x, state)
                                                 : rnn_step(g, cell, w, x, state);
    Value y = next[0];
    if (w.lengths.valid()) {
        Value running = ops::less(g, number, w.lengths);
        y = ops::select(g, running, y, ops::scalar(g, cell.t, 0));
        for (size_t i = 0; i < next.size(); ++i) {
            next[i] = ops::select(g, running, next[i], state[i]);
        }
    }
    next.push_back(y);
    return next;
}

// --- all steps

GraphRef loop_body(const ingot::Graph& outer, const Cell& cell, const Weights& w,
                   const Values& state) {
    auto body = std::make_shared<ingot::Graph>(outer.sibling("recurrence"));
    ingot::Graph& g = *body;
    Value number = g.add_input("step", {DType::I64, {}});
    Value go = g.add_input("condition", {DType::Bool, {}});
    Values before;
    for (Value s : state) {
        before.push_back(g.add_input(str("state", before.size()), outer.type(s)));
    }
    Weights inside = w;
    int count = 0;
    Weights::fields(inside, [&](Value& v) {
        v = v.valid() ? g.add_input(str("weights", count++), outer.type(v)) : v;
    });
    Values results = step(g, cell, inside, number, before);
    g.add_output("condition", go);
    for (size_t i = 0; i < results.size(); ++i) {
        g.add_output(i < state.size() ? str("state", i) : std::string("output"), results[i]);
    }
    return body;
}

// Final states, then the outputs of all steps [S,D,B,H].
Values all_steps(ingot::Graph& g, const Cell& cell, const Weights& w, const Values& state,
                 const Dim& steps) {
    if (steps.is_const(1)) {
        Values r = step(g, cell, w, ops::scalar_i64(g, DType::I64, 0), state);
        r.back() = ops::unsqueeze(g, r.back(), {0});
        return r;
    }
    Loop loop;
    loop.body = loop_body(g, cell, w, state);
    loop.carried = static_cast<int64_t>(state.size());
    loop.count = steps;
    Values operands = {ops::dim_scalar(g, steps), ops::scalar_i64(g, DType::Bool, 1)};
    operands.insert(operands.end(), state.begin(), state.end());
    Weights::fields(w, [&](Value v) {
        if (v.valid()) {
            operands.push_back(v);
        }
    });
    return g.add(loop_def, std::move(loop), operands);
}

// x [S,B,n] with each sequence reversed up to its length; steps beyond it stay.
Value reversed_steps(ingot::Graph& g, Value x, Value lengths) {
    if (!lengths.valid()) {
        return ops::reverse(g, x, 0);
    }
    const Dims d = ops::dims(g, x);
    Value number = ops::iota(g, DType::I64, {d[0], 1}, 0);
    Value length = ops::reshape(g, lengths, {1, d[1]});
    Value mirrored = ops::sub(g, ops::sub(g, length, number), ops::scalar_i64(g, DType::I64, 1));
    Value place = ops::select(g, ops::less(g, number, length), mirrored, number); // [S,B]
    Value batch = ops::iota(g, DType::I64, {1, d[1]}, 1);
    Value row = ops::add(g, ops::mul(g, place, ops::dim_scalar(g, d[1])), batch);
    Value rows = ops::reshape(g, x, {d[0] * d[1], d[2]});
    return ops::gather(g, rows, row, 0);
}

// [D,n] of input i (bias, peepholes), gates [from, from + count), as [D,1,count*H].
Value row_of(NodeContext& c, const Cell& cell, int i, int64_t from, int64_t count) {
    int64_t all = i == 3 ? 2 * cell.gates : 3;
    Value v = ops::reshape(c.g, c.in(i), {cell.directions(), Dim(all) * cell.hidden});
    v = ops::cast(c.g, gate(c.g, cell, v, 1, from, count), cell.t);
    return ops::unsqueeze(c.g, v, {1});
}

// The biases that are added before the loop: [D,1,gates*H].
Value outer_bias(NodeContext& c, const Cell& cell) {
    ingot::Graph& g = c.g;
    Value own = row_of(c, cell, 3, 0, cell.gates);
    if (cell.kind == Cell::Kind::Gru && cell.linear_before_reset) {
        std::array parts = {row_of(c, cell, 3, cell.gates, 2),
                            ops::full(g, cell.t, {cell.directions(), 1, cell.hidden}, 0)};
        return ops::add(g, own, ops::concat(g, parts, 2));
    }
    return ops::add(g, own, row_of(c, cell, 3, cell.gates, cell.gates));
}

// Scales or zero points, [D] or [D,gates*H], as [D,1,1 or gates*H].
Value column_parameter(NodeContext& c, const Cell& cell, int i) {
    Dim columns = Dim(cell.gates) * cell.hidden;
    c.ensure(c.rank(i) == 1 || (c.rank(i) == 2 && c.dim(i, 1) == columns), "input ", i, " is ",
             c.type(i), ", expected [", cell.directions(), "] or [", cell.directions(), ',',
             columns, ']');
    Dim each = c.rank(i) == 1 ? Dim(1) : columns;
    return ops::reshape(c.g, c.in(i), {cell.directions(), 1, each});
}

// x [S,B,n] where steps count for the longest sequence, 0 behind.
Value steps_that_count(ingot::Graph& g, Value x, Value lengths) {
    Value most = ops::reduce_max(g, lengths, {0, 1, 2});
    Value number = ops::iota(g, DType::I64, {ops::dims(g, x)[0], 1, 1}, 0);
    return ops::select(g, ops::less(g, number, most), x, ops::scalar(g, g.type(x).dtype, 0));
}

// A direction's part of the inputs' product, [S,B,gates*H], as the loop reads it: with its bias,
// from the last step to the first where the direction is reversed. `bias`: [D,1,gates*H] or
// invalid.
Value direction_of(ingot::Graph& g, const Cell& cell, Value product, Value bias, Value lengths,
                   size_t d) {
    if (bias.valid()) {
        Value own = ops::slice(g, bias, 0, static_cast<int64_t>(d), 1);
        product = ops::add(g, product, own);
    }
    product = cell.reversed[d] ? reversed_steps(g, product, lengths) : product;
    return ops::unsqueeze(g, product, {1});
}

// The inputs' product with quantised weights: one range for all steps and both directions.
void set_quantized(NodeContext& c, const Cell& cell, Weights& w, Value x, Value bias) {
    ingot::Graph& g = c.g;
    Quantized q = quantized_now(g, w.lengths.valid() ? steps_that_count(g, x, w.lengths) : x);
    Dim columns = Dim(cell.gates) * cell.hidden;
    Value input = ops::reshape(g, c.in(1), {cell.directions(), ops::dims(g, x)[2], columns});
    Value scale = column_parameter(c, cell, 8);
    Value zero = column_parameter(c, cell, 9);
    std::vector<Value> directions;
    for (int64_t d = 0; d < cell.directions(); ++d) {
        auto part = [&](Value v) { return ops::squeeze(g, ops::slice(g, v, 0, d, 1), {0}); };
        Value p = exact_matmul(g, q, {part(input), {}, part(zero)});
        p = scaled(g, p, q.scale, part(scale));
        directions.push_back(direction_of(g, cell, p, bias, w.lengths, static_cast<size_t>(d)));
    }
    w.x = ops::concat(g, directions, 1);
    w.r = ops::reshape(g, c.in(2), {cell.directions(), cell.hidden, columns});
    w.r_scale = column_parameter(c, cell, 10);
    w.r_sums = ops::reduce_sum(g, ops::cast(g, w.r, DType::I32), {1}, true);
    if (!is_known_zero(g, c.in(11))) {
        w.r_zero = ops::cast(g, column_parameter(c, cell, 11), DType::I32);
        Value count = ops::cast(g, ops::dim_scalar(g, cell.hidden), DType::I32);
        w.r_sums = ops::sub(g, w.r_sums, ops::mul(g, count, w.r_zero));
    }
}

// The inputs' product with weights of floats.
void set_float(NodeContext& c, const Cell& cell, Weights& w, Value x, Value bias) {
    ingot::Graph& g = c.g;
    std::vector<Value> directions;
    Dim rows = Dim(cell.gates) * cell.hidden;
    Value input = ops::reshape(g, c.in(1), {cell.directions(), rows, ops::dims(g, x)[2]});
    for (size_t d = 0; d < cell.reversed.size(); ++d) {
        Value wd = ops::squeeze(g, ops::slice(g, input, 0, static_cast<int64_t>(d), 1), {0});
        Value p = ops::dot(g, Dot{{}, {}, {2}, {1}, cell.t}, x, wd); // [S,B,gates*H]
        directions.push_back(direction_of(g, cell, p, bias, w.lengths, d));
    }
    w.x = ops::concat(g, directions, 1);
    w.r = ops::reshape(g, c.in(2), {cell.directions(), rows, cell.hidden});
    w.r = ops::cast(g, w.r, cell.t);
    if (cell.kind == Cell::Kind::Gru && !cell.linear_before_reset) {
        w.rh = gate(g, cell, w.r, 1, 2);
        w.r = gate(g, cell, w.r, 1, 0, 2);
    }
}

Weights weights_of(NodeContext& c, const Cell& cell, Value x) {
    ingot::Graph& g = c.g;
    Weights w;
    const Dims xd = ops::dims(g, x);
    if (c.has(4)) {
        auto known = known_ints(c, 4);
        bool full = known && xd[0].is_const();
        for (size_t i = 0; full && i < known->size(); ++i) {
            full = (*known)[i] == xd[0].value();
        }
        w.lengths = full ? Value{} : ops::reshape(g, to_i64(g, c.in(4)), {1, xd[1], 1});
    }
    Value bias = c.has(3) ? outer_bias(c, cell) : Value{};
    if (cell.quantized) {
        set_quantized(c, cell, w, x, bias);
    } else {
        set_float(c, cell, w, x, bias);
    }
    if (bias.valid() && cell.kind == Cell::Kind::Gru && cell.linear_before_reset) {
        w.reset = row_of(c, cell, 3, 5, 1);
    }
    if (cell.kind == Cell::Kind::Lstm && c.has(7)) {
        w.peep = row_of(c, cell, 7, 0, 3);
    }
    return w;
}

Values recurrence(NodeContext& c, const Cell& cell) {
    ingot::Graph& g = c.g;
    bool batch_first = c.i("layout", 0) != 0;
    auto state_order = [&](Value v) { return batch_first ? ops::permute(g, v, {1, 0, 2}) : v; };
    Value x = state_order(c.in(0));
    const Dims xd = ops::dims(g, x);
    Dims state_dims = {cell.directions(), xd[1], cell.hidden};
    Weights w = weights_of(c, cell, x);
    Values state;
    for (int i = 5; i < (cell.kind == Cell::Kind::Lstm ? 7 : 6); ++i) {
        state.push_back(
            c.has(i) ? ops::reshape(g, ops::cast(g, state_order(c.in(i)), cell.t), state_dims)
                     : ops::full(g, cell.t, state_dims, 0));
    }
    Values done = all_steps(g, cell, w, state, xd[0]);
    std::vector<Value> directions;
    for (size_t d = 0; d < cell.reversed.size(); ++d) {
        Value y = ops::squeeze(g, ops::slice(g, done.back(), 1, static_cast<int64_t>(d), 1), {1});
        y = cell.reversed[d] ? reversed_steps(g, y, w.lengths) : y;
        directions.push_back(ops::unsqueeze(g, y, {1}));
    }
    Value y = ops::concat(g, directions, 1);
    y = batch_first ? ops::permute(g, y, {2, 0, 1, 3}) : y;
    Values out = {ops::cast(g, y, c.dtype(0))};
    for (size_t i = 0; i < state.size(); ++i) {
        out.push_back(ops::cast(g, state_order(done[i]), c.dtype(0)));
    }
    return out;
}

Values rnn(NodeContext& c) {
    return recurrence(c, cell_of(c, Cell::Kind::Rnn, 1));
}

Values gru(NodeContext& c) {
    return recurrence(c, cell_of(c, Cell::Kind::Gru, 3));
}

Values lstm(NodeContext& c) {
    return recurrence(c, cell_of(c, Cell::Kind::Lstm, 4));
}

const ImporterRow rows[] = {
    {"", "RNN", 7, rnn, no_shapes},
    {"", "GRU", 7, gru, no_shapes},
    {"", "LSTM", 7, lstm, no_shapes},
    {"com.microsoft", "DynamicQuantizeLSTM", 1, lstm, no_shapes},
};

} // namespace

extern const ImporterTable recurrent_importers;
const ImporterTable recurrent_importers = rows;

} // namespace ingot::onnx
