// SPDX-License-Identifier: Apache-2.0
// A contraction with concrete sizes and strides, shared by all families that multiply matrices:
// result[batch][row][column] = epilogue(sum over depth of a[batch][row][depth] *
// b[batch][column][depth]).
#pragma once

#include "base/integers.h"
#include "kernels/contraction/epilogue.h"
#include "ops/primitives.h"

#include <optional>

namespace ingot::kernels {

/// Merged axes and the strides of each tensor that has them; at least one axis.
struct Loops {
    Shape sizes;
    Shape a, b;
    std::vector<Shape> stored; // of the result, then of the epilogue's operands

    int rank() const { return static_cast<int>(sizes.size()); }
    int64_t count() const;
};

/// Where columns that are heads go, as heads.h says. The innermost axis of the columns has the two
/// elements of a pair; the other axes are heads, and the pairs of a head.
struct HeadStore {
    struct Part {
        Operand out;
        int64_t first = 0; // head
        int64_t step = 0;  // between heads
        int64_t pair = 0;  // between the elements of a pair
        bool turned = false;
    };
    std::vector<Part> parts; // in the order of their heads
    int64_t pairs = 0;       // of a head
    bool interleaved = false;
};

struct Contraction {
    Operand a, b, out;
    /// In place of an epilogue; its operands are cosines and sines.
    std::optional<HeadStore> heads;
    /// Moments of the result's rows (ops/row_moments.h), stored with it.
    std::optional<Operand> moments;
    /// The epilogue's operand whose rows are normalised as they are read.
    std::optional<size_t> residual;
    bool b_constant = false;
    bool backwards = false; // as in Problem
    Loops batch, rows, columns, depth;
    Epilogue epilogue;

    int64_t batches() const { return batch.count(); }
    int64_t m() const { return rows.count(); }
    int64_t n() const { return columns.count(); }
    int64_t k() const { return depth.count(); }
    bool empty() const { return batches() * m() * n() == 0; }
    /// Whether columns come in pairs, with one result each (two, where they are heads): the
    /// innermost axis of the columns has two elements, a column in the first half of b's and its
    /// partner in the second.
    bool paired() const { return epilogue.sums == 2; }
};

/// The same work for a more general program, which other problems may use too. Variants are sums of
/// these: two addends, of which some are missing; an axis of rows of size 1 before the only one.
constexpr int variant_addends = 1;
constexpr int variant_rows = 2;
constexpr int contraction_variants = 4;
constexpr size_t staged_addends = 2;
Contraction generalised(Contraction c, int variant);
/// For a dot. Errors: InvalidArgument when paired sizes differ.
Contraction contraction_of(const Problem& p);
/// For a node that computes the dot `d` of its first two operands.
Contraction contraction_of(const Problem& p, const Dot& d);
/// a and b, rows and columns exchanged.
Contraction swapped(Contraction c);

/// The device type of sums: "float", "double", "u32" or "u64".
std::string_view sum_c_type(DType a, DType b, DType result);

/// Sets `loops` to one axis of size 1 where it has none.
void fill(Loops& loops, size_t stored);
/// Merges axes that all tensors walk as one.
void merge(Loops& loops);

/// Whether `loops` strides of one operand and its offset are multiples of `n`, apart from the
/// innermost stride `inner`.
bool all_multiples(const Shape& strides, int64_t n);
/// The offset of the farthest element from the first; -1 when a stride is negative.
int64_t reach(const Loops& loops, const Shape& strides);

} // namespace ingot::kernels
