// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/typed_node.h"

#include "onnx/import_node.h"

#include <algorithm>
#include <numeric>

namespace ingot::api {

namespace {

/// Records failures silently, lack of memory separately.
class Silence final : public nv::ILogger, public nv::IErrorRecorder {
public:
    void log(Severity, const char*) noexcept override {}
    bool reportError(nv::ErrorCode code, ErrorDesc) noexcept override {
        failed = true;
        lacked_memory = lacked_memory || code == nv::ErrorCode::kFAILED_ALLOCATION;
        return false;
    }
    int32_t getNbErrors() const noexcept override { return failed ? 1 : 0; }
    nv::ErrorCode getErrorCode(int32_t) const noexcept override {
        return nv::ErrorCode::kUNSPECIFIED_ERROR;
    }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { failed = false; }
    RefCount incRefCount() noexcept override { return 1; } // outlives its users
    RefCount decRefCount() noexcept override { return 1; }

    bool failed = false;
    bool lacked_memory = false;
};

} // namespace

std::vector<LayerBase*> ModelLayers::TypedNode::add() {
    LayerBuilder build = find_layer_builder(node_.domain, node_.op_type);
    if (build == nullptr) {
        return {};
    }
    std::vector<LayerBase*> layers = made(build);
    std::vector<NodeSource> sources;
    if (layers.empty() || !cover(layers) || !tells(*layers[0], sources)) {
        take_back();
        return {};
    }
    std::vector<size_t> results(layers.size() > 1 ? layers.size() : layers[0]->outputs.size());
    std::iota(results.begin(), results.end(), size_t{0});
    auto whole = std::make_shared<NodeOp>(all_.model_, node_, index_, std::move(sources),
                                          std::move(results), label_);
    for (size_t i = 0; i < layers.size(); ++i) {
        layers[i]->name = i == 0 ? label_ : str(label_, "_", i);
        layers[i]->parsed = whole;
        if (layers.size() > 1) {
            layers[i]->parsed = std::make_shared<PartOp>(whole, layers, i, layers[i]->name);
        }
    }
    return layers;
}

const ModelLayers::Source* ModelLayers::TypedNode::source(int i) const {
    const std::string& name = node_.inputs.at(static_cast<size_t>(i));
    return name.empty() ? nullptr : &all_.names_.at(name);
}

std::vector<LayerBase*> ModelLayers::TypedNode::made(LayerBuilder build) {
    Emission& types = network_.types();
    Values in;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        const Source* s = source(static_cast<int>(i));
        in.push_back(s == nullptr     ? Value{}
                     : s->initializer ? types.initializer(*s->initializer)
                                      : types.value(*s->tensor));
    }
    NodeView::Inputs inputs;
    inputs.tensor = [&](int i) -> NetworkTensor& {
        require(i < static_cast<int>(node_.inputs.size()) && source(i) != nullptr,
                ErrorCode::InvalidModel, "required input ", i, " is missing");
        if (source(i)->tensor == nullptr) {
            constants_.push_back(node_.inputs[static_cast<size_t>(i)]);
        }
        return all_.constant(node_.inputs[static_cast<size_t>(i)]);
    };
    inputs.is_fixed = [&](int i) { return source(i) != nullptr && all_.is_fixed(*source(i)); };
    inputs.initializer = [&](int i) {
        return source(i) == nullptr ? std::nullopt : source(i)->initializer;
    };
    Silence silence;
    Report report(&silence, &silence);
    Network::Reading reading(network_, report);
    nv::ILayer* first = nullptr;
    bool readable = true;
    try {
        onnx::look_at_node(*all_.model_, types.graph(), node_, in, [&](const onnx::NodeContext& c) {
            first = build(NodeView(network_, c, inputs));
        });
    } catch (const Error& e) { // the importer reports it
        if (e.code() == ErrorCode::OutOfMemory) {
            throw;
        }
        readable = false;
    }
    if (silence.lacked_memory) { // the class may fit when there is memory
        throw std::bad_alloc();
    }
    if (!readable || silence.failed) {
        return {};
    }
    std::vector<LayerBase*> out;
    for (size_t i = before_.layers; i < network_.layers().size() && first != nullptr; ++i) {
        LayerBase& layer = *network_.layers()[i];
        if (!out.empty() || &layer.face() == first) {
            out.push_back(&layer);
        }
    }
    return out;
}

bool ModelLayers::TypedNode::cover(const std::vector<LayerBase*>& layers) const {
    if (layers.size() > 1) {
        return layers.size() == node_.outputs.size();
    }
    for (size_t i = layers[0]->outputs.size(); i < node_.outputs.size(); ++i) {
        if (!node_.outputs[i].empty()) {
            return false;
        }
    }
    return true;
}

bool ModelLayers::TypedNode::tells(const LayerBase& layer, std::vector<NodeSource>& sources) const {
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        NodeSource s{node_.inputs[i], std::nullopt, nullptr, 0};
        if (const Source* from = source(static_cast<int>(i))) {
            s.tensor = from->initializer ? nullptr : from->tensor;
            s.initializer = from->initializer.value_or(0);
        }
        sources.push_back(std::move(s));
    }
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
        auto it = std::find_if(sources.begin(), sources.end(), [&](const NodeSource& s) {
            return !s.name.empty() && !s.input && all_.names_.at(s.name).tensor == layer.inputs[k];
        });
        if (layer.inputs[k] != nullptr && it != sources.end()) {
            it->input = k;
        }
    }
    auto is_told = [](const NodeSource& s) { return !s.input && s.tensor != nullptr; };
    for (const NodeSource& s : sources) {
        if (is_told(s) && !all_.fixed_.contains(s.tensor)) {
            return false;
        }
    }
    for (const NodeSource& s : sources) {
        if (is_told(s)) {
            settle(*s.tensor, layer);
        }
    }
    return true;
}

// Fixes everything that the tensor's value is computed from.
void ModelLayers::TypedNode::settle(const NetworkTensor& t, const LayerBase& layer) {
    LayerBase* producer = t.producer();
    if (producer->settles != nullptr) {
        return;
    }
    producer->settles = &layer;
    for (const NetworkTensor* in : producer->inputs) {
        if (in != nullptr) {
            settle(*in, layer);
        }
    }
}

void ModelLayers::TypedNode::take_back() {
    if (network_.layers().size() == before_.layers) {
        return;
    }
    for (const std::string& name : constants_) {
        Source& s = all_.names_.at(name);
        all_.fixed_.erase(s.tensor);
        s.tensor = nullptr;
    }
    network_.restore(before_);
}

} // namespace ingot::api
