// SPDX-License-Identifier: Apache-2.0
// Storage: the graph that backends run. Inputs and outputs have the shapes of their arrays in
// memory (IoFormat), and ops at the edges convert them to tensors and back.
#pragma once

#include "engine/io_format.h"
#include "ir/profile.h"

#include <memory>
#include <optional>

namespace ingot {

/// Immutable. When all formats are row major, graph and shapes are the engine's own. Otherwise the
/// graph may have extra leading inputs u8[0,C] without elements: each gives the channel count C of
/// an input that is padded to whole vectors.
class Storage {
public:
    /// Errors: InvalidArgument as check_formats().
    Storage(std::shared_ptr<const Graph> graph, IoFormats formats);

    bool is_plain() const { return stored_ == nullptr; }
    const IoFormats& formats() const { return formats_; }
    /// The graph to compile.
    const std::shared_ptr<const Graph>& graph() const { return is_plain() ? graph_ : stored_; }
    /// The number of extra inputs before the engine's.
    size_t sizes_before() const { return open_.size(); }
    std::vector<Profile> profiles(const std::vector<Profile>& profiles) const;
    /// Shapes of the inputs of graph(), from those of the engine's inputs.
    std::vector<Shape> input_shapes(std::span<const Shape> shapes) const;
    void input_shapes(std::span<const Shape> shapes, std::vector<Shape>& out) const;
    /// The inverse. Errors: InvalidArgument for inconsistent shapes.
    std::vector<Shape> tensor_shapes(std::span<const Shape> stored) const;
    /// The shape of an output of the engine, from that of its array and those of the engine's
    /// inputs.
    Shape output_shape(size_t output, const Shape& stored, std::span<const Shape> inputs) const;

private:
    Graph with_formats() const;

    std::shared_ptr<const Graph> graph_;
    IoFormats formats_;
    std::shared_ptr<const Graph> stored_; // null: all row major
    std::vector<size_t> open_;            // inputs whose channel count is an extra leading input
};

} // namespace ingot
