// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/model_layers.h"

#include "api/tensorrt/parser/layer_builders/layer_builder.h"
#include "api/tensorrt/parser/parsed_op.h"
#include "api/tensorrt/parser/typed_node.h"
#include "api/tensorrt/plugin/node.h"
#include "onnx/import_node.h"
#include "workflow/build.h"

#include <algorithm>

namespace ingot::api {

namespace {

/// A node without a layer class: its type is kPLUGIN, and it has the methods of ILayer only.
class PlainLayer final : public Layer<nv::ILayer> {
public:
    PlainLayer(std::string op, onnx::ShapeUse shapes, size_t results)
        : Layer({nv::LayerType::kPLUGIN, "Plugin"}, results), op_(std::move(op)), shapes_(shapes) {}

    std::string kind() const override { return op_; }
    Values emit(const Emitter&) override {
        fail(ErrorCode::Internal, described(), " has nothing but its node");
    }
    bool reads_shape(size_t input) const override {
        const auto* op = dynamic_cast<const NodeOp*>(parsed.get());
        std::optional<size_t> at = op == nullptr ? std::nullopt : op->position(input);
        return at && shapes_.reads(*at);
    }
    bool passes_shapes() const override { return shapes_.results; }

private:
    std::string op_;
    onnx::ShapeUse shapes_;
};

/// The parser's documented code for the reason why a node was not imported.
ParserCode code_of(const Error& e) {
    switch (e.code()) {
    case ErrorCode::OutOfMemory:
        return ParserCode::kMEM_ALLOC_FAILED;
    case ErrorCode::Internal:
        return ParserCode::kINTERNAL_ERROR;
    case ErrorCode::InvalidModel:
        return ParserCode::kINVALID_NODE;
    default:
        break;
    }
    switch (e.refusal()) {
    case RefusalKind::None:
    case RefusalKind::Operator:
        break;
    case RefusalKind::Attribute:
        return ParserCode::kUNSUPPORTED_NODE_ATTR;
    case RefusalKind::Input:
        return ParserCode::kUNSUPPORTED_NODE_INPUT;
    case RefusalKind::DataType:
        return ParserCode::kUNSUPPORTED_NODE_DATATYPE;
    case RefusalKind::Size:
        return ParserCode::kUNSUPPORTED_NODE_SHAPE;
    case RefusalKind::Dynamic:
        return ParserCode::kUNSUPPORTED_NODE_DYNAMIC;
    }
    return ParserCode::kUNSUPPORTED_NODE;
}

/// Gemm with a third operand becomes two layers, a product and a sum; other nodes become one.
std::vector<ModelLayers::NodePart> parts_of(const onnx::GraphWalk& walk, const onnx::Node& n,
                                            size_t index) {
    std::string label = n.name.empty() ? str(n.op_type, "_", index) : n.name;
    auto is_one = [&](std::string_view name) {
        return std::all_of(n.attributes.begin(), n.attributes.end(), [&](const auto& a) {
            return a.name != name || (a.type == onnx::AttributeType::Float && a.f == 1);
        });
    };
    bool sums = n.op_type == "Gemm" && n.domain.empty() && n.inputs.size() == 3 &&
                !n.inputs[2].empty() && walk.opset(n) >= 7 && is_one("alpha") && is_one("beta") &&
                n.outputs.size() == 1 && !n.outputs[0].empty() && walk.function(n) == nullptr;
    if (!sums) {
        return {{n, label}};
    }
    onnx::Node product = n;
    product.name = label;
    product.inputs.resize(2);
    product.outputs = {str(n.outputs[0], "_product")};
    onnx::Node sum;
    sum.op_type = "Add";
    sum.name = label;
    sum.inputs = {product.outputs[0], n.inputs[2]};
    sum.outputs = n.outputs;
    return {{product, label}, {sum, str(label, "_bias")}};
}

} // namespace

void ModelLayers::run() {
    const onnx::Graph& source = model_->graph;
    order_ = onnx::run_order(source);
    require(!source.outputs.empty(), ErrorCode::InvalidModel, "the graph has no outputs");
    network_.keep(model_);
    take_initializers(source);
    take_inputs(source);
    take_nodes(source.nodes);
    take_outputs(source);
    network_.properties = model_properties(*model_);
    std::string name = model_->graph.name.empty() ? "main" : model_->graph.name;
    network_.setName(name.c_str());
    if (name != network_.getName()) {
        throw std::bad_alloc();
    }
}

onnx::Lookup ModelLayers::find(const std::string& name) {
    return names_.contains(name) ? onnx::Lookup::Found
           : is_poisoned(name)   ? onnx::Lookup::Poisoned
                                 : onnx::Lookup::Missing;
}

std::vector<std::string> ModelLayers::read_by(const onnx::Node& n) const {
    return onnx::read_names(n);
}

std::optional<CustomNode> ModelLayers::custom(const onnx::Node& n) const {
    return plugins_first_ || !GraphWalk::knows(n)
               ? find_custom(n, network_.getBuilder().getPluginRegistry())
               : std::nullopt;
}

bool ModelLayers::knows(const onnx::Node& n) const {
    return GraphWalk::knows(n) || custom(n).has_value();
}

void ModelLayers::add_initializer(const onnx::Tensor& t) {
    Source s;
    s.initializer = network_.add_initializer(t.name, onnx::initializer(t));
    names_.emplace(t.name, s);
}

void ModelLayers::add_input(const onnx::ValueInfo& info) {
    Type type = onnx::graph_input_type(info);
    nv::Dims d = api_dims(type.dims);
    require(d.nbDims >= 0, ErrorCode::Unsupported, "it has ", type.rank(),
            " dimensions; the API has room for ", nv::Dims::MAX_DIMS);
    auto* t = static_cast<NetworkTensor*>(
        network_.addInput(info.name.c_str(), data_type_of(type.dtype), d));
    require(t != nullptr, ErrorCode::InvalidModel, "the name is taken in the network");
    t->exact_type = type.dtype;
    for (size_t i = 0; i < info.dims.size(); ++i) {
        if (info.dims[i].value < 0 && !info.dims[i].param.empty()) {
            t->dimension_names.resize(nv::Dims::MAX_DIMS);
            t->dimension_names[i] = info.dims[i].param;
        }
    }
    names_[info.name].tensor = t;
}

void ModelLayers::add_node(const onnx::Node& n, size_t index) {
    if (std::optional<CustomNode> plugin = custom(n)) {
        add_custom(n, index, *plugin);
        return;
    }
    std::vector<NetworkTensor*> results;
    for (const NodePart& part : parts_of(*this, n, index)) {
        results = add_part(part, index);
    }
    if (!n.name.empty()) {
        results_.emplace(n.name, std::move(results));
    }
}

void ModelLayers::add_output(const onnx::ValueInfo& info) {
    NetworkTensor& t = constant(info.name);
    network_.markOutput(t);
    if (!t.isNetworkOutput()) {
        throw std::bad_alloc();
    }
}

void ModelLayers::note(ParserCode code, const std::string& text, int line) {
    errors_.push_back(std::make_unique<ParserError>(code, text, line));
}

void ModelLayers::refused_initializer(const std::string& name, const Error& e) {
    note(ParserCode::kINVALID_VALUE, str("initializer '", name, "': ", e.message()), __LINE__);
}

void ModelLayers::refused_input(const std::string& name, const Error& e) {
    note(ParserCode::kUNSUPPORTED_GRAPH, str("input '", name, "': ", e.message()), __LINE__);
}

void ModelLayers::refused_node(const onnx::Node& n, size_t index, const Error& e) {
    note_node(n, index, code_of(e), custom(n) ? e.what() : e.message(), __LINE__);
}

void ModelLayers::missing_input(const onnx::Node& n, size_t index, const std::string& reason) {
    note_node(n, index, ParserCode::kINVALID_GRAPH, reason, __LINE__);
}

void ModelLayers::missing_output(const std::string& reason) {
    note(ParserCode::kINVALID_GRAPH, str("graph ", reason), __LINE__);
}

void ModelLayers::note_node(const onnx::Node& n, size_t index, ParserCode code,
                            const std::string& reason, int line) {
    auto e = std::make_unique<ParserError>(
        code, str(onnx::describe(n, index, opset(n)), ": ", reason), line);
    e->index = static_cast<int>(index);
    e->name = n.name;
    e->op = n.op_type;
    if (const onnx::FunctionProto* f = function(n)) {
        e->set_function(f->key.name);
    }
    errors_.push_back(std::move(e));
    refused_.insert(index);
}

std::vector<NetworkTensor*> ModelLayers::add_part(const NodePart& part, size_t index) {
    const onnx::Node& n = part.node;
    std::vector<size_t> named; // results
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        if (!n.outputs[i].empty()) {
            named.push_back(i);
        }
    }
    std::vector<LayerBase*> layers;
    if (function(n) == nullptr) {
        layers = TypedNode(*this, n, index, part.label).add();
    }
    std::vector<NetworkTensor*> results; // by output of the node, or only the named ones
    bool plain = layers.empty();
    if (plain) {
        layers = {&add_plain(part, index, named)};
    }
    for (LayerBase* layer : layers) {
        for (const auto& t : layer->outputs) {
            t->rename(str(part.label, "_output_", results.size()));
            results.push_back(t.get());
        }
    }
    for (size_t i = 0; i < named.size(); ++i) {
        results[plain ? i : named[i]]->rename(n.outputs[named[i]]);
    }
    if (!results.empty()) {
        network_.type_of(*results[0]);
    }
    std::vector<std::string> read = onnx::read_names(n);
    bool fixed = std::all_of(read.begin(), read.end(), [&](const std::string& name) {
        return name.empty() || is_fixed(names_.at(name));
    });
    for (size_t i = 0; i < named.size(); ++i) {
        NetworkTensor* t = results[plain ? i : named[i]];
        define(n.outputs[named[i]], *t);
        if (fixed) {
            fixed_.insert(t);
        }
    }
    return results;
}

