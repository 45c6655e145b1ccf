// SPDX-License-Identifier: Apache-2.0
// GraphProto, NodeProto and AttributeProto.
#include "base/interrupt.h"
#include "onnx/reader.h"
#include "onnx/reader_parts.h"

#include <algorithm>
#include <array>

namespace ingot::onnx {
namespace {

constexpr std::array<std::string_view, 15> attribute_type_names = {
    "undefined",      "float",      "int",        "string",  "tensor", "graph",
    "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
    "sparse_tensors", "type_proto", "type_protos"};

/// Counts open nested graphs.
class NestedGraph {
public:
    explicit NestedGraph(ReadContext& context) : context_(context) {
        require(context.graph_depth < max_nesting, ErrorCode::InvalidModel,
                "graphs are nested deeper than ", max_nesting);
        ++context_.graph_depth;
    }
    ~NestedGraph() { --context_.graph_depth; }
    NestedGraph(const NestedGraph&) = delete;
    NestedGraph& operator=(const NestedGraph&) = delete;

private:
    ReadContext& context_;
};

// An AttributeProto while it is read: which members hold a value.
class AttributeReader {
public:
    AttributeReader(Bytes message, ReadContext& context)
        : wire_(message, context.origin), context_(context) {}

    Attribute read() {
        while (wire_.next()) {
            if (!read_scalar() && !read_list()) {
                wire_.skip();
            }
        }
        finish();
        return std::move(attribute_);
    }

private:
    void found(AttributeType t) { present_ |= 1U << static_cast<unsigned>(t); }
    bool has(AttributeType t) const { return (present_ >> static_cast<unsigned>(t) & 1U) != 0; }
    // Writers without field presence omit zeros, and some write a zero for every member.
    void found_unless(bool is_default, AttributeType t) {
        if (!is_default) {
            found(t);
        }
    }

    bool read_scalar();
    bool read_list();
    void read_type();
    void finish();

