// SPDX-License-Identifier: Apache-2.0
// Groups of a layer_norm over the last axis, or a moment_norm, which only the product behind it
// reads, and what follows that: products of few rows normalise them in every block, other ones in a
// launch of its own. Or the map behind the product reads the norm as a residual: a product that
// reads it too leaves the normalised rows as its second result, unless both take the moments.
#pragma once

#include "kernels/contraction/contraction.h"

#include <functional>

namespace ingot::kernels {

/// Rows that are normalised over the depth before they are multiplied.
struct RowNorm {
    bool rms = false;
    double epsilon = 0;
    std::vector<Operand> vectors;   // the scale, then perhaps a bias, as they broadcast to the rows
    bool constant = true;           // all of them
    std::optional<Operand> moments; // of a moment_norm

    /// Whether the vectors can be read `n` elements at a time.
    bool reads_vectors(int64_t n) const;
};

/// NORM of the device text: 0 without a norm, 2 for layer_norm, 3 for rms.
int norm_define(const RowNorm* norm);
/// The arguments `scale`, `bias` and `epsilon` of the device text; null without a norm.
void add_norm_args(Args& args, const RowNorm* norm);

/// A family of products, as seen by groups that begin with a norm.
struct NormedProduct {
    std::optional<std::string> (*refuse)(const Group& group);
    void (*layout)(LayoutArgs& args);
    std::vector<Tactic> (*tactics)(const Problem& product);
    Emitted (*emit)(const Problem& product, const Tactic& t);
    /// Tactics that normalise the rows in every block.
    void (*add_inside)(std::vector<Tactic>& out, const Problem& product, const RowNorm& norm);
    /// nullopt when the tactic is none of those.
    std::optional<Emitted> (*emit_inside)(const Problem& product, const RowNorm& norm,
                                          const Tactic& t);
};

/// Calls `f` with the product of the raw rows, and with the norm of those.
void before_norm(const Problem& p,
                 const std::function<void(const Problem& product, const RowNorm& norm)>& f);

/// Whether the group begins with a norm.
bool has_norm(const Group& group);
/// Whether it is a norm that the map behind the product reads: a moment_norm of three operands.
bool has_residual(const Group& group);
/// Whether the map reads the normalised rows that another group has left: a plan's groups agree.
bool reads_left_rows(const Problem& p);
/// The product of a has_residual group: of those rows, else of the raw ones, the last operand.
Contraction residual_contraction(const Problem& p);
/// The functions of a family for its products with or without a norm before them.
std::optional<std::string> refuse_with_norm(const Group& group, const NormedProduct& product);
void layout_with_norm(LayoutArgs& args, const NormedProduct& product);
std::vector<Tactic> tactics_with_norm(const Problem& p, const NormedProduct& product);
Emitted emit_with_norm(const Problem& p, const Tactic& t, const NormedProduct& product);

} // namespace ingot::kernels
