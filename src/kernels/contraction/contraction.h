// SPDX-License-Identifier: Apache-2.0
// A contraction with concrete sizes and strides, as all families that multiply matrices see it:
// result[batch][row][column] = epilogue(sum over depth of a[batch][row][depth] *
// b[batch][column][depth]).
#pragma once

#include "base/text.h"
#include "ir/expr.h"
#include "kernels/family.h"
#include "ops/primitives.h"

namespace ingot::kernels {

/// Merged axes and the strides of each tensor that has them; at least one axis.
struct Loops {
    Shape sizes;
    Shape a, b;
    std::vector<Shape> stored; // of the result, then of the epilogue's operands

    int rank() const { return static_cast<int>(sizes.size()); }
    int64_t count() const;
};

/// What follows the sums. `body` begins with the addends: ((sum + operand 0) + operand 1) ...; each
/// of them may be missing, and counts as -0 then. Of two sums, those of a pair of columns, there
/// are no addends.
struct Finish {
    DType sum_type = DType::F32;
    DType type = DType::F32; // as stored
    size_t sums = 1;
    Expr body; // of the sums and the operands, in this order
    size_t addends = 0;
    std::vector<Operand> operands; // broadcast to the result's shape
};
/// As Operand::buffer: an addend that is missing.
constexpr int missing_operand = -3;

struct Contraction {
    Operand a, b, out;
    bool b_constant = false;
    Loops batch, rows, columns, depth;
    Finish finish;

    int64_t batches() const { return batch.count(); }
    int64_t m() const { return rows.count(); }
    int64_t n() const { return columns.count(); }
    int64_t k() const { return depth.count(); }
    bool empty() const { return batches() * m() * n() == 0; }
    /// Whether columns come in pairs, a result from each: the innermost axis of the columns has two
    /// elements, a column in the first half of b's and its like in the second.
    bool paired() const { return finish.sums == 2; }
};

/// Why the group is not one main node with at most a map of the result's shape after it. Only
/// `quantised` may have 4-bit elements.
std::optional<std::string> refuse_finish(const Group& group, Value quantised = {});
/// Whether the group is a main node, two slices and a map, as for gated linear units; then why it
/// is not one whose map reads the halves of the main node's last axis, the first one first.
bool has_halves(const Group& group);
std::optional<std::string> refuse_halves(const Group& group);
Finish finish_of(const Problem& p);
/// Part of the epilogue's text: OUT value_of(ACC sum, elements of the operands); `wide`: a float,
/// not yet narrowed to a result of 16 bits.
std::string value_text(const Finish& f, bool wide = false);
/// The same work for a more general program, which others may have already. Variants are sums of
/// these: two addends, of which some are missing; an axis of rows of size 1 before the only one.
constexpr int variant_addends = 1;
constexpr int variant_rows = 2;
constexpr int contraction_variants = 4;
constexpr size_t staged_addends = 2;
Contraction generalised(Contraction c, int variant);
/// Of a dot. Errors: InvalidArgument when paired sizes differ.
Contraction contraction_of(const Problem& p);
/// Of the first two operands of a node that is a dot of them in some way.
Contraction contraction_of(const Problem& p, const Dot& d);
/// a and b, rows and columns exchanged.
Contraction swapped(Contraction c);

/// The type in which sums are kept, on the device: "float", "double", "u32" or "u64".
std::string_view sum_c_type(DType a, DType b, DType result);

/// Sets `loops` to one axis of size 1 where it has none.
void fill(Loops& loops, size_t stored);
/// Merges axes that all tensors walk as one.
void merge(Loops& loops);

/// Whether everything stored and read at the end can be walked in vectors of 8 columns.
bool vector_columns(const Contraction& c);
/// Columns that a thread stores at a time (VEC), at most and at least.
int store_width(const Contraction& c);
int least_width(const Contraction& c);

/// Device text: what precedes contract.cuh (types, ranks, EPI_PARAMS), and the epilogue behind it;
/// for store_staged.cuh, too, where it defines STAGED as more than 0.
struct StoreText {
    std::string defines;
    std::string functions;
    bool staged = false;
    bool paired = false;

    /// store_tile.cuh, and what makes it take pairs.
    std::string store_tile() const;
};
StoreText store_text(const Contraction& c, int vector);
/// `struct Geometry` of contract.cuh as an argument, and the epilogue's pointers.
void add_geometry(Args& args, const Contraction& c);
void add_operands(Args& args, const Contraction& c);
/// A struct of 64-bit integers as one argument. The device's struct may be shorter.
void add_words(Args& args, std::span<const int64_t> words);

/// Whether `loops` strides of one operand and its offset are multiples of `n`, apart from the
/// innermost stride `inner`.
bool all_multiples(const Shape& strides, int64_t n);
/// The farthest element from the first; -1 when a stride is negative.
int64_t reach(const Loops& loops, const Shape& strides);

} // namespace ingot::kernels
