// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "onnx/data_type.h"
#include "onnx/import_node.h"
#include "onnx/import_run.h"

#include <algorithm>
#include <cstring>

namespace ingot::onnx {

namespace {

constexpr int max_depth = 64;

bool is_default(std::string_view domain) {
    return domain.empty() || domain == "ai.onnx";
}

int64_t opset_of(const Scope& scope, const std::string& domain) {
    const OpsetImports& o = *scope.opsets;
    auto it = o.find(domain);
    if (it == o.end() && is_default(domain)) {
        it = o.find(domain.empty() ? "ai.onnx" : "");
    }
    return it == o.end() ? 0 : it->second;
}

std::string describe(const Node& node, size_t index, int64_t opset) {
    std::string name = node.name.empty() ? str("#", index) : str("'", node.name, "'");
    return str("node ", name, " (", node.domain.empty() ? "" : node.domain + ".", node.op_type,
               ", opset ", opset, ")");
}

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
    Scope scope;
    scope.g = &result.graph;
    scope.opsets = &model_.opset_imports;
    current_ = &scope;
    add_initializers(scope, model_.graph);
    for (const ValueInfo& info : model_.graph.inputs) {
        if (scope.names.contains(info.name)) {
            continue; // an initializer: its value is fixed
        }
        try {
            scope.names.emplace(info.name, result.graph.add_input(info.name, input_type(info)));
        } catch (const Error& e) {
            refusals_.push_back({str("input '", info.name, "'"), "", "(input)", 0, e.message(),
                                 e.code(), e.refusal()});
            scope.poisoned.insert(info.name);
        }
    }
    import_graph(scope, model_.graph);
    if (options_.observe) {
        options_.observe(model_.graph, result.graph, scope.names);
    }
    for (const ValueInfo& info : model_.graph.outputs) {
        Value v;
        Lookup found = find(scope, info.name, v);
        require(found != Lookup::Missing, ErrorCode::InvalidModel, "graph output '", info.name,
                "' is computed by no node");
        if (found == Lookup::Found) {
            result.graph.add_output(info.name, v);
        }
    }
    require(!model_.graph.outputs.empty(), ErrorCode::InvalidModel, "the graph has no outputs");
    result.refusals = std::move(refusals_);
    return result;
}

void Import::add_initializers(Scope& scope, const Graph& source) {
    auto refuse = [&](const std::string& name, const std::string& reason) {
        refusals_.push_back({str("initializer '", name, "'"), "", "(initializer)", 0, reason,
                             ErrorCode::Unsupported, RefusalKind::DataType});
        scope.poisoned.insert(name);
    };
    for (const Tensor& t : source.initializers) {
        scope.g->set_origin(t.name);
        try {
            Value v = ops::constant(*scope.g, tensor_from(t));
            scope.g->set_value_name(v, t.name);
            scope.names.emplace(t.name, v);
        } catch (const Error& e) {
            refuse(t.name, e.message());
        }
    }
    for (const SparseTensor& t : source.sparse_initializers) {
        refuse(t.values.name, "sparse initializers are not supported; store the tensor densely");
    }
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

Import::Lookup Import::find(Scope& scope, const std::string& name, Value& out) {
    auto it = scope.names.find(name);
    if (it != scope.names.end()) {
        out = it->second;
        return Lookup::Found;
    }
    if (scope.poisoned.contains(name)) {
        return Lookup::Poisoned;
    }
    if (scope.parent == nullptr) {
        return Lookup::Missing;
    }
    Value outer;
    Lookup found = find(*scope.parent, name, outer);
    if (found != Lookup::Found) {
        return found;
    }
    const ingot::Graph& pg = *scope.parent->g;
    const ingot::Node* p = pg.producer(outer);
    if (p != nullptr && (p->is(constant_def) || p->is(dims_to_tensor_def))) {
        out = scope.g->add(*p->def, p->attrs, {})[0];
        scope.g->set_value_name(out, pg.value_name(outer));
    } else {
        out = scope.g->add_input(name, pg.type(outer));
        scope.g->set_host(out, pg.host(outer));
        scope.capture_names.push_back(name);
        scope.captures.push_back(outer);
    }
    scope.names.emplace(name, out);
    return Lookup::Found;
}

void Import::import_graph(Scope& scope, const Graph& source) {
    if (scope.depth > max_depth) {
        refuse(RefusalKind::Operator, "graphs and functions are nested deeper than ", max_depth);
    }
    for (size_t index : node_order(source.nodes)) {
        check_interrupt();
        import_node(scope, source.nodes[index], index);
    }
}

void Import::import_node(Scope& scope, const Node& node, size_t index) {
    int64_t opset = opset_of(scope, node.domain);
    auto note = [&](const Error& e) {
        refusals_.push_back({node.name.empty() ? str("#", index) : node.name, node.domain,
                             node.op_type, opset, e.message(), e.code(), e.refusal()});
        scope.poisoned.insert(node.outputs.begin(), node.outputs.end());
    };
    auto unknown = [&](std::string reason) {
        note(Error(ErrorCode::Unsupported, std::move(reason), RefusalKind::Operator));
    };
    Values inputs;
    bool poisoned = false;
    for (const std::string& name : node.inputs) {
        Value v;
        Lookup found = name.empty() ? Lookup::Found : find(scope, name, v);
        require(found != Lookup::Missing, ErrorCode::InvalidModel, describe(node, index, opset),
                ": input '", name,
                "' is neither an input, an initializer nor the output of a node");
        poisoned = poisoned || found == Lookup::Poisoned;
        inputs.push_back(v);
    }
    for (const std::string& name : node.outputs) {
        require(name.empty() || !scope.names.contains(name), ErrorCode::InvalidModel,
                describe(node, index, opset), ": output '", name, "' has been defined before");
    }
    const FunctionProto* function = find_function(node);
    if (opset == 0 && function == nullptr) {
        return unknown(str("the model imports no opset of domain '", node.domain, "'"));
    }
    if (find_importer(node.domain, node.op_type, opset) == nullptr && function == nullptr) {
        return unknown(
            is_default(node.domain)
                ? str("there is no such operator at opset ", opset, ", or Ingot does not know it")
                : std::string(
                      "Ingot does not know this operator, and the model does not define it"));
    }
    if (poisoned) { // its input was refused: only that refusal is reported
        scope.poisoned.insert(node.outputs.begin(), node.outputs.end());
        return;
    }
    try {
        scope.g->set_origin(node.name.empty() ? str(node.op_type, "_", index) : node.name);
        Values made = call(scope, node, std::move(inputs));
        name_outputs(scope, node, made);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Unsupported && e.code() != ErrorCode::InvalidModel &&
            e.code() != ErrorCode::InvalidArgument) {
            throw;
        }
        note(e);
    }
}

void Import::name_outputs(Scope& scope, const Node& node, const Values& made) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) {
            continue;
        }
        if (i >= made.size() || !made[i].valid()) {
            refuse(RefusalKind::Operator, "output ", i, " ('", node.outputs[i],
                   "') is not computed");
        }
        scope.names.emplace(node.outputs[i], made[i]);
        bool weights = node.op_type == "Constant"; // a refit finds it by name
        if ((options_.keep_names || weights) && scope.g->value_name(made[i]).empty()) {
            scope.g->set_value_name(made[i], node.outputs[i]);
        }
    }
}

