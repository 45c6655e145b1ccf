// SPDX-License-Identifier: Apache-2.0
#include "slim/onnx_node.h"

#include <algorithm>
#include <utility>

namespace ingot::slim {

using onnx::Attribute;
using onnx::AttributeType;
using onnx::Node;

namespace {

const Attribute* typed(const Node& n, std::string_view name, AttributeType type) {
    const Attribute* a = find_attribute(n, name);
    return a == nullptr || a->type != type ? nullptr : a;
}

Attribute& put(Node& n, std::string_view name, AttributeType type) {
    remove_attribute(n, name);
    Attribute& a = n.attributes.emplace_back();
    a.name = name;
    a.type = type;
    return a;
}

} // namespace

bool is_op(const Node& n, std::string_view type) {
    return n.op_type == type && n.domain.empty();
}

const Attribute* find_attribute(const Node& n, std::string_view name) {
    auto it = std::find_if(n.attributes.begin(), n.attributes.end(),
                           [&](const Attribute& a) { return a.name == name; });
    return it == n.attributes.end() ? nullptr : &*it;
}

int64_t get_int(const Node& n, std::string_view name, int64_t fallback) {
    const Attribute* a = typed(n, name, AttributeType::Int);
    return a == nullptr ? fallback : a->i;
}

float get_float(const Node& n, std::string_view name, float fallback) {
    const Attribute* a = typed(n, name, AttributeType::Float);
    return a == nullptr ? fallback : a->f;
}

std::string get_string(const Node& n, std::string_view name, std::string_view fallback) {
    const Attribute* a = typed(n, name, AttributeType::String);
    return a == nullptr ? std::string(fallback) : a->s;
}

std::vector<int64_t> get_ints(const Node& n, std::string_view name) {
    const Attribute* a = typed(n, name, AttributeType::Ints);
    return a == nullptr ? std::vector<int64_t>() : a->ints;
}

void set_int(Node& n, std::string_view name, int64_t v) {
    put(n, name, AttributeType::Int).i = v;
}

void set_float(Node& n, std::string_view name, float v) {
    put(n, name, AttributeType::Float).f = v;
}

void set_ints(Node& n, std::string_view name, std::vector<int64_t> v) {
    put(n, name, AttributeType::Ints).ints = std::move(v);
}

void set_string(Node& n, std::string_view name, std::string v) {
    put(n, name, AttributeType::String).s = std::move(v);
}

void remove_attribute(Node& n, std::string_view name) {
    std::erase_if(n.attributes, [&](const Attribute& a) { return a.name == name; });
}

const std::string& input(const Node& n, size_t i) {
    static const std::string none;
    return i < n.inputs.size() ? n.inputs[i] : none;
}

bool has_input(const Node& n, size_t i) {
    return !input(n, i).empty();
}

void set_input(Node& n, size_t i, std::string name) {
    if (n.inputs.size() <= i) {
        n.inputs.resize(i + 1);
    }
    n.inputs[i] = std::move(name);
}

Node make_node(std::string_view type, std::vector<std::string> inputs, std::string output,
               std::string name) {
    Node n;
    n.op_type = type;
    n.name = std::move(name);
    n.inputs = std::move(inputs);
    n.outputs = {std::move(output)};
    return n;
}

} // namespace ingot::slim
