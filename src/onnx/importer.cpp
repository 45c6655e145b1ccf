// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/pieces.h"
#include "onnx/data_type.h"
#include "onnx/import_node.h"
#include "onnx/import_run.h"
#include "onnx/string_ends.h"
#include "ops/support/capture.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ingot::onnx {

namespace {

constexpr int max_depth = 64;
// Bodies of functions are imported once for each call: few lines could ask for 2^64 nodes.
constexpr size_t max_called_nodes = 200'000;

// Replaces attribute references of a function body by the caller's attributes.
Node resolved(const Node& node, const FunctionProto& f, const Node& caller);

Graph resolved_graph(const Graph& g, const FunctionProto& f, const Node& caller) {
    Graph out = g;
    for (Node& n : out.nodes) {
        n = resolved(n, f, caller);
    }
    return out;
}

const Attribute* find_attribute(const std::vector<Attribute>& list, std::string_view name) {
    auto it =
        std::find_if(list.begin(), list.end(), [&](const Attribute& a) { return a.name == name; });
    return it == list.end() ? nullptr : &*it;
}

Node resolved(const Node& node, const FunctionProto& f, const Node& caller) {
    Node out = node;
    out.attributes.clear();
    for (const Attribute& a : node.attributes) {
        if (!a.ref_attr_name.empty()) {
            const Attribute* from = find_attribute(caller.attributes, a.ref_attr_name);
            from = from != nullptr ? from : find_attribute(f.attribute_protos, a.ref_attr_name);
            if (from != nullptr) {
                out.attributes.push_back(*from);
                out.attributes.back().name = a.name;
            }
            continue;
        }
        out.attributes.push_back(a);
        Attribute& copy = out.attributes.back();
        if (copy.g != nullptr) {
            copy.g = std::make_shared<Graph>(resolved_graph(*copy.g, f, caller));
        }
        for (auto& g : copy.graphs) {
            g = std::make_shared<Graph>(resolved_graph(*g, f, caller));
        }
    }
    return out;
}

} // namespace

ImportResult Import::run() {
    ImportResult result{ingot::Graph(model_.graph.name.empty() ? "main" : model_.graph.name), {}};
    Scope scope(*this, model_, model_.opset_imports, result.graph);
    current_ = &scope;
    scope.names.reserve(model_.graph.nodes.size() + model_.graph.initializers.size());
    scope.take_inputs(model_.graph); // first, so that passes can share what they leave alone
    scope.take_initializers(model_.graph);
    take_nodes(scope, model_.graph);
    if (options_.observe) {
        options_.observe(model_.graph, result.graph, scope.names);
    }
    scope.take_outputs(model_.graph);
    require(!model_.graph.outputs.empty(), ErrorCode::InvalidModel, "the graph has no outputs");
    result.refusals = std::move(refusals_);
    return result;
}

Type input_type(const ValueInfo& info) {
    if (info.kind != ValueKind::Tensor) {
        refuse(RefusalKind::DataType, "its type is ", name(info.kind), ", expected a tensor");
    }
    auto dtype = dtype_of(info.elem_type);
    if (!dtype) {
        refuse(RefusalKind::DataType, "element type ", data_type_name(info.elem_type),
               " is not supported");
    }
    if (!info.has_shape) {
        refuse(RefusalKind::Size,
               "it has no shape; give it one (its rank must be known, dimensions may be names)");
    }
    Type t{*dtype, {}};
    for (size_t i = 0; i < info.dims.size(); ++i) {
        const ShapeDim& d = info.dims[i];
        t.dims.push_back(d.value >= 0 ? Dim(d.value) : open_size(d.param, info.name, i));
    }
    return t;
}

Lookup Scope::find(const std::string& name, Value& out) {
    auto it = names.find(name);
    if (it != names.end()) {
        out = it->second;
        return Lookup::Found;
    }
    if (is_poisoned(name)) {
        return Lookup::Poisoned;
    }
    if (outer_ == nullptr) {
        return Lookup::Missing;
    }
    Value outer;
    Lookup found = outer_->find(name, outer);
    if (found != Lookup::Found) {
        return found;
    }
    ops::Captured c = ops::capture(g, outer_->g, outer, name);
    if (c.is_input) {
        capture_names.push_back(name);
        captures.push_back(outer);
    }
    out = c.inside;
    names.emplace(name, out);
    return Lookup::Found;
}

