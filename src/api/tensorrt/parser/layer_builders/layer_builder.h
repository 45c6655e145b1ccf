// SPDX-License-Identifier: Apache-2.0
// Layer builders: each turns a model node into a layer with the node's settings. table.cpp lists
// all of them.
#pragma once

#include "api/tensorrt/network/network.h"
#include "onnx/importer.h"

#include <functional>
#include <optional>
#include <vector>

namespace ingot::api {

/// A node as its layer builder sees it.
class NodeView {
public:
    /// Access to the node's inputs in the network, by position.
    struct Inputs {
        /// As a tensor; an initializer becomes the output of a constant layer.
        std::function<NetworkTensor&(int)> tensor;
        /// Whether it is an initializer, or computed from constants alone.
        std::function<bool(int)> is_fixed;
        /// The index of the initializer.
        std::function<std::optional<size_t>(int)> initializer;
    };
    NodeView(Network& network, const onnx::NodeContext& context, const Inputs& inputs)
        : n(network), c(context), inputs_(inputs) {}

    Network& n;
    /// Attributes and input types.
    const onnx::NodeContext& c;

    nv::ITensor& tensor(int i) const { return inputs_.tensor(i); }
    /// An input that the node may leave out.
    nv::ITensor* optional_tensor(int i) const { return c.has(i) ? &tensor(i) : nullptr; }
    /// The contents of a constant input.
    std::optional<Tensor> constant(int i) const;
    std::optional<std::vector<int64_t>> constant_ints(int i) const;
    std::optional<double> constant_number(int i) const;
    /// The same as weights, which live as long as the network.
    std::optional<nv::Weights> weights(int i) const;
    /// Keeps computed weights alive.
    nv::Weights keep(const Tensor& t) const;
    /// The output of a constant layer that the model lacks.
    nv::ITensor& made(const Tensor& t) const;

    /// The axis of an attribute, counted from the front.
    int32_t axis(int64_t fallback, std::string_view attribute = "axis") const;
    /// From an attribute or an input; nullopt where they are known only at run time. "given" is
    /// false where the node has none.
    struct AxisList {
        bool given = false;
        std::vector<int64_t> axes;
    };
    std::optional<AxisList> axes(std::string_view attribute, int input) const;
    /// The size of an input's axis, if known.
    std::optional<int64_t> size(int i, int64_t axis) const;

private:
    const Inputs& inputs_;
};

/// Adds the layer of a node and returns it; or adds one layer for each of the node's results, last,
/// and returns the first; nullptr where no layer class expresses the node. Errors: those of the
/// importer for malformed nodes.
using LayerBuilder = nv::ILayer* (*)(const NodeView& node);
struct LayerBuilderRow {
    std::string_view domain;
    std::string_view op;
    LayerBuilder build;
};
/// Null for an operator without a layer class.
LayerBuilder find_layer_builder(std::string_view domain, std::string_view op);

/// Whether the public API has a name for the type.
bool has_name(DType t);
nv::Dims dims_of(const std::vector<int64_t>& values);
uint32_t mask_of(const std::vector<int64_t>& axes);

} // namespace ingot::api
