// SPDX-License-Identifier: Apache-2.0
// Storage: an engine's graph as backends run it, where inputs and outputs have the shapes that they
// have in memory (IoFormat), and ops at its edges turn these into tensors and back.
#pragma once

#include "engine/io_format.h"
#include "ir/profile.h"

#include <memory>
#include <optional>

namespace ingot {

/// Immutable. Where all formats are row major, graph and shapes are the engine's own. Else the
/// graph may have inputs before those of the engine, without elements: of u8[0,C], which say how
/// many channels C an input has whose array has room for a whole number of vectors.
class Storage {
public:
    /// Errors: InvalidArgument as check_formats().
    Storage(std::shared_ptr<const Graph> graph, IoFormats formats);

    bool is_plain() const { return stored_ == nullptr; }
    const IoFormats& formats() const { return formats_; }
    /// The graph to compile.
    const std::shared_ptr<const Graph>& graph() const { return is_plain() ? graph_ : stored_; }
    /// How many inputs it has before the engine's.
    size_t sizes_before() const { return open_.size(); }
    std::vector<Profile> profiles(const std::vector<Profile>& profiles) const;
    /// Shapes of the inputs of graph() for those of the engine's.
    std::vector<Shape> input_shapes(std::span<const Shape> shapes) const;
    void input_shapes(std::span<const Shape> shapes, std::vector<Shape>& out) const;
    /// The other way round. Errors: InvalidArgument for shapes that do not fit each other.
    std::vector<Shape> tensor_shapes(std::span<const Shape> stored) const;
    /// The shape of an output of the engine from that of its array, and those of the engine's
    /// inputs.
    Shape output_shape(size_t output, const Shape& stored, std::span<const Shape> inputs) const;

private:
    Graph with_formats() const;

    std::shared_ptr<const Graph> graph_;
    IoFormats formats_;
    std::shared_ptr<const Graph> stored_; // null: all is row major
    std::vector<size_t> open_;            // inputs whose channels have an input before all others
};

} // namespace ingot