    Wire wire_;
    ReadContext& context_;
    Attribute attribute_;
    bool has_type_ = false;
    uint32_t present_ = 0;
};

void AttributeReader::read_type() {
    const int64_t t = wire_.once("type").integer();
    if (t < 0 || t >= static_cast<int64_t>(attribute_type_names.size())) {
        wire_.bad(str("is ", t, ", which is no attribute type of ONNX"));
    }
    attribute_.type = static_cast<AttributeType>(t);
    has_type_ = t != 0;
}

bool AttributeReader::read_scalar() {
    Attribute& a = attribute_;
    switch (wire_.field()) {
    case 1:
        a.name = context_.budget.text(wire_.once("name").text());
        return true;
    case 2:
        a.f = wire_.once("f").f32();
        found_unless(a.f == 0, AttributeType::Float);
        return true;
    case 3:
        a.i = wire_.once("i").integer();
        found_unless(a.i == 0, AttributeType::Int);
        return true;
    case 4:
        a.s = context_.budget.text(wire_.once("s").text());
        found_unless(a.s.empty(), AttributeType::String);
        return true;
    case 5:
        a.t = read_tensor_message(wire_.once("t").bytes(), context_);
        found(AttributeType::Tensor);
        return true;
    case 6:
        context_.budget.take(sizeof(Graph));
        a.g = std::make_shared<Graph>(read_graph_message(wire_.once("g").bytes(), context_));
        found(AttributeType::Graph);
        return true;
    case 14:
        wire_.once("tp").bytes();
        found(AttributeType::TypeProto);
        return true;
    case 20:
        read_type();
        return true;
    case 21:
        a.ref_attr_name = context_.budget.text(wire_.once("ref_attr_name").text());
        return true;
    case 22:
        context_.budget.take(sizeof(SparseTensor));
        a.sparse_tensor = std::make_shared<SparseTensor>(
            read_sparse_message(wire_.once("sparse_tensor").bytes(), context_));
        found(AttributeType::SparseTensor);
        return true;
    default:
        return false;
    }
}

bool AttributeReader::read_list() {
    Attribute& a = attribute_;
    switch (wire_.field()) {
    case 7:
        wire_.repeated("floats").each_fixed<float>([&](float v) {
            context_.budget.take_element(a.floats);
            a.floats.push_back(v);
        });
        found_unless(a.floats.empty(), AttributeType::Floats);
        return true;
    case 8:
        wire_.repeated("ints").each_varint([&](uint64_t v) {
            context_.budget.take_element(a.ints);
            a.ints.push_back(static_cast<int64_t>(v));
        });
        found_unless(a.ints.empty(), AttributeType::Ints);
        return true;
    case 9:
        context_.budget.take_element(a.strings);
        a.strings.push_back(context_.budget.text(wire_.repeated("strings").text()));
        found(AttributeType::Strings);
        return true;
    case 10: {
        const Bytes part = wire_.repeated("tensors").bytes();
        append_message(a.tensors, part, "tensor", 8, context_,
                       [&] { return read_tensor_message(part, context_); });
        found(AttributeType::Tensors);
        return true;
    }
    case 11: {
        const Bytes part = wire_.repeated("graphs").bytes();
        context_.budget.take(sizeof(Graph));
        context_.budget.take_element(a.graphs);
        a.graphs.push_back(std::make_shared<Graph>(read_graph_message(part, context_)));
        found(AttributeType::Graphs);
        return true;
    }
    case 15:
        wire_.repeated("type_protos").bytes();
        found(AttributeType::TypeProtos);
        return true;
    case 23:
        wire_.repeated("sparse_tensors").bytes();
        found(AttributeType::SparseTensors);
        return true;
    default:
        return false;
    }
}

void AttributeReader::finish() {
    Attribute& a = attribute_;
    require(!a.name.empty(), ErrorCode::InvalidModel, "has no name");
    const bool is_reference = !a.ref_attr_name.empty();
    if (is_reference) {
        require(context_.in_function, ErrorCode::InvalidModel, "refers to attribute ",
                shown(a.ref_attr_name), " of a function, but stands in none");
        require(present_ == 0, ErrorCode::InvalidModel, "refers to attribute ",
                shown(a.ref_attr_name), " and holds a value too");
        return;
    }
    // Models of 2017 have no type: the only member with a value determines it.
    for (size_t t = 1; t < attribute_type_names.size(); ++t) {
        if ((present_ >> t & 1U) == 0) {
            continue;
        }
        const auto type = static_cast<AttributeType>(t);
        require(!has_type_ || type == a.type, ErrorCode::InvalidModel, "has type ", a.type,
                ", but holds a value of type ", type);
        a.type = type;
        has_type_ = true;
    }
    require(has_type_, ErrorCode::InvalidModel, "has neither a type nor a value");
    const bool needs_value = a.type == AttributeType::Tensor || a.type == AttributeType::Graph ||
                             a.type == AttributeType::SparseTensor;
    require(!needs_value || has(a.type), ErrorCode::InvalidModel, "has type ", a.type,
            ", but no value");
}

QuantizationAnnotation read_annotation(Bytes message, ReadContext& context) {
    QuantizationAnnotation a;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            a.tensor_name = context.budget.text(w.once("tensor_name").text());
            break;
        case 2:
            context.budget.take_element(a.parameters);
            a.parameters.push_back(
                read_string_pair(w.repeated("quant_parameter_tensor_names").bytes(), context));
            break;
        default:
            w.skip();
        }
    }
    return a;
}

