// SPDX-License-Identifier: Apache-2.0
// TypedNode: adds layers with their own classes for a model node.
#pragma once

#include "api/tensorrt/parser/layer_builders/layer_builder.h"
#include "api/tensorrt/parser/model_layers.h"
#include "api/tensorrt/parser/parsed_op.h"

namespace ingot::api {

class ModelLayers::TypedNode {
public:
    TypedNode(ModelLayers& all, const onnx::Node& n, size_t index, const std::string& label)
        : all_(all), network_(all.network_), node_(n), index_(index), label_(label),
          before_(network_.state()) {}

    /// One layer, or one per result. Returns none, and adds nothing, where no class fits.
    std::vector<LayerBase*> add();

private:
    const Source* source(int i) const;
    std::vector<LayerBase*> made(LayerBuilder build);
    /// Whether the layers have all results of the node.
    bool cover(const std::vector<LayerBase*>& layers) const;
    /// Whether every input of the node is an input of the layer, or known to its settings.
    bool tells(const LayerBase& layer, std::vector<NodeSource>& sources) const;
    static void settle(const NetworkTensor& t, const LayerBase& layer);
    void take_back();

    ModelLayers& all_;
    Network& network_;
    const onnx::Node& node_;
    size_t index_;
    const std::string& label_;
    Network::State before_;
    std::vector<std::string> constants_; // made for this node
};

} // namespace ingot::api
