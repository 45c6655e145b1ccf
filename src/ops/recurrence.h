// SPDX-License-Identifier: Apache-2.0
// recurrence: all steps of a recurrent layer (RNN, GRU, LSTM), in one or two directions. Gates and
// formulas are those of the ONNX operators.
#pragma once

#include "ops/ops.h"

#include <functional>

namespace ingot::ops {

/// x itself, as a function of one f32.
inline Expr identity_function() {
    Expr e;
    e.in(0, DType::F32);
    return e;
}

/// (x, r, h, [c], [reset_bias], [peepholes], [lengths]) -> (h, [c], y), with D directions, S steps,
/// B sequences, H hidden elements and G gates (rnn 1, gru 3, lstm 4):
///   x [S,B,D*G*H]: the inputs' products, biases added; r [D,G*H,H]: the recurrent weights;
///   h [D,B,H], and c of an lstm: first states; as results, the last ones;
///   reset_bias [D,1,H], with reset_after; peepholes [D,1,3*H]; lengths: i64 [B]. y is [S,D,B,H].
/// All but lengths are of one float type T. States have f32 (f64 for f64) between steps; a product
/// reads them rounded to T. A sequence's states stay behind its length, and its y is 0 there.
struct Recurrence {
    std::string cell = "lstm";       // "rnn", "gru" or "lstm"
    std::vector<int64_t> reversed;   // a direction: 1 where it begins at a sequence's last step
    Expr gate = identity_function(); // functions of one f32; f64 computes them in f64
    Expr candidate = identity_function(); // gru and lstm
    Expr output = identity_function();    // lstm
    bool reset_after = false;  // gru: the product of all of h is scaled, after reset_bias
    bool input_forget = false; // lstm: the forget gate is 1 - the input gate
    bool peepholes = false;
    bool lengths = false;
    static void fields(auto& s, auto&& f) {
        f("cell", s.cell), f("reversed", s.reversed), f("gate", s.gate),
            f("candidate", s.candidate), f("output", s.output), f("reset_after", s.reset_after),
            f("input_forget", s.input_forget), f("peepholes", s.peepholes), f("lengths", s.lengths);
    }
    int64_t directions() const { return static_cast<int64_t>(reversed.size()); }
    bool has_cell_state() const { return cell == "lstm"; }
    int64_t gates() const { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }
};

/// The operands by name; what a layer does not have is invalid.
struct RecurrenceInputs {
    Value x, r, h, c, reset_bias, peepholes, lengths;
};
/// The operands of `a` in order. Errors: InvalidModel for another count.
RecurrenceInputs recurrence_inputs(const Recurrence& a, std::span<const Value> in);

Values recurrence(Graph& g, Recurrence a, const RecurrenceInputs& in);

/// A step's product of the states h [D,B,H], f32, with recurrent weights: [D,B,G*H] in f32.
/// `weights` are in the graph `g` what was given to recurrence_by; `step` is its number, i64.
using RecurrentProduct = std::function<Value(Graph& g, Value h, Value step, Value lengths,
                                             std::span<const Value> weights)>;
/// The primitives of a layer whose products another function makes, from `weights` in place of
/// in.r. Not for a gru without reset_after, which has two products a step.
Values recurrence_by(Graph& g, const Recurrence& a, const RecurrenceInputs& in,
                     std::span<const Value> weights, const RecurrentProduct& product);

extern const OpDef recurrence_def;

} // namespace ingot::ops
