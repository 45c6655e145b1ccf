// SPDX-License-Identifier: Apache-2.0
// From a model to layers of a network: one per node, two for a Gemm with a bias, and a constant
// layer for each initializer that layers read as a tensor.
#pragma once

#include "api/tensorrt/network/network.h"
#include "api/tensorrt/parser/parser.h"
#include "onnx/graph_walk.h"

namespace ingot::api {

struct CustomNode;

/// Adds inputs, initializers, nodes and outputs of a model to a network; collects errors.
class ModelLayers final : public onnx::GraphWalk {
public:
    /// `plugins_first`: a plugin with an operator's name replaces it.
    ModelLayers(Network& network, std::shared_ptr<const onnx::Model> model, bool plugins_first)
        : GraphWalk(*model, model->opset_imports), network_(network), model_(std::move(model)),
          plugins_first_(plugins_first) {}

    /// Throws InvalidModel for a malformed model.
    void run();
    ParserErrors& errors() { return errors_; }
    /// By node name, the first node of each name; unnamed nodes are left out.
    using Results = std::unordered_map<std::string, std::vector<NetworkTensor*>>;
    const Results& results() const { return results_; }
    /// Node indices in execution order, and the nodes that cannot be imported.
    const std::vector<size_t>& order() const { return order_; }
    bool refused(size_t node) const { return refused_.contains(node); }

    /// A node, or a part of one, that becomes a layer of this name.
    struct NodePart {
        onnx::Node node;
        std::string label;
    };

private:
    class TypedNode;
    /// The meaning of a name: a tensor; or an initializer, with its constant tensor, if any.
    struct Source {
        NetworkTensor* tensor = nullptr;
        std::optional<size_t> initializer;
    };
    // GraphWalk
    onnx::Lookup find(const std::string& name) override;
    std::vector<std::string> read_by(const onnx::Node& n) const override;
    bool knows(const onnx::Node& n) const override;
    void add_initializer(const onnx::Tensor& t) override;
    void add_input(const onnx::ValueInfo& info) override;
    void add_node(const onnx::Node& n, size_t index) override;
    void add_output(const onnx::ValueInfo& info) override;
    bool is_refusal(const Error&) const override { return true; }
    void refused_initializer(const std::string& name, const Error& e) override;
    void refused_input(const std::string& name, const Error& e) override;
    void refused_node(const onnx::Node& n, size_t index, const Error& e) override;
    void missing_input(const onnx::Node& n, size_t index, const std::string& reason) override;
    void missing_output(const std::string& reason) override;

    /// The plugin that takes the node, if one does.
    std::optional<CustomNode> custom(const onnx::Node& n) const;
    void note(ParserCode code, const std::string& text, int line);
    void note_node(const onnx::Node& n, size_t index, ParserCode code, const std::string& reason,
                   int line);
    std::vector<NetworkTensor*> add_part(const NodePart& part, size_t index);
    LayerBase& add_plain(const NodePart& part, size_t index, const std::vector<size_t>& results);
    /// The tensor; for an initializer, the output of its constant layer.
    NetworkTensor& constant(const std::string& name);
    LayerBase& add_constant(const std::string& name, size_t initializer);
    bool is_fixed(const Source& s) const;
    void add_custom(const onnx::Node& n, size_t index, const CustomNode& custom);
    void define(const std::string& name, NetworkTensor& t);

    Network& network_;
    std::shared_ptr<const onnx::Model> model_;
    bool plugins_first_;
    std::unordered_map<std::string, Source> names_;
    std::unordered_set<const NetworkTensor*> fixed_; // computed from constants alone
    Results results_;
    std::vector<size_t> order_;
    std::unordered_set<size_t> refused_;
    ParserErrors errors_;
};

} // namespace ingot::api
