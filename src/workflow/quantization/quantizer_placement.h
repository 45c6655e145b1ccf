// SPDX-License-Identifier: Apache-2.0
// Placement: which tensors of a graph are to be int8, so that products of integers result and what
// lies between them is read and written as bytes. Works on a sketch of the graph, whatever the
// graph is.
#pragma once

#include <cstddef>
#include <vector>

namespace ingot {

enum class PlacementRole {
    Product,   // of its one input with a constant that will be int8: its input becomes int8
    Pointwise, // of one tensor: a step behind what computes its input
    Join,      // pointwise of several tensors: a residual, a gate
    Concat,
    Maximum, // picks elements of its input: max pooling
    Window,  // weighs or moves elements of its input: average pooling, resizing, padding
    View,    // the same elements under another shape
    Other,   // reads what it gets
};

struct PlacementOp {
    PlacementRole role = PlacementRole::Other;
    std::vector<size_t> inputs; // tensors that are not constant
    std::vector<size_t> outputs;
};

/// Operators in order; tensors are numbered.
struct PlacementSketch {
    std::vector<float> scales; // by tensor; 0: not known
    std::vector<PlacementOp> ops;
};

/// The scale that each tensor is to be quantised with; 0: it stays as it is. The rules, from the
/// last operator to the first:
/// - a product's input is int8, and where that is a view, what it is a view of;
/// - what a join reads on the way to an int8 tensor is int8, but for the operands that the last
///   product among them computes: those are added before anything is stored;
/// - inputs of pooling on the way to an int8 tensor are int8, and of concatenations whose result
/// is;
///   where the scale can be that of the result without a loss, it is.
/// A product whose input has no known scale, nor what it is a view of, is left alone.
std::vector<float> place(const PlacementSketch& sketch);

} // namespace ingot