bool read_graph_data(Wire& w, Graph& g, ReadContext& context) {
    switch (w.field()) {
    case 1: {
        const Bytes part = w.repeated("node").bytes();
        check_interrupt();
        append_message(g.nodes, part, "node", 3, context,
                       [&] { return read_node_message(part, context); });
        return true;
    }
    case 5: {
        const Bytes part = w.repeated("initializer").bytes();
        check_interrupt();
        append_message(g.initializers, part, "initializer", 8, context, [&] {
            context.data_may_be_missing =
                context.initializers_may_lack_data && context.graph_depth == 1;
            Tensor t = read_tensor_message(part, context);
            context.data_may_be_missing = false;
            return t;
        });
        return true;
    }
    case 14: {
        const Bytes part = w.repeated("quantization_annotation").bytes();
        append_message(g.quantization_annotation, part, "quantization annotation of", 1, context,
                       [&] { return read_annotation(part, context); });
        return true;
    }
    case 15: {
        const Bytes part = w.repeated("sparse_initializer").bytes();
        append_message(g.sparse_initializers, part, "sparse initializer", 0, context,
                       [&] { return read_sparse_message(part, context); });
        return true;
    }
    default:
        return false;
    }
}

bool read_graph_values(Wire& w, Graph& g, ReadContext& context) {
    const auto add = [&](const char* kind, std::vector<ValueInfo>& list) {
        const Bytes part = w.repeated(kind).bytes();
        append_message(list, part, kind, 1, context,
                       [&] { return read_value_info_message(part, context); });
    };
    switch (w.field()) {
    case 2:
        g.name = context.budget.text(w.once("name").text());
        return true;
    case 11:
        add("input", g.inputs);
        return true;
    case 12:
        add("output", g.outputs);
        return true;
    case 13:
        add("value_info", g.value_info);
        return true;
    default:
        return false;
    }
}

void check_names(const Graph& g) {
    std::vector<std::string_view> names;
    for (const Tensor& t : g.initializers) {
        names.emplace_back(t.name);
    }
    for (const SparseTensor& s : g.sparse_initializers) {
        names.emplace_back(s.values.name);
    }
    require_unique(std::move(names), "initializer");
    names.clear();
    for (const ValueInfo& v : g.inputs) {
        names.emplace_back(v.name);
    }
    require_unique(std::move(names), "input");
}

} // namespace

std::string_view name(AttributeType t) {
    return attribute_type_names.at(static_cast<size_t>(t));
}

Attribute read_attribute_message(Bytes message, ReadContext& context) {
    return AttributeReader(message, context).read();
}

Node read_node_message(Bytes message, ReadContext& context) {
    Node n;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            context.budget.take_element(n.inputs);
            n.inputs.push_back(context.budget.text(w.repeated("input").text()));
            break;
        case 2:
            context.budget.take_element(n.outputs);
            n.outputs.push_back(context.budget.text(w.repeated("output").text()));
            break;
        case 3:
            n.name = context.budget.text(w.once("name").text());
            break;
        case 4:
            n.op_type = context.budget.text(w.once("op_type").text());
            break;
        case 5: {
            const Bytes part = w.repeated("attribute").bytes();
            append_message(n.attributes, part, "attribute", 1, context,
                           [&] { return read_attribute_message(part, context); });
            break;
        }
        case 7:
            n.domain = plain_domain(w.once("domain").text());
            break;
        case 8:
            n.overload = context.budget.text(w.once("overload").text());
            break;
        default:
            w.skip();
        }
    }
    require(!n.op_type.empty(), ErrorCode::InvalidModel, "has no op_type");
    std::vector<std::string_view> names;
    for (const Attribute& a : n.attributes) {
        names.emplace_back(a.name);
    }
    require_unique(std::move(names), "attribute");
    return n;
}

Graph read_graph_message(Bytes message, ReadContext& context) {
    return with_place(
        [&] {
            const std::string name = peek_text(message, 2);
            return name.empty() ? "graph" : str("graph ", shown(name));
        },
        [&] {
            const NestedGraph nested(context);
            Graph g;
            context.budget.reserve(g.nodes, count_field(message, 1));
            Wire w(message, context.origin);
            while (w.next()) {
                if (!read_graph_data(w, g, context) && !read_graph_values(w, g, context)) {
                    w.skip();
                }
            }
            check_names(g);
            return g;
        });
}

} // namespace ingot::onnx