void Scope::check_node(const Node& node, size_t index) {
    for (const std::string& name : node.outputs) {
        if (!name.empty() && names.contains(name)) {
            fail(ErrorCode::InvalidModel, describe(node, index, opset(node)), ": output '", name,
                 "' has been defined before");
        }
    }
}

void Scope::add_initializer(const Tensor& t) {
    g.set_origin(t.name);
    Value v = ops::constant(g, tensor_from(t));
    g.set_value_name(v, t.name);
    names.emplace(t.name, v);
}

void Scope::add_input(const ValueInfo& info) {
    names.emplace(info.name, g.add_input(info.name, input_type(info)));
}

void Scope::add_node(const Node& node, size_t index) {
    g.set_origin(node.name.empty() ? str(node.op_type, "_", index) : node.name);
    name_outputs(node, run_.call(*this, node));
}

void Scope::add_output(const ValueInfo& info) {
    g.add_output(info.name, names.at(info.name));
}

bool Scope::is_refusal(const Error& e) const {
    if (waits && dynamic_cast<const RanksDiffer*>(&e) != nullptr) {
        return false;
    }
    return e.code() == ErrorCode::Unsupported || e.code() == ErrorCode::InvalidModel ||
           e.code() == ErrorCode::InvalidArgument;
}

void Scope::refused_initializer(const std::string& name, const Error& e) {
    run_.note({str("initializer '", name, "'"), "", "(initializer)", 0, e.message(),
               ErrorCode::Unsupported, RefusalKind::DataType});
}

void Scope::refused_input(const std::string& name, const Error& e) {
    run_.note({str("input '", name, "'"), "", "(input)", 0, e.message(), e.code(), e.refusal()});
}

void Scope::refused_node(const Node& node, size_t index, const Error& e) {
    run_.note({node.name.empty() ? str("#", index) : node.name, node.domain, node.op_type,
               opset(node), e.message(), e.code(), e.refusal()});
}

void Scope::missing_input(const Node& node, size_t index, const std::string& reason) {
    fail(ErrorCode::InvalidModel, describe(node, index, opset(node)), ": ", reason);
}

void Scope::missing_output(const std::string& reason) {
    fail(ErrorCode::InvalidModel, "graph ",
         source_ == nullptr ? std::string() : str("'", source_->name, "': "), reason);
}

void Scope::name_outputs(const Node& node, const Values& made) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) {
            continue;
        }
        if (i >= made.size() || !made[i].valid()) {
            refuse(RefusalKind::Operator, "output ", i, " ('", node.outputs[i],
                   "') is not computed");
        }
        names.emplace(node.outputs[i], made[i]);
        bool weights = node.op_type == "Constant"; // a refit finds it by name
        if ((run_.options().keep_names || weights) && g.value_name(made[i]).empty()) {
            g.set_value_name(made[i], node.outputs[i]);
        }
    }
}

void Import::take_nodes(Scope& scope, const Graph& source) {
    if (scope.depth > max_depth) {
        refuse(RefusalKind::Operator, "graphs and functions are nested deeper than ", max_depth);
    }
    const std::vector<size_t> order = node_order(source.nodes);
    std::optional<OpenIf> open;
    for (size_t i = 0; i < order.size(); ++i) {
        check_interrupt();
        const Node& node = source.nodes[order[i]];
        if (!open || !open->reads(node)) {
            try {
                take_node(scope, node, order[i], !open);
            } catch (const RanksDiffer& reason) {
                open.emplace(node, order[i], reason);
            }
        } else if (!open->take(node)) {
            refuse_open_if(scope, *open);
            open.reset();
            scope.take_node(node, order[i]);
        } else if (try_open_if(scope, *open, source, std::span(order).subspan(i + 1))) {
            open.reset();
        }
    }
    if (open) {
        refuse_open_if(scope, *open);
    }
}

void Import::take_node(Scope& scope, const Node& node, size_t index, bool waits) {
    scope.waits = waits;
    try {
        scope.take_node(node, index);
    } catch (...) {
        scope.waits = false;
        throw;
    }
    scope.waits = false;
}

/// Imports the If with the nodes taken so far. False if results that `later` nodes or the graph
/// read still differ in rank.
bool Import::try_open_if(Scope& scope, OpenIf& open, const Graph& source,
                         std::span<const size_t> later) {
    std::set<std::string, std::less<>> read;
    for (const ValueInfo& v : source.outputs) {
        read.insert(v.name);
    }
    for (size_t index : later) {
        std::vector<std::string> names = read_names(source.nodes[index]);
        read.insert(names.begin(), names.end());
    }
    try {
        take_node(scope, open.node_for(read), open.index(), true);
    } catch (const RanksDiffer&) {
        return false;
    }
    return true;
}

