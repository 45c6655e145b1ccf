// SPDX-License-Identifier: Apache-2.0
// Maps an element of a result back to its source element through rolls, reshapes and permutes:
// coordinates as text over kernel arguments.
#pragma once

#include "kernels/pointwise/index_text.h"

#include <string>

namespace ingot::kernels {

/// Groups of axes of two shapes with the same elements: a product of sizes of `a` equals one of
/// `b`. Axes of size 1 belong to no group.
struct AxisGroup {
    std::vector<size_t> a;
    std::vector<size_t> b;
};
std::vector<AxisGroup> axis_groups(const Shape& a, const Shape& b);

/// Contiguous elements along one axis on the way: `unit` of them, from multiples of it.
struct Run {
    Shape shape;
    size_t axis = 0;
    int64_t unit = 1;

    void reshape(const Shape& to);
    void permute(std::span<const int64_t> perm);
    void roll(std::span<const int64_t> axes, const Shape& shifts);
};

/// Statements, and the parameters that they use.
class WalkText {
public:
    explicit WalkText(Signature& parameters) : wide_(parameters.wide()), parameters_(parameters) {}

    /// Begins at an element of a result of this shape: index `i` counts vectors of `vector`
    /// elements along the last of `order`, in that order of the axes.
    void begin(const Shape& shape, const plan::Order& order, int64_t vector);
    /// Steps back from the result to the operand: of a reshape from this shape, a permute, a roll.
    void reshape(const Shape& from);
    void permute(std::span<const int64_t> perm);
    void roll(std::span<const int64_t> axes, const Shape& shifts);

    /// Declares `name`, the offset of the element at the current coordinates; `inner`, if any, is
    /// an axis of stride 1.
    void offset(const std::string& name, const View& v, int inner);
    std::string_view index_type() const { return parameters_.size_type(); }
    std::string_view offset_type() const { return parameters_.offset_type(); }

    std::string body;

private:
    std::string parameter(int64_t v, bool is_offset = false);
    std::string declare(const std::string& value);

    bool wide_;
    Signature& parameters_;
    Shape shape_;
    std::vector<std::string> at_; // per axis; empty where its size is 1
    int names_ = 0;
};

} // namespace ingot::kernels
