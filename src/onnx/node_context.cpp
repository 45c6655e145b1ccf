// SPDX-License-Identifier: Apache-2.0
// The functions that importer functions call: inputs, attributes and bodies of one node.
#include "base/error.h"
#include "base/log.h"
#include "ir/value_reads.h"
#include "onnx/data_type.h"
#include "onnx/import_run.h"
#include "onnx/ops/support/bodies.h"
#include "ops/refusal.h"

#include <algorithm>
#include <map>
#include <set>

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

namespace {

// A body with results like those of `from` that fails when it runs. Sizes that only `from` binds
// are 0 here: outside, such a size is open anyway.
std::shared_ptr<ingot::Graph> failing_body(const ingot::Graph& from, const std::string& text) {
    auto body = std::make_shared<ingot::Graph>(from.sibling(from.name()));
    std::set<std::string, std::less<>> inner = inner_symbols(from, {});
    for (size_t i = 0; i < from.outputs().size(); ++i) {
        Type type = from.type(from.outputs()[i]);
        for (Dim& d : type.dims) {
            std::set<std::string, std::less<>> names;
            d.collect_symbols(names);
            bool is_inner = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                return inner.contains(name);
            });
            d = is_inner ? Dim(0) : d;
        }
        body->set_origin(text);
        body->add_output(from.output_names()[i], ops::refusal(*body, type, text));
    }
    return body;
}

} // namespace

std::vector<NodeContext::Body>
NodeContext::bodies(std::span<const std::string_view> attributes) const {
    std::vector<Import::OpenBody> open;
    std::map<size_t, std::string> refused; // bodies that cannot be imported, and why
    std::optional<size_t> whole;           // the last one that can be
    std::string origin = g.origin();
    size_t before = run_.refusal_count();
    for (std::string_view name : attributes) {
        bool is_last = open.size() + 1 == attributes.size();
        try {
            open.push_back(run_.body(run_.current(), graph_attribute(*this, name), {},
                                     whole ? &open[*whole] : nullptr));
            whole = open.size() - 1;
        } catch (const Error& e) {
            bool is_reported = run_.refusal_count() > before; // else its structure is damaged
            if (e.code() != ErrorCode::Unsupported || !is_reported) {
                throw;
            }
            if (is_last && !whole) { // none can: the first one's refusals are reported
                run_.take_refusals(before);
                run_.body(run_.current(), graph_attribute(*this, attributes[0]), {}, nullptr);
            }
            refused.emplace(open.size(),
                            str("the ", name, " of node '", origin, "' (", node.op_type,
                                ") was to run, but ", run_.take_refusals(before)));
            open.emplace_back();
        }
    }
    g.set_origin(origin);
    for (const auto& [i, text] : refused) {
        open[i].graph = failing_body(*open[*whole].graph, text);
        for (size_t k = 0; k < open[*whole].captures.size(); ++k) {
            open[i].graph->add_input(open[*whole].capture_names[k],
                                     g.type(open[*whole].captures[k]));
        }
        open[i].capture_names = open[*whole].capture_names;
        open[i].captures = open[*whole].captures;
        log(LogLevel::Warning, text, "; a run that takes it fails");
    }
    // Each body knows the captures of the bodies before it; earlier bodies get the later captures
    // added.
    const Import::OpenBody& last = open[*whole];
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
