// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/parsed_op.h"

#include "api/tensorrt/network/emission.h"
#include "onnx/import_node.h"

#include <algorithm>

namespace ingot::api {

Values InitializerOp::emit(const Emitter& e) const {
    return {e.emission.initializer(index_)};
}

NodeOp::NodeOp(std::shared_ptr<const onnx::Model> model, const onnx::Node& node, size_t index,
               std::vector<NodeSource> sources, std::vector<size_t> results, std::string label)
    : model_(std::move(model)), node_(node), index_(index), sources_(std::move(sources)),
      results_(std::move(results)), label_(std::move(label)) {
    for (size_t r : results_) { // all results of the layer are needed
        node_.outputs.resize(std::max(node_.outputs.size(), r + 1));
        if (node_.outputs[r].empty()) {
            node_.outputs[r] = str("result ", r, " of ", label_);
        }
    }
    // Two inputs with one name may become different values.
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        std::string& name = node_.inputs[i];
        bool again = std::find(node_.inputs.begin(), node_.inputs.begin() + static_cast<int64_t>(i),
                               name) != node_.inputs.begin() + static_cast<int64_t>(i);
        if (!name.empty() && again) {
            name = str(name, "#", i);
            sources_[i].name = name;
        }
    }
}

Values NodeOp::emit(const Emitter& e) const {
    return emit_as(e, e.layer.name == label_ ? "" : e.layer.name);
}

Values NodeOp::emit_as(const Emitter& e, const std::string& name) const {
    onnx::Node n = node_;
    n.name = name.empty() ? node_.name : name;
    std::unordered_map<std::string, Value> names;
    for (const NodeSource& s : sources_) {
        if (!s.name.empty()) {
            names.emplace(s.name, s.input               ? e.in[*s.input]
                                  : s.tensor != nullptr ? e.emission.value(*s.tensor)
                                                        : e.emission.initializer(s.initializer));
        }
    }
    Values all = onnx::import_node(*model_, e.g, n, index_, std::move(names));
    Values out;
    for (size_t r : results_) {
        out.push_back(all[r]);
    }
    return out;
}

bool NodeOp::reads(size_t input) const {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const NodeSource& s) { return s.input == input; });
}

Values PartOp::emit(const Emitter& e) const {
    Values all = whole_->emit_as(e, e.layer.name == label_ ? "" : e.layer.name);
    auto is_plain = [](const LayerBase& l) {
        return l.parsed != nullptr && !l.precision && !l.output_types[0];
    };
    for (size_t i = 0; i < layers_.size(); ++i) {
        const LayerBase& other = *layers_[i];
        bool alike = is_plain(other) && is_plain(e.layer) && other.inputs == e.layer.inputs;
        if (i != which_ && alike && !e.emission.has(*other.outputs[0])) {
            e.emission.preset(*other.outputs[0], all[i]);
        }
    }
    return {all[which_]};
}

std::optional<size_t> NodeOp::position(size_t input) const {
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        if (sources_[i].input == input) {
            return i;
        }
    }
    return std::nullopt;
}

} // namespace ingot::api