bool ModelLayers::is_fixed(const Source& s) const {
    return s.tensor == nullptr || fixed_.contains(s.tensor);
}

LayerBase& ModelLayers::add_plain(const NodePart& part, size_t index,
                                  const std::vector<size_t>& results) {
    std::vector<NetworkTensor*> in;
    std::vector<NodeSource> sources;
    for (const std::string& name : onnx::read_names(part.node)) {
        NodeSource s{name, std::nullopt, nullptr, 0};
        if (!name.empty()) {
            const Source& from = names_.at(name);
            s.initializer = from.initializer.value_or(0);
            if (!from.initializer) {
                s.input = in.size();
                in.push_back(from.tensor);
            }
        }
        sources.push_back(std::move(s));
    }
    const onnx::Node& n = part.node;
    const onnx::ImporterRow* row =
        function(n) != nullptr ? nullptr : onnx::find_importer(n.domain, n.op_type, opset(n));
    auto layer = std::make_unique<PlainLayer>(
        n.op_type, row == nullptr ? onnx::no_shapes : row->shapes, results.size());
    layer->name = part.label;
    layer->parsed =
        std::make_shared<NodeOp>(model_, part.node, index, std::move(sources), results, part.label);
    return *network_.append(std::move(layer), in);
}

NetworkTensor& ModelLayers::constant(const std::string& name) {
    Source& s = names_.at(name);
    if (s.tensor == nullptr) {
        s.tensor = add_constant(name, *s.initializer).outputs[0].get();
        s.tensor->rename(name);
        fixed_.insert(s.tensor);
    }
    return *s.tensor;
}

