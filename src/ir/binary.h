// SPDX-License-Identifier: Apache-2.0
// The binary form of graphs, as the engine file stores them: little endian, varints, tables of
// strings, sizes, types and attribute layouts. The same graph gives the same bytes.
//
// Attributes are stored by name: a field that a later version adds keeps its default when an older
// file lacks it; a field that the reader does not know is an error.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Stores the bytes of a tensor in the weights section and returns their offset there. Called once
/// per constant, in node order; equal tensors may share an offset.
using StoreTensor = std::function<uint64_t(const Tensor&)>;
/// Tensors up to this many bytes are stored inside the graph section.
inline constexpr size_t max_inline_bytes = 64;

std::vector<std::byte> write_graph(const Graph& g, const StoreTensor& store);

struct ReadOptions {
    const OpDef* (*find_op)(std::string_view name) = nullptr;
    /// The tensor at an offset of the weights section; throws when it exceeds the section.
    std::function<Tensor(DType dtype, const Shape& shape, uint64_t offset)> fetch;
};
/// Reads the output of write_graph. Trusts nothing: counts are bounded by the bytes present, types
/// are inferred again and compared. Errors: InvalidEngine with byte position, node, got and
/// expected.
Graph read_graph(std::span<const std::byte> bytes, const ReadOptions& options);

} // namespace ingot
