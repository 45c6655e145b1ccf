// SPDX-License-Identifier: Apache-2.0
// The ops that a parsed layer adds to a graph while its settings equal the model's: those of its
// node.
#pragma once

#include "api/tensorrt/network/layer.h"

namespace ingot::api {

class ParsedOp {
public:
    ParsedOp() = default;
    ParsedOp(const ParsedOp&) = delete;
    ParsedOp& operator=(const ParsedOp&) = delete;
    virtual ~ParsedOp() = default;
    /// Errors: those of the importer.
    virtual Values emit(const Emitter& e) const = 0;
    /// Whether the node reads this input of the layer.
    virtual bool reads(size_t input) const = 0;
};

/// An initializer.
class InitializerOp final : public ParsedOp {
public:
    explicit InitializerOp(size_t index) : index_(index) {}
    Values emit(const Emitter& e) const override;
    bool reads(size_t) const override { return false; }

private:
    size_t index_;
};

/// The source of a node's input, or of a name that its bodies capture: an input of the layer, else
/// a tensor whose value is one of the layer's settings, else an initializer.
struct NodeSource {
    std::string name;
    std::optional<size_t> input;
    const NetworkTensor* tensor = nullptr;
    size_t initializer = 0;
};

class NodeOp final : public ParsedOp {
public:
    /// `sources`: the node's inputs first, one each, including omitted ones. `results`: the node
    /// output of each layer output. `label`: the layer's name; a later name replaces the node's in
    /// profiles.
    NodeOp(std::shared_ptr<const onnx::Model> model, const onnx::Node& node, size_t index,
           std::vector<NodeSource> sources, std::vector<size_t> results, std::string label);
    Values emit(const Emitter& e) const override;
    /// All results of the node; a non-empty `name` replaces its own in profiles.
    Values emit_as(const Emitter& e, const std::string& name) const;
    bool reads(size_t input) const override;
    /// The node input that an input of the layer maps to.
    std::optional<size_t> position(size_t input) const;

private:
    std::shared_ptr<const onnx::Model> model_;
    onnx::Node node_;
    size_t index_;
    std::vector<NodeSource> sources_;
    std::vector<size_t> results_;
    std::string label_;
};

/// One result of a node that has a layer for each result.
class PartOp final : public ParsedOp {
public:
    PartOp(std::shared_ptr<const NodeOp> whole, std::vector<LayerBase*> layers, size_t which,
           std::string label)
        : whole_(std::move(whole)), layers_(std::move(layers)), which_(which),
          label_(std::move(label)) {}
    /// Also sets the results of the node's other layers, unless their settings differ.
    Values emit(const Emitter& e) const override;
    bool reads(size_t input) const override { return whole_->reads(input); }

private:
    std::shared_ptr<const NodeOp> whole_;
    std::vector<LayerBase*> layers_; // by node result; they live as long as the network
    size_t which_;
    std::string label_;
};

} // namespace ingot::api
