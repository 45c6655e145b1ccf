// SPDX-License-Identifier: Apache-2.0
#include "slim/edit.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace ingot::slim {

using onnx::Node;

GraphEdit::GraphEdit(onnx::Graph& graph, const GraphEdit* outer, Names& names)
    : graph_(graph), outer_(outer), names_(names), nodes_(std::move(graph.nodes)) {
    graph.nodes.clear();
    for (const onnx::ValueInfo& v : graph.inputs) {
        inputs_.insert(v.name);
    }
    for (const onnx::ValueInfo& v : graph.outputs) {
        outputs_.insert(v.name);
    }
    for (const onnx::QuantizationAnnotation& a : graph.quantization_annotation) {
        outputs_.insert(a.tensor_name);
        for (const auto& parameter : a.parameters) {
            outputs_.insert(parameter.second);
        }
    }
    for (size_t i = 0; i < graph.initializers.size(); ++i) {
        constants_.emplace(graph.initializers[i].name, i);
    }
    alive_.assign(nodes_.size(), true);
    for (size_t i = 0; i < nodes_.size(); ++i) {
        link(i);
    }
}

std::optional<size_t> GraphEdit::producer(const std::string& name) const {
    auto it = producers_.find(name);
    return it == producers_.end() ? std::nullopt : std::optional(it->second);
}

const std::vector<size_t>& GraphEdit::readers(const std::string& name) const {
    static const std::vector<size_t> none;
    auto it = readers_.find(name);
    return it == readers_.end() ? none : it->second;
}

bool GraphEdit::is_used(const std::string& name) const {
    return !name.empty() && (!readers(name).empty() || is_output(name));
}

bool GraphEdit::used_once(const std::string& name) const {
    return readers(name).size() == 1 && !is_output(name);
}

bool GraphEdit::is_defined_here(const std::string& name) const {
    return producers_.contains(name) || inputs_.contains(name) || constants_.contains(name);
}

const onnx::Tensor* GraphEdit::constant(const std::string& name) const {
    if (auto it = producers_.find(name); it != producers_.end()) { // an output of the graph
        const Node& n = nodes_[it->second];
        const bool constant = n.op_type == "Constant" && n.domain.empty() &&
                              n.attributes.size() == 1 && n.attributes[0].name == "value";
        return constant && n.attributes[0].t.string_count == 0 ? &n.attributes[0].t : nullptr;
    }
    if (is_defined_here(name)) {
        auto it = constants_.find(name);
        return it == constants_.end() || inputs_.contains(name) ? nullptr
                                                                : &graph_.initializers[it->second];
    }
    return outer_ == nullptr ? nullptr : outer_->constant(name);
}

std::string GraphEdit::add_constant(onnx::Tensor t, const std::string& stem) {
    t.name = names_.fresh(stem);
    adopt_constant(std::move(t));
    return graph_.initializers.back().name;
}

void GraphEdit::adopt_constant(onnx::Tensor t) {
    constants_.emplace(t.name, graph_.initializers.size());
    graph_.initializers.push_back(std::move(t));
}

void GraphEdit::link(size_t i) {
    for (const std::string& name : nodes_[i].inputs) {
        readers_[name].push_back(i);
    }
    for (const std::string& name : captures(nodes_[i])) {
        readers_[name].push_back(i);
    }
    for (const std::string& name : nodes_[i].outputs) {
        if (!name.empty()) {
            producers_[name] = i;
        }
    }
}

void GraphEdit::unlink(size_t i) {
    auto remove = [&](const std::string& name) {
        std::vector<size_t>& list = readers_[name];
        auto it = std::find(list.begin(), list.end(), i);
        CHECK(it != list.end(), "no reader of ", name);
        list.erase(it);
    };
    for (const std::string& name : nodes_[i].inputs) {
        remove(name);
    }
    for (const std::string& name : captures(nodes_[i])) {
        remove(name);
    }
    for (const std::string& name : nodes_[i].outputs) {
        auto it = producers_.find(name);
        if (it != producers_.end() && it->second == i) {
            producers_.erase(it);
        }
    }
}

