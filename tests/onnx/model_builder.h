// SPDX-License-Identifier: Apache-2.0
// Small ONNX models as structs, imported, verified and run: shared by tests of importer functions.
#pragma once

#include "ir/verify.h"
#include "onnx/data_type.h"
#include "onnx/importer.h"
#include "ops/evaluator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

namespace ingot::onnx::test {

inline Attribute attribute(std::string name, AttributeType type) {
    Attribute a;
    a.name = std::move(name);
    a.type = type;
    return a;
}
inline Attribute int_of(std::string name, int64_t v) {
    Attribute a = attribute(std::move(name), AttributeType::Int);
    a.i = v;
    return a;
}
inline Attribute float_of(std::string name, float v) {
    Attribute a = attribute(std::move(name), AttributeType::Float);
    a.f = v;
    return a;
}
inline Attribute ints_of(std::string name, std::vector<int64_t> v) {
    Attribute a = attribute(std::move(name), AttributeType::Ints);
    a.ints = std::move(v);
    return a;
}
inline Attribute string_of(std::string name, std::string v) {
    Attribute a = attribute(std::move(name), AttributeType::String);
    a.s = std::move(v);
    return a;
}
inline Attribute strings_of(std::string name, std::vector<std::string> v) {
    Attribute a = attribute(std::move(name), AttributeType::Strings);
    a.strings = std::move(v);
    return a;
}
inline Attribute graph_of(std::string name, Graph g) {
    Attribute a = attribute(std::move(name), AttributeType::Graph);
    a.g = std::make_shared<Graph>(std::move(g));
    return a;
}

inline Node node(std::string type, std::vector<std::string> in, std::vector<std::string> out,
                 std::vector<Attribute> attributes = {}) {
    Node n;
    n.op_type = std::move(type);
    n.inputs = std::move(in);
    n.outputs = std::move(out);
    n.attributes = std::move(attributes);
    return n;
}

inline Node in_domain(std::string domain, Node n) {
    n.domain = std::move(domain);
    return n;
}

/// "x:f32[N,3]" or "x:i64[]" as a value.
inline ValueInfo value(const std::string& text) {
    size_t colon = text.find(':');
    ValueInfo v;
    v.name = text.substr(0, colon);
    v.kind = ValueKind::Tensor;
    Type t = parse_type(text.substr(colon + 1));
    v.elem_type = data_type_number(t.dtype);
    v.has_shape = true;
    for (const Dim& d : t.dims) {
        v.dims.push_back(d.is_const() ? ShapeDim{d.value(), ""} : ShapeDim{-1, to_text(d)});
    }
    return v;
}

/// An initializer; `keep` owns its bytes.
inline Tensor initializer(std::string name, const ingot::Tensor& t) {
    auto copy = std::make_shared<ingot::Tensor>(t.clone());
    Tensor out;
    out.name = std::move(name);
    out.dims = copy->shape();
    out.data_type = data_type_number(copy->dtype());
    out.bytes = copy->bytes();
    out.owner = copy;
    return out;
}
inline Tensor i64_initializer(std::string name, const std::vector<int64_t>& v) {
    return initializer(std::move(name), ingot::Tensor::i64(v));
}

inline Graph graph(std::vector<std::string> inputs, std::vector<std::string> outputs,
                   std::vector<Node> nodes, std::vector<Tensor> initializers = {}) {
    Graph g;
    g.name = "g";
    for (const std::string& i : inputs) {
        g.inputs.push_back(value(i));
    }
    for (const std::string& o : outputs) {
        ValueInfo v;
        v.name = o;
        g.outputs.push_back(v);
    }
    g.nodes = std::move(nodes);
    g.initializers = std::move(initializers);
    return g;
}

/// Imports version 1 of the domains of the graph's nodes.
inline Model model(Graph g, int64_t opset = 21) {
    Model m;
    m.ir_version = 10;
    for (const Node& n : g.nodes) {
        m.opset_imports[n.domain] = 1;
    }
    m.opset_imports[""] = opset;
    m.graph = std::move(g);
    return m;
}

inline ingot::Graph import_verified(const Model& m) {
    ingot::Graph g = import_or_throw(m);
    verify(g);
    return g;
}

inline std::string refusal(const Model& m) {
    ImportResult r = import_model(m);
    return r.refusals.empty() ? "" : r.refusals[0].reason;
}

inline ingot::Tensor floats(Shape shape, const std::vector<double>& v) {
    return ingot::Tensor::of<double>(DType::F32, std::move(shape), v);
}
inline ingot::Tensor integers(Shape shape, const std::vector<int64_t>& v) {
    return ingot::Tensor::of<int64_t>(DType::I64, std::move(shape), v);
}
inline ingot::Tensor boolean(bool v) {
    return ingot::Tensor::scalar_i64(DType::Bool, v ? 1 : 0);
}
inline std::vector<double> elements(const ingot::Tensor& t) {
    std::vector<double> out;
    for (int64_t i = 0; i < t.count(); ++i) {
        out.push_back(t.get_f64(i));
    }
    return out;
}
/// The type of result i, as text.
inline std::string type_of(const ingot::Graph& g, size_t i = 0) {
    return to_text(g.type(g.outputs()[i]));
}

} // namespace ingot::onnx::test
