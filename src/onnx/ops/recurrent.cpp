// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM, and the LSTM of quantised weights that ONNX Runtime's quantize_dynamic makes. The
// inputs of all steps and directions go through one matrix product; the rest is one recurrence.
#include "base/error.h"
#include "onnx/ops/support/activations.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/quantized.h"
#include "onnx/ops/support/spatial.h"
#include "ops/recurrence.h"

#include <algorithm>
#include <array>

namespace ingot::onnx {

namespace {

using ops::Recurrence;
using ops::RecurrenceInputs;

// The properties of a node. Shapes: D directions, B batch, S steps, H hidden, G gates.
struct Cell {
    Recurrence all;                                   // but for the functions
    std::vector<std::vector<Activation>> activations; // for each direction
    Dim hidden;
    double clip = 0;
    bool quantized = false; // W and R: [D,inputs,G*H] and [D,H,G*H], of 8 bits
    DType t = DType::F32;

    int64_t directions() const { return all.directions(); }
    Dim columns() const { return Dim(all.gates()) * hidden; }
};

// Recurrent weights of 8 bits.
struct QuantizedWeights {
    Value r;     // [D,H,G*H]
    Value scale; // [D,1,1] or [D,1,G*H]
    Value sums;  // i32 [D,1,G*H]: of the columns of r - zero
    Value zero;  // i32; invalid for 0
};

// --- attributes

std::vector<std::vector<Activation>> activations_of(const NodeContext& c, const Cell& cell) {
    std::vector<std::string> defaults = {"Tanh"};
    if (cell.all.cell == "gru") {
        defaults = {"Sigmoid", "Tanh"};
    } else if (cell.all.cell == "lstm") {
        defaults = {"Sigmoid", "Tanh", "Tanh"};
    }
    size_t each = defaults.size();
    size_t all = each * cell.all.reversed.size();
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
    std::vector<std::vector<Activation>> out(cell.all.reversed.size());
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

Cell cell_of(const NodeContext& c, std::string kind) {
    Cell cell;
    cell.all.cell = std::move(kind);
    std::string direction = c.s("direction", "forward");
    if (direction == "bidirectional") {
        cell.all.reversed = {0, 1};
    } else {
        c.ensure(direction == "forward" || direction == "reverse", "attribute 'direction' is '",
                 direction, "', expected forward, reverse or bidirectional");
        cell.all.reversed = {direction == "reverse" ? 1 : 0};
    }
    c.ensure(c.rank(0) == 3 && c.rank(1) == 3 && c.rank(2) == 3, "X, W and R are ", c.type(0), ", ",
             c.type(1), " and ", c.type(2), ", expected rank 3");
    cell.quantized = c.has(8);
    cell.hidden = c.dim(2, cell.quantized ? 1 : 2);
    if (!cell.hidden.is_const()) {
        cell.hidden = positive(c, "hidden_size");
    }
    cell.activations = activations_of(c, cell);
    cell.clip = c.f("clip", 0);
    cell.all.reset_after = cell.all.cell == "gru" && c.i("linear_before_reset", 0) != 0;
    cell.all.input_forget = cell.all.cell == "lstm" && c.i("input_forget", 0) != 0;
    cell.t = cell.quantized ? DType::F32 : c.dtype(0);
    return cell;
}

// --- functions

/// As a function of one f32, of x limited to [-clip, clip] where clip is above 0.
Expr function_of(const Activation& a, double clip) {
    ingot::Graph g;
    Value x = g.add_input("x", {DType::F32, {}});
    Value limited = clip > 0 ? ops::maximum(g, ops::minimum(g, x, clip), -clip) : x;
    Value y = apply(g, a, limited);
    Expr e;
    std::vector<int> at(g.value_count(), -1);
    at[x.id] = e.in(0, DType::F32);
    for (const ingot::Node& n : g.nodes()) {
        if (n.is(constant_def)) {
            at[n.outputs[0].id] = e.constant(DType::F32, n.as<Constant>().value.get_f64(0));
            continue;
        }
        CHECK(n.is(map_def), "activation '", a.name, "' is no chain of maps");
        std::vector<int> in;
        for (Value v : n.inputs) {
            in.push_back(at[v.id]);
        }
        at[n.outputs[0].id] = e.inline_expr(n.as<Map>().body, in);
    }
    CHECK(at[y.id] == static_cast<int>(e.code.size()) - 1, "activation '", a.name,
          "' does not end in its result");
    return e;
}

/// The attributes of `count` directions from `first` on, whose functions are those of the first.
Recurrence attributes(const Cell& cell, size_t first, size_t count) {
    Recurrence a = cell.all;
    auto from = cell.all.reversed.begin() + static_cast<std::ptrdiff_t>(first);
    a.reversed.assign(from, from + static_cast<std::ptrdiff_t>(count));
    const std::vector<Activation>& list = cell.activations[first];
    a.gate = function_of(list[0], cell.clip);
    if (list.size() > 1) {
        a.candidate = function_of(list[1], cell.clip);
    }
    if (list.size() > 2) {
        a.output = function_of(list[2], 0);
    }
    return a;
}

bool same_functions(const Cell& cell) {
    auto same = [](const Activation& a, const Activation& b) {
        return a.name == b.name && a.alpha == b.alpha && a.beta == b.beta;
    };
    const auto& first = cell.activations.front();
    const auto& last = cell.activations.back();
    return std::equal(first.begin(), first.end(), last.begin(), last.end(), same);
}

// --- operands

// Gates [from, from + count) of the last axis.
Value gate(ingot::Graph& g, const Cell& cell, Value x, int64_t axis, int64_t from, int64_t count) {
    return ops::slice(g, x, axis, Dim(from) * cell.hidden, Dim(count) * cell.hidden);
}

// [D,n] of input i (bias, peepholes), gates [from, from + count), as [D,1,count*H].
Value row_of(NodeContext& c, const Cell& cell, int i, int64_t from, int64_t count) {
    int64_t all = i == 3 ? 2 * cell.all.gates() : 3;
    Value v = ops::reshape(c.g, c.in(i), {cell.directions(), Dim(all) * cell.hidden});
    v = ops::cast(c.g, gate(c.g, cell, v, 1, from, count), cell.t);
    return ops::unsqueeze(c.g, v, {1});
}

// The biases that are added before the loop: [D*G*H].
Value outer_bias(NodeContext& c, const Cell& cell) {
    ingot::Graph& g = c.g;
    int64_t gates = cell.all.gates();
    Value own = row_of(c, cell, 3, 0, gates);
    Value other;
    if (cell.all.reset_after) {
        std::array parts = {row_of(c, cell, 3, gates, 2),
                            ops::full(g, cell.t, {cell.directions(), 1, cell.hidden}, 0)};
        other = ops::concat(g, parts, 2);
    } else {
        other = row_of(c, cell, 3, gates, gates);
    }
    return ops::flatten(g, ops::add(g, own, other));
}

// Scales or zero points, [D] or [D,G*H], as [D,1,1 or G*H].
Value column_parameter(NodeContext& c, const Cell& cell, int i) {
    Dim columns = cell.columns();
    c.ensure(c.rank(i) == 1 || (c.rank(i) == 2 && c.dim(i, 1) == columns), "input ", i, " is ",
             c.type(i), ", expected [", cell.directions(), "] or [", cell.directions(), ',',
             columns, ']');
    Dim each = c.rank(i) == 1 ? Dim(1) : columns;
    return ops::reshape(c.g, c.in(i), {cell.directions(), 1, each});
}

// x [S,B,n] where steps count for the longest sequence, 0 behind.
Value steps_that_count(ingot::Graph& g, Value x, Value lengths) {
    Value most = ops::reduce_max(g, lengths, {0});
    Value number = ops::iota(g, DType::I64, {ops::dims(g, x)[0], 1, 1}, 0);
    return ops::select(g, ops::less(g, number, most), x, ops::scalar(g, g.type(x).dtype, 0));
}

// i32 times the scales of both operands.
Value scaled(ingot::Graph& g, Value product, Value x_scale, Value w_scale) {
    return ops::mul(g, ops::cast(g, product, DType::F32), ops::mul(g, x_scale, w_scale));
}

// The inputs' product with quantised weights, [S,B,D*G*H]: one range for all steps and both
// directions.
Value quantized_product(NodeContext& c, const Cell& cell, Value x, Value lengths) {
    ingot::Graph& g = c.g;
    Quantized q = quantized_now(g, lengths.valid() ? steps_that_count(g, x, lengths) : x);
    Value input = ops::reshape(g, c.in(1), {cell.directions(), ops::dims(g, x)[2], cell.columns()});
    Value scale = column_parameter(c, cell, 8);
    Value zero = column_parameter(c, cell, 9);
    std::vector<Value> directions;
    for (int64_t d = 0; d < cell.directions(); ++d) {
        auto part = [&](Value v) { return ops::squeeze(g, ops::slice(g, v, 0, d, 1), {0}); };
        Value p = exact_matmul(g, q, {part(input), {}, part(zero)});
        directions.push_back(scaled(g, p, q.scale, part(scale)));
    }
    return ops::concat(g, directions, 2);
}

QuantizedWeights quantized_weights(NodeContext& c, const Cell& cell) {
    ingot::Graph& g = c.g;
    QuantizedWeights w;
    w.r = ops::reshape(g, c.in(2), {cell.directions(), cell.hidden, cell.columns()});
    w.scale = column_parameter(c, cell, 10);
    w.sums = ops::reduce_sum(g, ops::cast(g, w.r, DType::I32), {1}, true);
    if (!is_known_zero(g, c.in(11))) {
        w.zero = ops::cast(g, column_parameter(c, cell, 11), DType::I32);
        Value count = ops::cast(g, ops::dim_scalar(g, cell.hidden), DType::I32);
        w.sums = ops::sub(g, w.sums, ops::mul(g, count, w.zero));
    }
    return w;
}

// Each step quantises the states of a direction with the range that they have. `hides_ended`:
// states of sequences that have ended count as 0 in it.
Value quantized_recurrent(ingot::Graph& g, const QuantizedWeights& w, Value h, Value step,
                          Value lengths, bool hides_ended) {
    if (lengths.valid() && hides_ended) {
        Value last = ops::sub(g, step, ops::scalar_i64(g, DType::I64, 1));
        h = ops::select(g, ops::less(g, last, lengths), h, ops::scalar(g, DType::F32, 0));
    }
    Quantized q = quantized_now(g, h, true);
    Value zero = ops::unsqueeze(g, ops::cast(g, q.zero, DType::I32), {1, 2});
    Value y = ops::sub(g, ops::matmul(g, q.v, w.r, DType::I32), ops::mul(g, zero, w.sums));
    if (w.zero.valid()) {
        Value rows = ops::reduce_sum(g, ops::cast(g, q.v, DType::I32), {2}, true);
        y = ops::sub(g, y, ops::mul(g, rows, w.zero));
    }
    return scaled(g, y, ops::unsqueeze(g, q.scale, {1, 2}), w.scale);
}

// The inputs' product with weights of floats, [S,B,D*G*H].
Value float_product(NodeContext& c, const Cell& cell, Value x) {
    ingot::Graph& g = c.g;
    Dim rows = Dim(cell.directions()) * cell.columns();
    Value w = ops::reshape(g, c.in(1), {rows, ops::dims(g, x)[2]});
    return ops::dot(g, Dot{{}, {}, {2}, {1}, cell.t}, x, w);
}

// i64 [B], or invalid where all sequences have all steps.
Value lengths_of(NodeContext& c, const Dims& x) {
    if (!c.has(4)) {
        return {};
    }
    auto known = known_ints(c, 4);
    bool full = known && x[0].is_const();
    for (size_t i = 0; full && i < known->size(); ++i) {
        full = (*known)[i] == x[0].value();
    }
    return full ? Value{} : ops::reshape(c.g, to_i64(c.g, c.in(4)), {x[1]});
}

// --- the layer

using LayerOf = std::function<Values(const Recurrence& a, const RecurrenceInputs& in,
                                     std::span<const Value> weights)>;

// All directions together, or one by one where their functions differ. `weights` have an axis for
// directions in front.
Values by_functions(ingot::Graph& g, const Cell& cell, const RecurrenceInputs& in,
                    const std::vector<Value>& weights, const LayerOf& layer_of) {
    if (same_functions(cell)) {
        return layer_of(attributes(cell, 0, cell.all.reversed.size()), in, weights);
    }
    std::vector<Values> each;
    for (size_t d = 0; d < cell.all.reversed.size(); ++d) {
        auto at = static_cast<int64_t>(d);
        auto own = [&](Value v) { return v.valid() ? ops::slice(g, v, 0, at, 1) : v; };
        RecurrenceInputs one = {ops::slice(g, in.x, 2, Dim(at) * cell.columns(), cell.columns()),
                                own(in.r),
                                own(in.h),
                                own(in.c),
                                own(in.reset_bias),
                                own(in.peepholes),
                                in.lengths};
        std::vector<Value> own_weights;
        for (Value v : weights) {
            own_weights.push_back(own(v));
        }
        each.push_back(layer_of(attributes(cell, d, 1), one, own_weights));
    }
    Values out;
    for (size_t i = 0; i < each[0].size(); ++i) {
        bool states = i + 1 < each[0].size(); // [D,B,H], then y [S,D,B,H]
        out.push_back(ops::concat(g, std::array{each[0][i], each[1][i]}, states ? 0 : 1));
    }
    return out;
}

Values float_layer(ingot::Graph& g, const Cell& cell, const RecurrenceInputs& in) {
    return by_functions(g, cell, in, {},
                        [&g](const Recurrence& a, const RecurrenceInputs& one, auto) {
                            return ops::recurrence(g, a, one);
                        });
}

Values quantized_layer(NodeContext& c, const Cell& cell, const RecurrenceInputs& in) {
    QuantizedWeights w = quantized_weights(c, cell);
    std::vector<Value> weights = {w.r, w.scale, w.sums};
    if (w.zero.valid()) {
        weights.push_back(w.zero);
    }
    bool hides_ended = c.wants(0);
    auto product = [hides_ended](ingot::Graph& g, Value h, Value step, Value lengths,
                                 std::span<const Value> all) {
        QuantizedWeights inside = {all[0], all[1], all[2], all.size() > 3 ? all[3] : Value{}};
        return quantized_recurrent(g, inside, h, step, lengths, hides_ended);
    };
    return by_functions(c.g, cell, in, weights,
                        [&](const Recurrence& a, const RecurrenceInputs& one, auto own) {
                            return ops::recurrence_by(c.g, a, one, own, product);
                        });
}

Values layer(NodeContext& c, Cell cell) {
    ingot::Graph& g = c.g;
    bool batch_first = c.i("layout", 0) != 0;
    auto state_order = [&](Value v) { return batch_first ? ops::permute(g, v, {1, 0, 2}) : v; };
    Value x = state_order(c.in(0));
    const Dims xd = ops::dims(g, x);
    RecurrenceInputs in;
    in.lengths = lengths_of(c, xd);
    in.x = cell.quantized ? quantized_product(c, cell, x, in.lengths) : float_product(c, cell, x);
    if (c.has(3)) {
        in.x = ops::add(g, in.x, outer_bias(c, cell));
    }
    if (!cell.quantized) {
        in.r = ops::reshape(g, c.in(2), {cell.directions(), cell.columns(), cell.hidden});
    }
    auto state = [&](int i) {
        Dims want = {cell.directions(), xd[1], cell.hidden};
        return c.has(i) ? ops::reshape(g, ops::cast(g, state_order(c.in(i)), cell.t), want)
                        : ops::full(g, cell.t, want, 0);
    };
    in.h = state(5);
    if (cell.all.has_cell_state()) {
        in.c = state(6);
        in.peepholes = c.has(7) ? row_of(c, cell, 7, 0, 3) : Value{};
    }
    if (cell.all.reset_after) {
        in.reset_bias = c.has(3) ? row_of(c, cell, 3, 5, 1)
                                 : ops::full(g, cell.t, {cell.directions(), 1, cell.hidden}, 0);
    }
    cell.all.lengths = in.lengths.valid();
    cell.all.peepholes = in.peepholes.valid();
    Values done = cell.quantized ? quantized_layer(c, cell, in) : float_layer(g, cell, in);
    Value y = batch_first ? ops::permute(g, done.back(), {2, 0, 1, 3}) : done.back();
    Values out = {ops::cast(g, y, c.dtype(0))};
    for (size_t i = 0; i + 1 < done.size(); ++i) {
        out.push_back(ops::cast(g, state_order(done[i]), c.dtype(0)));
    }
    return out;
}

Values rnn(NodeContext& c) {
    return layer(c, cell_of(c, "rnn"));
}

Values gru(NodeContext& c) {
    return layer(c, cell_of(c, "gru"));
}

Values lstm(NodeContext& c) {
    return layer(c, cell_of(c, "lstm"));
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