const FunctionProto* Import::find_function(const Node& node) const {
    auto it = model_.functions.find({node.domain, node.op_type, node.overload});
    return it == model_.functions.end() ? nullptr : &it->second;
}

Values Import::call(Scope& scope, const Node& node, Values inputs) {
    int64_t opset = opset_of(scope, node.domain);
    const ImporterRow* row = find_importer(node.domain, node.op_type, opset);
    const FunctionProto* function = find_function(node);
    if (function != nullptr && (row == nullptr || !is_default(node.domain))) {
        return call_function(scope, *function, node, inputs);
    }
    Scope* before = std::exchange(current_, &scope);
    NodeContext c(*this, *scope.g, node, std::move(inputs), opset);
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
    Scope inner;
    inner.g = scope.g;
    inner.opsets = f.opset_imports.empty() ? scope.opsets : &f.opset_imports;
    inner.depth = scope.depth + 1;
    require(inner.depth <= max_depth, ErrorCode::InvalidModel, "function '", f.key.name,
            "' calls are nested deeper than ", max_depth, "; does it call itself?");
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
    std::string origin = scope.g->origin();
    for (size_t index : node_order(nodes)) {
        import_node(inner, nodes[index], index);
    }
    scope.g->set_origin(origin);
    if (refusals_.size() != refused) {
        for (size_t i = refused; i < refusals_.size(); ++i) {
            refusals_[i].node = str(origin, "/", refusals_[i].node);
        }
        scope.poisoned.insert(node.outputs.begin(), node.outputs.end());
        Values none(node.outputs.size());
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
    out.graph = std::make_shared<ingot::Graph>(scope.g->sibling(source.name));
    Scope inner;
    inner.g = out.graph.get();
    inner.parent = &scope;
    inner.opsets = scope.opsets;
    inner.depth = scope.depth + 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
        inner.names.emplace(source.inputs[i].name,
                            inner.g->add_input(source.inputs[i].name, inputs[i]));
    }
    for (size_t i = 0; captured_first != nullptr && i < captured_first->captures.size(); ++i) {
        Value v;
        const std::string& name = captured_first->capture_names[i];
        if (inner.names.contains(name)) {
            refuse(RefusalKind::Operator, "the branches use the name '", name,
                   "' for different values; rename one");
        }
        find(inner, name, v);
    }
    size_t refused = refusals_.size();
    add_initializers(inner, source);
    import_graph(inner, source);
    if (options_.observe) {
        options_.observe(source, *out.graph, inner.names);
    }
    for (const ValueInfo& info : source.outputs) {
        Value v;
        Lookup found = find(inner, info.name, v);
        require(found != Lookup::Missing, ErrorCode::InvalidModel, "graph '", source.name,
                "': output '", info.name, "' is computed by no node");
        if (found == Lookup::Found) {
            inner.g->add_output(info.name, v);
        }
    }
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
    std::memcpy(copy.mutable_bytes().data(), t.bytes.data(), t.bytes.size());
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

std::vector<size_t> node_order(const std::vector<Node>& nodes) {
    std::unordered_map<std::string_view, size_t> producer;
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const std::string& o : nodes[i].outputs) {
            if (!o.empty()) {
                producer.emplace(o, i);
            }
        }
    }
    std::vector<size_t> order;
    order.reserve(nodes.size());
    std::vector<uint8_t> state(nodes.size(), 0);  // 0 new, 1 on the stack, 2 done
    std::vector<std::pair<size_t, size_t>> stack; // node, next input
    for (size_t root = 0; root < nodes.size(); ++root) {
        if (state[root] == 0) {
            stack.emplace_back(root, 0);
            state[root] = 1;
        }
        while (!stack.empty()) {
            auto& [n, next] = stack.back();
            if (next == nodes[n].inputs.size()) {
                state[n] = 2;
                order.push_back(n);
                stack.pop_back();
                continue;
            }
            auto it = producer.find(nodes[n].inputs[next++]);
            if (it == producer.end() || state[it->second] == 2) {
                continue;
            }
            if (state[it->second] == 1) {
                std::string cycle;
                size_t i = stack.size();
                do {
                    --i;
                    const Node& member = nodes[stack[i].first];
                    append(cycle, str(cycle.empty() ? "" : " <- ", member.op_type, " '",
                                      member.name.empty() ? member.outputs[0] : member.name, "'"));
                } while (stack[i].first != it->second);
                fail(ErrorCode::InvalidModel, "the graph has a cycle: ", cycle);
            }
            state[it->second] = 1;
            stack.emplace_back(it->second, 0);
        }
    }
    return order;
}

const ImporterRow* find_importer(std::string_view domain, std::string_view type, int64_t opset) {
    static const auto by_name = [] {
        std::unordered_map<std::string, std::vector<const ImporterRow*>> m;
        for (const ImporterTable* table : all_importers()) {
            for (const ImporterRow& row : *table) {
                m[str(row.domain, ":", row.type)].push_back(&row);
            }
        }
        return m;
    }();
    auto it = by_name.find(str(is_default(domain) ? std::string_view() : domain, ":", type));
    const ImporterRow* best = nullptr;
    for (size_t i = 0; it != by_name.end() && i < it->second.size(); ++i) {
        const ImporterRow* row = it->second[i];
        if (row->since <= opset && opset <= row->until &&
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
        throw Error(ErrorCode::Unsupported, text);
    }
    return std::move(r.graph);
}

} // namespace ingot::onnx
