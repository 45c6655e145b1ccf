// SPDX-License-Identifier: Apache-2.0
// The functions that importer functions call: inputs, attributes and bodies of one node.
#include "base/error.h"
#include "ir/value_reads.h"
#include "onnx/data_type.h"
#include "onnx/import_run.h"

#include <algorithm>

namespace ingot::onnx {

NodeContext::NodeContext(Import& run, ingot::Graph& graph, const Node& n, Values inputs,
                         int64_t version)
    : g(graph), node(n), opset(version), run_(run), inputs_(std::move(inputs)) {
    while (!inputs_.empty() && !inputs_.back().valid()) {
        inputs_.pop_back();
    }
}

int NodeContext::input_count() const {
    return static_cast<int>(inputs_.size());
}

Value NodeContext::optional(int i) const {
    return i >= 0 && i < input_count() ? inputs_[static_cast<size_t>(i)] : Value{};
}

Value NodeContext::in(int i) const {
    Value v = optional(i);
    ensure(v.valid(), "required input ", i, " is missing");
    return v;
}

int NodeContext::output_count() const {
    return static_cast<int>(node.outputs.size());
}

bool NodeContext::wants(int i) const {
    return i < output_count() && !node.outputs[static_cast<size_t>(i)].empty();
}

const Attribute* NodeContext::attribute(std::string_view name) const {
    for (const Attribute& a : node.attributes) {
        if (a.name == name) {
            return &a;
        }
    }
    return nullptr;
}

namespace {

const Attribute* typed(const NodeContext& c, std::string_view name, AttributeType type) {
    const Attribute* a = c.attribute(name);
    c.ensure(a == nullptr || a->type == type, "attribute '", name, "' has type ",
             a == nullptr ? std::string_view() : onnx::name(a->type), ", expected ",
             onnx::name(type));
    return a;
}

} // namespace

int64_t NodeContext::i(std::string_view name) const {
    const Attribute* a = typed(*this, name, AttributeType::Int);
    ensure(a != nullptr, "required attribute '", name, "' is missing");
    return a->i;
}

int64_t NodeContext::i(std::string_view name, int64_t fallback) const {
    const Attribute* a = typed(*this, name, AttributeType::Int);
    return a == nullptr ? fallback : a->i;
}

double NodeContext::f(std::string_view name, double fallback) const {
    const Attribute* a = typed(*this, name, AttributeType::Float);
    return a == nullptr ? fallback : static_cast<double>(a->f);
}

std::string NodeContext::s(std::string_view name, const std::string& fallback) const {
    const Attribute* a = typed(*this, name, AttributeType::String);
    return a == nullptr ? fallback : a->s;
}

std::vector<int64_t> NodeContext::ints(std::string_view name) const {
    const Attribute* a = typed(*this, name, AttributeType::Ints);
    return a == nullptr ? std::vector<int64_t>{} : a->ints;
}

std::vector<double> NodeContext::floats(std::string_view name) const {
    const Attribute* a = typed(*this, name, AttributeType::Floats);
    return a == nullptr ? std::vector<double>{}
                        : std::vector<double>(a->floats.begin(), a->floats.end());
}

const Dim& NodeContext::dim(int input, int64_t axis) const {
    const Type& t = type(input);
    return t.dims[static_cast<size_t>(normalize_axis(axis, t.rank()))];
}

std::optional<ingot::Tensor> NodeContext::maybe_constant(int input) const {
    Value v = optional(input);
    if (!v.valid()) {
        return std::nullopt;
    }
    if (const ingot::Tensor* t = g.constant(v)) {
        return *t;
    }
    HostRef h = g.host(v);
    const Type& t = g.type(v);
    std::optional<Dims> known;
    if (h != nullptr) {
        known = h->dims();
    }
    std::optional<Shape> fixed;
    if (known) {
        fixed = as_const(*known);
    }
    if (!fixed || is_float(t.dtype)) {
        return std::nullopt;
    }
    ValueReads::note(g, v);
    return ingot::Tensor::of<int64_t>(t.dtype, h->shape, *fixed);
}

ingot::Tensor NodeContext::constant(int input) const {
    in(input);
    auto t = maybe_constant(input);
    if (!t) {
        const std::string& name = node.inputs[static_cast<size_t>(input)];
        refuse(RefusalKind::Dynamic, "input ", input, " ('", name,
               "') must be a constant; it is computed at run time");
    }
    return *t;
}

std::vector<int64_t> NodeContext::constant_ints(int input) const {
    ingot::Tensor t = constant(input);
    ensure(t.rank() <= 1 && !is_float(t.dtype()), "input ", input, " is ", t.type(),
           ", expected integers of rank 0 or 1");
    std::vector<int64_t> out;
    for (int64_t k = 0; k < t.count(); ++k) {
        out.push_back(t.get_i64(k));
    }
    return out;
}

namespace {

const Graph& graph_attribute(const NodeContext& c, std::string_view name) {
    const Attribute* a = typed(c, name, AttributeType::Graph);
    c.ensure(a != nullptr && a->g != nullptr, "required attribute '", name, "' is missing");
    return *a->g;
}

} // namespace

NodeContext::Body NodeContext::body(std::string_view attribute,
                                    std::span<const Type> inputs) const {
    std::string origin = g.origin();
    Import::OpenBody b =
        run_.body(run_.current(), graph_attribute(*this, attribute), inputs, nullptr);
    g.set_origin(origin);
    return {b.graph, b.captures};
}

std::vector<NodeContext::Body>
NodeContext::bodies(std::span<const std::string_view> attributes) const {
    std::vector<Import::OpenBody> open;
    std::string origin = g.origin();
    for (std::string_view name : attributes) {
        open.push_back(run_.body(run_.current(), graph_attribute(*this, name), {},
                                 open.empty() ? nullptr : &open.back()));
    }
    g.set_origin(origin);
    // Each body knows the captures of the bodies before it; earlier bodies get the later captures
    // added.
    const Import::OpenBody& last = open.back();
    std::vector<Body> out;
    for (Import::OpenBody& b : open) {
        for (size_t i = b.captures.size(); i < last.captures.size(); ++i) {
            b.graph->add_input(last.capture_names[i], g.type(last.captures[i]));
        }
        out.push_back({b.graph, last.captures});
    }
    return out;
}

} // namespace ingot::onnx