void GraphEdit::edit_bodies(size_t i, const std::function<void(onnx::Graph&)>& f) {
    unlink(i);
    each_body(nodes_[i], f);
    link(i);
}

void GraphEdit::update(size_t i, Node node) {
    unlink(i);
    nodes_[i] = std::move(node);
    link(i);
}

size_t GraphEdit::append(Node node) {
    nodes_.push_back(std::move(node));
    alive_.push_back(true);
    link(nodes_.size() - 1);
    return nodes_.size() - 1;
}

void GraphEdit::erase(size_t i) {
    unlink(i);
    alive_[i] = false;
    nodes_[i] = Node();
}

void GraphEdit::redirect(const std::string& gone, const std::string& kept) {
    if (gone.empty()) {
        return; // omitted operands have no name
    }
    std::vector<size_t> users = readers(gone);
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (size_t i : users) {
        unlink(i);
        std::replace(nodes_[i].inputs.begin(), nodes_[i].inputs.end(), gone, kept);
        rename_captures(nodes_[i], gone, kept);
        link(i);
    }
}

bool GraphEdit::bypass(size_t i, const std::string& gone, const std::string& kept) {
    for (const std::string& o : nodes_[i].outputs) {
        if (o != gone && is_used(o)) {
            return false;
        }
    }
    if (is_output(gone)) {
        const std::optional<size_t> source = producer(kept);
        if (!source || is_output(kept) || *source == i) {
            return false;
        }
        erase(i);
        Node renamed = nodes_[*source];
        std::replace(renamed.outputs.begin(), renamed.outputs.end(), kept, gone);
        update(*source, std::move(renamed));
        redirect(kept, gone);
        return true;
    }
    erase(i);
    redirect(gone, kept);
    return true;
}

bool GraphEdit::make_constant(const std::string& name, onnx::Tensor t) {
    const std::optional<size_t> i = producer(name);
    CHECK(i.has_value(), "no node computes ", name);
    Node without = nodes_[*i];
    std::replace(without.outputs.begin(), without.outputs.end(), name, std::string());
    const bool last = std::none_of(without.outputs.begin(), without.outputs.end(),
                                   [&](const std::string& o) { return is_used(o); });
    if (!is_output(name)) {
        t.name = name;
        adopt_constant(std::move(t));
        last ? erase(*i) : update(*i, std::move(without));
        return true;
    }
    if (!last || (nodes_[*i].op_type == "Constant" && nodes_[*i].domain.empty())) {
        return false;
    }
    Node made;
    made.op_type = "Constant";
    made.name = without.name;
    made.outputs = {name};
    made.attributes.emplace_back();
    made.attributes[0].name = "value";
    made.attributes[0].type = onnx::AttributeType::Tensor;
    made.attributes[0].t = std::move(t);
    update(*i, std::move(made));
    return true;
}

void GraphEdit::drop_constant(const std::string& name) {
    auto it = constants_.find(name);
    CHECK(it != constants_.end(), "no constant ", name);
    graph_.initializers[it->second] = onnx::Tensor(); // finish() removes it
    constants_.erase(it);
}

void GraphEdit::finish() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
        if (alive_[i]) {
            graph_.nodes.push_back(std::move(nodes_[i]));
        }
    }
    nodes_.clear();
    alive_.clear();
    sort_nodes(graph_.nodes);
    std::erase_if(graph_.initializers,
                  [&](const onnx::Tensor& t) { return !constants_.contains(t.name); });
    std::erase_if(graph_.value_info, [&](const onnx::ValueInfo& v) {
        return !producers_.contains(v.name) && !constants_.contains(v.name);
    });
}

} // namespace ingot::slim