LayerBase& ModelLayers::add_constant(const std::string& name, size_t initializer) {
    const Tensor& t = network_.initializers()[initializer].tensor;
    auto op = std::make_shared<InitializerOp>(initializer);
    if (!has_name(t.dtype()) || t.rank() > nv::Dims::MAX_DIMS) {
        auto plain = std::make_unique<PlainLayer>("Constant", onnx::no_shapes, 1);
        plain->name = name;
        plain->parsed = std::move(op);
        return *network_.append(std::move(plain), {});
    }
    Report report = network_.report();
    Network::Reading reading(network_, report);
    nv::Weights w{data_type_of(t.dtype()), t.bytes().data(), t.count()};
    require(network_.addConstant(api_dims(t.shape()), w) != nullptr, ErrorCode::Internal,
            "initializer '", name, "' is no constant layer");
    LayerBase& layer = *network_.layers().back();
    layer.name = name;
    layer.parsed = std::move(op);
    return layer;
}

void ModelLayers::add_custom(const onnx::Node& n, size_t index, const CustomNode& custom) {
    std::vector<std::string> read = n.inputs;
    while (!read.empty() && read.back().empty()) {
        read.pop_back();
    }
    std::vector<NetworkTensor*> in;
    for (const std::string& name : read) {
        if (name.empty()) {
            refuse(RefusalKind::Input, "input ", in.size(),
                   " is left out: a plugin needs all before its last");
        }
        in.push_back(&constant(name));
    }
    std::string name = n.name.empty() ? str(n.op_type, "_", index) : n.name;
    LayerBase& layer = append_custom(network_, n, custom, std::move(in), name);
    require(n.outputs.size() <= layer.outputs.size(), ErrorCode::InvalidModel, "it has ",
            n.outputs.size(), " outputs, the plugin ", layer.outputs.size());
    network_.type_of(*layer.outputs[0]);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        if (!n.outputs[i].empty()) {
            layer.outputs[i]->rename(n.outputs[i]);
            define(n.outputs[i], *layer.outputs[i]);
        }
    }
    if (!n.name.empty()) {
        std::vector<NetworkTensor*> results;
        for (const auto& t : layer.outputs) {
            results.push_back(t.get());
        }
        results_.emplace(n.name, std::move(results));
    }
}

void ModelLayers::define(const std::string& name, NetworkTensor& t) {
    require(names_.emplace(name, Source{&t, std::nullopt}).second, ErrorCode::InvalidModel,
            "output '", name, "' has been defined before");
}

} // namespace ingot::api
