// SPDX-License-Identifier: Apache-2.0
#include "onnx/branches.h"

#include "onnx/import_node.h"

#include <algorithm>

namespace ingot::onnx {

namespace {

constexpr size_t most_taken = 64;

void add_names(const Graph& g, std::set<std::string, std::less<>>& names) {
    for (const ValueInfo& v : g.inputs) {
        names.insert(v.name);
    }
    for (const Tensor& t : g.initializers) {
        names.insert(t.name);
    }
    for (const Node& n : g.nodes) {
        names.insert(n.outputs.begin(), n.outputs.end());
    }
    names.erase("");
}

} // namespace

OpenIf::OpenIf(const Node& node, size_t index, RanksDiffer reason)
    : original_(node), merged_(node), index_(index), reason_(std::move(reason)) {
    names_.insert(node.outputs.begin(), node.outputs.end());
    names_.erase("");
    for (Attribute& a : merged_.attributes) {
        if (a.g == nullptr || a.g->outputs.size() != node.outputs.size()) {
            continue;
        }
        auto branch = std::make_shared<Graph>(*a.g);
        add_names(*branch, inner_);
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            Node same;
            same.op_type = "Identity";
            same.name = node.name;
            same.inputs = {branch->outputs[i].name};
            same.outputs = {node.outputs[i]};
            if (!node.outputs[i].empty() && same.inputs != same.outputs) {
                branch->nodes.push_back(std::move(same));
            }
        }
        a.g = branch;
        branches_.push_back(std::move(branch));
    }
    if (std::any_of(names_.begin(), names_.end(),
                    [this](const std::string& name) { return inner_.contains(name); })) {
        branches_.clear(); // a name would be defined twice
    }
}

bool OpenIf::reads(const Node& node) const {
    std::vector<std::string> names = read_names(node);
    return std::any_of(names.begin(), names.end(),
                       [this](const std::string& name) { return names_.contains(name); });
}

bool OpenIf::take(const Node& node) {
    auto is_inner = [this](const std::string& name) {
        return inner_.contains(name) && !names_.contains(name);
    };
    std::vector<std::string> read = read_names(node);
    bool clash = std::any_of(read.begin(), read.end(), is_inner) ||
                 std::any_of(node.outputs.begin(), node.outputs.end(), is_inner);
    if (clash || branches_.size() != 2 || ++taken_ > most_taken) {
        return false;
    }
    for (const auto& branch : branches_) {
        branch->nodes.push_back(node);
    }
    names_.insert(node.outputs.begin(), node.outputs.end());
    names_.erase("");
    return true;
}

const Node& OpenIf::node_for(const std::set<std::string, std::less<>>& wanted) {
    merged_.outputs.clear();
    for (const std::string& name : names_) {
        if (wanted.contains(name)) {
            merged_.outputs.push_back(name);
        }
    }
    for (const auto& branch : branches_) {
        branch->outputs.clear();
        for (const std::string& name : merged_.outputs) {
            ValueInfo result;
            result.name = name;
            branch->outputs.push_back(std::move(result));
        }
    }
    return merged_;
}

} // namespace ingot::onnx
