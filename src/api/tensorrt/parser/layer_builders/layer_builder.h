// SPDX-License-Identifier: Apache-2.0
// Readers of model nodes: each makes the layer that a node is, with settings that say what the node
// says. The table of all of them is table.cpp.
#pragma once

#include "api/tensorrt/network/network.h"
#include "onnx/importer.h"

#include <functional>
#include <optional>
#include <vector>

namespace ingot::api {

/// What a reader has of its node.
class NodeReader {
public:
    /// What the network knows of the node's inputs, by position.
    struct Inputs {
        /// As a tensor: of an initializer, the output of a constant layer.
        std::function<NetworkTensor&(int)> tensor;
        /// Whether it is an initializer, or computed of nothing but constants.
        std::function<bool(int)> is_fixed;
        /// Which initializer it is.
        std::function<std::optional<size_t>(int)> initializer;
    };
    NodeReader(Network& network, const onnx::NodeContext& context, const Inputs& inputs)
        : n(network), c(context), inputs_(inputs) {}

    Network& n;
    /// Attributes, and types of inputs.
    const onnx::NodeContext& c;

    nv::ITensor& tensor(int i) const { return inputs_.tensor(i); }
    /// Of an input that the node may leave out.
    nv::ITensor* optional_tensor(int i) const { return c.has(i) ? &tensor(i) : nullptr; }
    /// The contents of an input that are the same in every run.
    std::optional<Tensor> constant(int i) const;
    std::optional<std::vector<int64_t>> constant_ints(int i) const;
    std::optional<double> constant_number(int i) const;
    /// The same as weights, which live as long as the network.
    std::optional<nv::Weights> weights(int i) const;
    /// Weights that are computed.
    nv::Weights keep(const Tensor& t) const;
    /// The output of a constant layer that the model does not have.
    nv::ITensor& made(const Tensor& t) const;

    /// The axis of an attribute, counted from the front.
    int32_t axis(int64_t fallback, std::string_view attribute = "axis") const;
    /// From an attribute or an input; nullopt where only the run knows them. "given" is false where
    /// the node has none.
    struct AxisList {
        bool given = false;
        std::vector<int64_t> axes;
    };
    std::optional<AxisList> axes(std::string_view attribute, int input) const;
    /// A size of an input where it is known.
    std::optional<int64_t> size(int i, int64_t axis) const;

private:
    const Inputs& inputs_;
};

/// Adds the layer of a node and returns it, or one for each of the node's results, the last ones
/// that are added, and returns the first; nullptr where no class of layers says what the node does.
/// Errors of the importer for nodes that are malformed.
using NodeReading = nv::ILayer* (*)(const NodeReader& r);
struct ReaderRow {
    std::string_view domain;
    std::string_view op;
    NodeReading read;
};
/// Null where an operator has no class.
NodeReading find_reader(std::string_view domain, std::string_view op);

/// Whether the public API has a name for the type.
bool has_name(DType t);
nv::Dims dims_of(const std::vector<int64_t>& values);
uint32_t mask_of(const std::vector<int64_t>& axes);

} // namespace ingot::api