void Import::refuse_open_if(Scope& scope, const OpenIf& open) {
    const Node& node = open.original();
    note({node.name.empty() ? str("#", open.index()) : node.name, node.domain, node.op_type,
          scope.opset(node), open.reason().message(), open.reason().code(),
          open.reason().refusal()});
    scope.poison({open.names().begin(), open.names().end()});
}

void Import::note(Refusal refusal) {
    constexpr size_t most = 10'000;
    if (refusals_.size() >= most) {
        const Refusal& first = refusals_.front();
        fail(ErrorCode::Unsupported, "more than ", most,
             " nodes of the model cannot be imported; the first is ", first.node, " (", first.type,
             "): ", first.reason);
    }
    refusals_.push_back(std::move(refusal));
}

std::string Import::take_refusals(size_t before) {
    std::string text;
    for (size_t i = before; i < refusals_.size(); ++i) {
        const Refusal& r = refusals_[i];
        append(text, str(text.empty() ? "" : "; ", "node '", r.node, "' (",
                         r.domain.empty() ? "" : r.domain + ".", r.type, ", opset ", r.opset,
                         "): ", r.reason));
    }
    refusals_.resize(before);
    return text;
}

Values Import::call(Scope& scope, const Node& node) {
    Values inputs;
    inputs.reserve(node.inputs.size());
    for (const std::string& name : node.inputs) {
        inputs.push_back(name.empty() ? Value{} : scope.names.at(name));
    }
    int64_t opset = scope.opset(node);
    const ImporterRow* row = find_importer(node.domain, node.op_type, opset);
    const FunctionProto* function = scope.function(node);
    if (function != nullptr && (row == nullptr || !is_default_domain(node.domain))) {
        return call_function(scope, *function, node, inputs);
    }
    Scope* before = std::exchange(current_, &scope);
    NodeContext c(*this, scope.g, node, std::move(inputs), opset);
    Values made;
    try {
        made = row->import(c);
    } catch (...) {
        current_ = before;
        throw;
    }
    current_ = before;
    return made;
}

Values Import::call_function(Scope& scope, const FunctionProto& f, const Node& node,
                             const Values& inputs) {
    Scope inner(*this, model_, f.opset_imports.empty() ? scope.opsets() : f.opset_imports, scope.g);
    inner.depth = scope.depth + 1;
    require(inner.depth <= max_depth, ErrorCode::InvalidModel, "function '", f.key.name,
            "' calls are nested deeper than ", max_depth, "; does it call itself?");
    called_nodes_ += f.nodes.size();
    require(called_nodes_ <= max_called_nodes, ErrorCode::InvalidModel,
            "the model's functions call each other so often that they have more than ",
            max_called_nodes, " nodes");
    for (size_t i = 0; i < f.inputs.size(); ++i) {
        if (i < inputs.size() && inputs[i].valid()) {
            inner.names.emplace(f.inputs[i], inputs[i]);
        }
    }
    size_t refused = refusals_.size();
    std::vector<Node> nodes;
    for (const Node& n : f.nodes) {
        nodes.push_back(resolved(n, f, node));
        for (std::string& name : nodes.back().inputs) { // optional inputs that the caller omitted
            bool formal = std::find(f.inputs.begin(), f.inputs.end(), name) != f.inputs.end();
            name = formal && !inner.names.contains(name) ? std::string() : name;
        }
    }
    std::string origin = scope.g.origin();
    inner.take_nodes(nodes);
    scope.g.set_origin(origin);
    if (refusals_.size() != refused) {
        for (size_t i = refused; i < refusals_.size(); ++i) {
            refusals_[i].node = str(origin, "/", refusals_[i].node);
        }
        refuse(refusals_[refused].kind, "function '", f.key.name,
               "' has nodes that cannot be imported");
    }
    Values out;
    for (const std::string& name : f.outputs) {
        auto it = inner.names.find(name);
        out.push_back(it == inner.names.end() ? Value{} : it->second);
    }
    return out;
}

