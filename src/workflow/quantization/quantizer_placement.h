// SPDX-License-Identifier: Apache-2.0
// Placement: chooses the tensors of a graph to store as int8, so that products run on integers and
// the tensors between them move as bytes. Works on a sketch of either graph form.
#pragma once

#include <cstddef>
#include <vector>

namespace ingot {

enum class PlacementRole {
    Product,   // its one input, times a constant that will be int8: the input becomes int8
    Pointwise, // of one tensor: part of the operator that computes its input
    Join,      // pointwise of several tensors: a residual, a gate
    Concat,
    Maximum, // picks elements of its input: max pooling
    Window,  // weights or moves elements of its input: average pooling, resizing, padding
    View,    // the same elements under another shape
    Other,   // no rule; reads any type
};

struct PlacementOp {
    PlacementRole role = PlacementRole::Other;
    std::vector<size_t> inputs; // tensors that are not constant
    std::vector<size_t> outputs;
};

/// Operators in order; tensors are numbers.
struct PlacementSketch {
    std::vector<float> scales; // by tensor; 0: unknown
    std::vector<PlacementOp> ops;
};

/// The quantisation scale of each tensor; 0: not quantised. The rules, from the last operator to
/// the first:
/// - a product's input is int8; for a view, so is the view's source;
/// - the operands of a join on the way to an int8 tensor are int8, except those that its last
///   product computes: these are added before anything is stored;
/// - inputs of pooling on the way to an int8 tensor are int8, and of concatenations with an int8
///   result; they take the scale of the result where that loses nothing.
/// A product is left alone when neither its input nor the input's source has a known scale.
std::vector<float> assign_scales(const PlacementSketch& sketch);

} // namespace ingot
