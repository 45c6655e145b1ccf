// SPDX-License-Identifier: Apache-2.0
// What a layer of a parsed model adds to a graph while its settings are those of the model: the ops
// of the node that it was made of.
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

/// Where a node's input, or a name that its bodies take from outside, comes from: an input of the
/// layer, else a tensor whose value the layer's settings tell, else an initializer.
struct NodeSource {
    std::string name;
    std::optional<size_t> input;
    const NetworkTensor* tensor = nullptr;
    size_t initializer = 0;
};

class NodeOp final : public ParsedOp {
public:
    /// Sources of the node's inputs come first, one for each, also where it is left out. `results`
    /// says which of the node's outputs those of the layer are. `label` is the layer's name: once
    /// it has another, that stands for the node's own in profiles.
    NodeOp(std::shared_ptr<const onnx::Model> model, const onnx::Node& node, size_t index,
           std::vector<NodeSource> sources, std::vector<size_t> results, std::string label);
    Values emit(const Emitter& e) const override;
    /// All results of the node; `name` stands for its own in profiles, unless it is empty.
    Values emit_as(const Emitter& e, const std::string& name) const;
    bool reads(size_t input) const override;
    /// Which of the node's inputs an input of the layer is.
    std::optional<size_t> position(size_t input) const;

private:
    std::shared_ptr<const onnx::Model> model_;
    onnx::Node node_;
    size_t index_;
    std::vector<NodeSource> sources_;
    std::vector<size_t> results_;
    std::string label_;
};

/// One result of a node that is a layer for each of its results.
class PartOp final : public ParsedOp {
public:
    PartOp(std::shared_ptr<const NodeOp> whole, std::vector<LayerBase*> layers, size_t which,
           std::string label)
        : whole_(std::move(whole)), layers_(std::move(layers)), which_(which),
          label_(std::move(label)) {}
    /// The other layers get their results as well, unless they differ from this one.
    Values emit(const Emitter& e) const override;
    bool reads(size_t input) const override { return whole_->reads(input); }

private:
    std::shared_ptr<const NodeOp> whole_;
    std::vector<LayerBase*> layers_; // of the node's results; they live as long as the network
    size_t which_;
    std::string label_;
};

} // namespace ingot::api