Import::OpenBody Import::body(Scope& scope, const Graph& source, std::span<const Type> inputs,
                              const OpenBody* captured_first) {
    require(inputs.size() == source.inputs.size(), ErrorCode::InvalidModel, "graph '", source.name,
            "' has ", source.inputs.size(), " inputs, expected ", inputs.size());
    OpenBody out;
    out.graph = std::make_shared<ingot::Graph>(scope.g.sibling(source.name));
    Scope inner(*this, model_, scope, source, *out.graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
        inner.names.emplace(source.inputs[i].name,
                            inner.g.add_input(source.inputs[i].name, inputs[i]));
    }
    for (size_t i = 0; captured_first != nullptr && i < captured_first->captures.size(); ++i) {
        Value v;
        const std::string& name = captured_first->capture_names[i];
        if (inner.names.contains(name)) {
            refuse(RefusalKind::Operator, "the branches use the name '", name,
                   "' for different values; rename one");
        }
        inner.find(name, v);
    }
    size_t refused = refusals_.size();
    inner.take_initializers(source);
    take_nodes(inner, source);
    if (options_.observe) {
        options_.observe(source, *out.graph, inner.names);
    }
    inner.take_outputs(source);
    if (refusals_.size() != refused) {
        refuse(refusals_[refused].kind, "its body '", source.name,
               "' has nodes that cannot be imported");
    }
    out.capture_names = std::move(inner.capture_names);
    out.captures = std::move(inner.captures);
    return out;
}

ingot::Tensor tensor_from(const Tensor& t) {
    auto dtype = dtype_of(t.data_type);
    if (!dtype) {
        refuse(RefusalKind::DataType, "element type ", data_type_name(t.data_type),
               " is not supported");
    }
    require(t.missing.empty(), ErrorCode::InvalidModel, t.missing,
            "; give it with loadInitializer()");
    auto address = reinterpret_cast<uintptr_t>(t.bytes.data());
    size_t alignment = static_cast<size_t>(std::max(8, bit_width(*dtype))) / 8;
    if (address % alignment == 0) {
        return ingot::Tensor::wrap(*dtype, t.dims, t.bytes, t.owner);
    }
    ingot::Tensor copy = ingot::Tensor::empty(*dtype, t.dims);
    std::span<std::byte> to = copy.mutable_bytes();
    for_pieces(t.bytes, [&to](std::span<const std::byte> part) {
        std::copy(part.begin(), part.end(), to.begin());
        to = to.subspan(part.size());
    });
    return copy;
}

Dim dim_from_param(std::string_view param) {
    std::string text;
    for (char c : param) {
        if (c != ' ') {
            text += c;
        }
    }
    try {
        Dim d = parse_dim(text);
        if (!d.is_const() && d.bounds().low >= 0) {
            return d;
        }
    } catch (const Error&) { // not an expression: one name
    }
    for (char& c : text) {
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '_' || c == '.' || c == ':';
        c = plain ? c : '_';
    }
    return Dim::symbol(text.empty() || (text[0] >= '0' && text[0] <= '9') ? str("d_", text) : text);
}

const ImporterRow* find_importer(std::string_view domain, std::string_view type, int64_t opset) {
    static const auto by_type = [] {
        std::unordered_map<std::string_view, std::vector<const ImporterRow*>> m;
        for (const ImporterTable* table : all_importers()) {
            for (const ImporterRow& row : *table) {
                m[row.type].push_back(&row);
            }
        }
        return m;
    }();
    domain = is_default_domain(domain) ? std::string_view() : domain;
    auto it = by_type.find(type);
    const ImporterRow* best = nullptr;
    for (size_t i = 0; it != by_type.end() && i < it->second.size(); ++i) {
        const ImporterRow* row = it->second[i];
        if (row->domain == domain && row->since <= opset && opset <= row->until &&
            (best == nullptr || best->since < row->since)) {
            best = row;
        }
    }
    return best;
}

ImportResult import_model(const Model& model, const ImportOptions& options) {
    return Import(model, options).run();
}

ingot::Graph import_or_throw(const Model& model, const ImportOptions& options) {
    ImportResult r = import_model(model, options);
    if (!r.refusals.empty()) {
        std::string text = str(r.refusals.size(), r.refusals.size() == 1 ? " node" : " nodes",
                               " of the model cannot be imported:");
        for (const Refusal& n : r.refusals) {
            append(text, str("\n  ", n.node, " (", n.domain.empty() ? "" : n.domain + ".", n.type,
                             ", opset ", n.opset, "): ", n.reason));
        }
        std::string advice = string_advice(model);
        throw Error(ErrorCode::Unsupported, str(text, advice.empty() ? "" : "\n", advice));
    }
    return std::move(r.graph);
}

} // namespace ingot::onnx
