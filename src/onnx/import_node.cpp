// SPDX-License-Identifier: Apache-2.0
#include "onnx/import_node.h"

#include "base/error.h"
#include "onnx/data_type.h"
#include "onnx/import_run.h"

#include <algorithm>
#include <set>

namespace ingot::onnx {

namespace {

using NameSet = std::set<std::string, std::less<>>;

void outer_names(const Graph& body, const NameSet& inside, std::vector<std::string>& out);

void outer_names_of_bodies(const Node& node, const NameSet& inside, std::vector<std::string>& out) {
    for (const Attribute& a : node.attributes) {
        if (a.g != nullptr) {
            outer_names(*a.g, inside, out);
        }
        for (const auto& g : a.graphs) {
            outer_names(*g, inside, out);
        }
    }
}

void outer_names(const Graph& body, const NameSet& inside, std::vector<std::string>& out) {
    NameSet known = inside;
    for (const ValueInfo& v : body.inputs) {
        known.insert(v.name);
    }
    for (const Tensor& t : body.initializers) {
        known.insert(t.name);
    }
    for (const SparseTensor& t : body.sparse_initializers) {
        known.insert(t.values.name);
    }
    for (const Node& n : body.nodes) {
        known.insert(n.outputs.begin(), n.outputs.end());
    }
    auto read = [&](const std::string& name) {
        if (!name.empty() && !known.contains(name) &&
            std::find(out.begin(), out.end(), name) == out.end()) {
            out.push_back(name);
        }
    };
    for (const Node& n : body.nodes) {
        std::for_each(n.inputs.begin(), n.inputs.end(), read);
        outer_names_of_bodies(n, known, out);
    }
    for (const ValueInfo& v : body.outputs) {
        read(v.name);
    }
}

} // namespace

Values Import::single(ingot::Graph& g, const Node& node, size_t index,
                      std::unordered_map<std::string, Value> names) {
    Scope scope(*this, model_, model_.opset_imports, g);
    scope.names = std::move(names);
    current_ = &scope;
    scope.take_node(node, index);
    current_ = nullptr;
    if (!refusals_.empty()) {
        // The last refusal is the node's own; earlier ones are those of its bodies or functions.
        const Refusal& whole = refusals_.back();
        std::string reasons;
        for (size_t i = 0; i + 1 < refusals_.size(); ++i) {
            const Refusal& r = refusals_[i];
            append(reasons, str("\n  ", r.node, " (", r.domain.empty() ? "" : r.domain + ".",
                                r.type, ", opset ", r.opset, "): ", r.reason));
        }
        throw Error(whole.code, str(whole.reason, reasons.empty() ? "" : ":", reasons), whole.kind);
    }
    Values out;
    for (const std::string& name : node.outputs) {
        out.push_back(name.empty() ? Value{} : scope.names.at(name));
    }
    return out;
}

Values import_node(const Model& model, ingot::Graph& g, const Node& node, size_t index,
                   std::unordered_map<std::string, Value> names) {
    const ImportOptions options;
    return Import(model, options).single(g, node, index, std::move(names));
}

void look_at_node(const Model& model, ingot::Graph& g, const Node& node, Values inputs,
                  const std::function<void(const NodeContext&)>& look) {
    const ImportOptions options;
    Import run(model, options);
    look(NodeContext(run, g, node, std::move(inputs), opset_of(model.opset_imports, node.domain)));
}

std::vector<std::string> read_names(const Node& node) {
    std::vector<std::string> out;
    outer_names_of_bodies(node, {}, out);
    auto is_input = [&](const std::string& name) {
        return std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
    };
    out.erase(std::remove_if(out.begin(), out.end(), is_input), out.end());
    out.insert(out.begin(), node.inputs.begin(), node.inputs.end());
    return out;
}

std::vector<size_t> run_order(const Graph& graph) {
    return node_order(graph.nodes);
}

ingot::Tensor initializer(const Tensor& t) {
    return tensor_from(t);
}

void set_initializer(Model& model, std::string_view name, std::span<const std::byte> bytes) {
    auto& all = model.graph.initializers;
    auto it = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == name; });
    require(it != all.end(), ErrorCode::InvalidArgument, "the model has no initializer '", name,
            "'");
    auto dtype = dtype_of(it->data_type);
    require(dtype.has_value(), ErrorCode::InvalidArgument, "initializer '", name, "' is ",
            data_type_name(it->data_type), ", which is not supported");
    auto expected = static_cast<size_t>(byte_size(*dtype, count_of(it->dims)));
    require(expected == bytes.size(), ErrorCode::InvalidArgument, "initializer '", name, "' has ",
            expected, " bytes, but size is ", bytes.size());
    it->bytes = bytes;
    it->owner = nullptr;
    it->missing.clear();
}

Type graph_input_type(const ValueInfo& info) {
    return input_type(info);
}

bool is_anonymous(std::string_view param) {
    constexpr std::string_view nobody[] = {"", "?", "None", "-1", "unk"};
    return std::find(std::begin(nobody), std::end(nobody), param) != std::end(nobody);
}

Dim open_size(std::string_view param, std::string_view input, size_t axis) {
    return dim_from_param(is_anonymous(param) ? str(input, "_", axis) : std::string(param));
}

} // namespace ingot::onnx
