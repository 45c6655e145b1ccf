// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/model_layers.h"

#include "api/tensorrt/plugin/node.h"
#include "onnx/import_node.h"
#include "workflow/build.h"

#include <algorithm>
#include <map>

namespace ingot::api {

namespace {

using Kind = nv::LayerType;

struct OperatorKind {
    std::string_view op;
    Kind kind;
};

constexpr OperatorKind operator_kinds[] = {
    {"Conv", Kind::kCONVOLUTION},
    {"ConvTranspose", Kind::kDECONVOLUTION},
    {"MaxPool", Kind::kPOOLING},
    {"AveragePool", Kind::kPOOLING},
    {"GlobalAveragePool", Kind::kREDUCE},
    {"GlobalMaxPool", Kind::kREDUCE},
    {"LRN", Kind::kLRN},
    {"BatchNormalization", Kind::kSCALE},
    {"InstanceNormalization", Kind::kNORMALIZATION},
    {"GroupNormalization", Kind::kNORMALIZATION},
    {"LayerNormalization", Kind::kNORMALIZATION},
    {"RMSNormalization", Kind::kNORMALIZATION},
    {"Softmax", Kind::kSOFTMAX},
    {"Concat", Kind::kCONCATENATION},
    {"Add", Kind::kELEMENTWISE},
    {"Sub", Kind::kELEMENTWISE},
    {"Mul", Kind::kELEMENTWISE},
    {"Div", Kind::kELEMENTWISE},
    {"Pow", Kind::kELEMENTWISE},
    {"Min", Kind::kELEMENTWISE},
    {"Max", Kind::kELEMENTWISE},
    {"Sum", Kind::kELEMENTWISE},
    {"Mean", Kind::kELEMENTWISE},
    {"Mod", Kind::kELEMENTWISE},
    {"And", Kind::kELEMENTWISE},
    {"Or", Kind::kELEMENTWISE},
    {"Xor", Kind::kELEMENTWISE},
    {"Equal", Kind::kELEMENTWISE},
    {"Less", Kind::kELEMENTWISE},
    {"LessOrEqual", Kind::kELEMENTWISE},
    {"Greater", Kind::kELEMENTWISE},
    {"GreaterOrEqual", Kind::kELEMENTWISE},
    {"Pad", Kind::kSLICE},
    {"Slice", Kind::kSLICE},
    {"Split", Kind::kSLICE},
    {"Expand", Kind::kSLICE},
    {"Tile", Kind::kSLICE},
    {"Reshape", Kind::kSHUFFLE},
    {"Flatten", Kind::kSHUFFLE},
    {"Transpose", Kind::kSHUFFLE},
    {"DepthToSpace", Kind::kSHUFFLE},
    {"SpaceToDepth", Kind::kSHUFFLE},
    {"Squeeze", Kind::kSQUEEZE},
    {"Unsqueeze", Kind::kUNSQUEEZE},
    {"Shape", Kind::kSHAPE},
    {"Size", Kind::kSHAPE},
    {"TopK", Kind::kTOPK},
    {"ArgMax", Kind::kTOPK},
    {"ArgMin", Kind::kTOPK},
    {"Gather", Kind::kGATHER},
    {"GatherElements", Kind::kGATHER},
    {"GatherND", Kind::kGATHER},
    {"ScatterElements", Kind::kSCATTER},
    {"Scatter", Kind::kSCATTER},
    {"ScatterND", Kind::kSCATTER},
    {"MatMul", Kind::kMATRIX_MULTIPLY},
    {"Gemm", Kind::kMATRIX_MULTIPLY},
    {"Einsum", Kind::kEINSUM},
    {"Constant", Kind::kCONSTANT},
    {"Identity", Kind::kIDENTITY},
    {"Dropout", Kind::kIDENTITY},
    {"Cast", Kind::kCAST},
    {"CastLike", Kind::kCAST},
    {"PRelu", Kind::kPARAMETRIC_RELU},
    {"Resize", Kind::kRESIZE},
    {"Upsample", Kind::kRESIZE},
    {"GridSample", Kind::kGRID_SAMPLE},
    {"Where", Kind::kSELECT},
    {"ConstantOfShape", Kind::kFILL},
    {"Range", Kind::kFILL},
    {"RandomNormal", Kind::kFILL},
    {"RandomUniform", Kind::kFILL},
    {"QuantizeLinear", Kind::kQUANTIZE},
    {"DequantizeLinear", Kind::kDEQUANTIZE},
    {"OneHot", Kind::kONE_HOT},
    {"NonZero", Kind::kNON_ZERO},
    {"NonMaxSuppression", Kind::kNMS},
    {"ReverseSequence", Kind::kREVERSE_SEQUENCE},
    {"CumSum", Kind::kCUMULATIVE},
    {"Attention", Kind::kATTENTION_OUTPUT},
    {"RotaryEmbedding", Kind::kROTARY_EMBEDDING},
    {"TensorScatter", Kind::kKVCACHE_UPDATE},
    {"If", Kind::kCONDITIONAL_OUTPUT},
    {"Loop", Kind::kLOOP_OUTPUT},
    {"Scan", Kind::kLOOP_OUTPUT},
    {"RNN", Kind::kLOOP_OUTPUT},
    {"GRU", Kind::kLOOP_OUTPUT},
    {"LSTM", Kind::kLOOP_OUTPUT},
    {"Relu", Kind::kACTIVATION},
    {"Sigmoid", Kind::kACTIVATION},
    {"Tanh", Kind::kACTIVATION},
    {"LeakyRelu", Kind::kACTIVATION},
    {"Elu", Kind::kACTIVATION},
    {"Selu", Kind::kACTIVATION},
    {"Softsign", Kind::kACTIVATION},
    {"Softplus", Kind::kACTIVATION},
    {"Clip", Kind::kACTIVATION},
    {"HardSigmoid", Kind::kACTIVATION},
    {"ThresholdedRelu", Kind::kACTIVATION},
    {"Gelu", Kind::kACTIVATION},
    {"Exp", Kind::kUNARY},
    {"Log", Kind::kUNARY},
    {"Sqrt", Kind::kUNARY},
    {"Reciprocal", Kind::kUNARY},
    {"Abs", Kind::kUNARY},
    {"Neg", Kind::kUNARY},
    {"Sin", Kind::kUNARY},
    {"Cos", Kind::kUNARY},
    {"Tan", Kind::kUNARY},
    {"Sinh", Kind::kUNARY},
    {"Cosh", Kind::kUNARY},
    {"Asin", Kind::kUNARY},
    {"Acos", Kind::kUNARY},
    {"Atan", Kind::kUNARY},
    {"Asinh", Kind::kUNARY},
    {"Acosh", Kind::kUNARY},
    {"Atanh", Kind::kUNARY},
    {"Ceil", Kind::kUNARY},
    {"Floor", Kind::kUNARY},
    {"Erf", Kind::kUNARY},
    {"Not", Kind::kUNARY},
    {"Sign", Kind::kUNARY},
    {"Round", Kind::kUNARY},
    {"IsInf", Kind::kUNARY},
    {"IsNaN", Kind::kUNARY},
};

/// Which kind of layer an operator would be if it were added by hand; others are plugins.
Kind kind_of_operator(const std::string& op) {
    static const auto kinds = [] {
        std::map<std::string_view, Kind> m;
        for (const OperatorKind& row : operator_kinds) {
            m.emplace(row.op, row.kind);
        }
        return m;
    }();
    auto it = kinds.find(op);
    if (it != kinds.end()) {
        return it->second;
    }
    return op.starts_with("Reduce") ? Kind::kREDUCE : Kind::kPLUGIN;
}

/// Inputs whose values are shapes.
bool is_shape_input(const std::string& op, size_t i) {
    static const std::map<std::string, std::vector<size_t>> inputs = {
        {"Reshape", {1}},        {"Expand", {1}}, {"Tile", {1}},   {"ConstantOfShape", {0}},
        {"Slice", {1, 2, 3, 4}}, {"Pad", {1, 3}}, {"Resize", {3}}, {"Range", {0, 1, 2}},
        {"OneHot", {1}},         {"TopK", {1}},   {"Loop", {0}},   {"Unsqueeze", {1}},
        {"Squeeze", {1}},
    };
    auto it = inputs.find(op);
    return it != inputs.end() &&
           std::find(it->second.begin(), it->second.end(), i) != it->second.end();
}

/// A name that a node reads, and what it stands for.
struct Reading {
    std::string name;
    std::optional<size_t> input;       // among the layer's inputs
    std::optional<size_t> initializer; // of the network
};

class NodeLayer final : public Layer<nv::ILayer> {
public:
    NodeLayer(std::shared_ptr<const onnx::Model> model, size_t index, std::vector<Reading> readings,
              size_t results)
        : Layer(kind_of_operator(model->graph.nodes[index].op_type), results),
          model_(std::move(model)), index_(index), readings_(std::move(readings)) {}

    Values emit(const Emitter& e) override {
        onnx::Node n = node();
        n.name = LayerBase::name;
        std::unordered_map<std::string, Value> names;
        for (const Reading& r : readings_) {
            names.emplace(r.name,
                          r.input ? e.in[*r.input] : e.emission.initializer(*r.initializer));
        }
        Values all = onnx::import_node(*model_, e.g, n, index_, std::move(names));
        Values out;
        for (Value v : all) {
            if (v.valid()) {
                out.push_back(v);
            }
        }
        return out;
    }
    bool reads_shape(size_t input) const override {
        for (const Reading& r : readings_) {
            auto at = std::find(node().inputs.begin(), node().inputs.end(), r.name);
            if (r.input == input && at != node().inputs.end()) {
                return is_shape_input(node().op_type,
                                      static_cast<size_t>(at - node().inputs.begin()));
            }
        }
        return false;
    }
    std::vector<std::pair<std::string, nv::WeightsRole>> named_weights() const override {
        std::vector<std::pair<std::string, nv::WeightsRole>> out;
        bool window = type() == Kind::kCONVOLUTION || type() == Kind::kDECONVOLUTION;
        for (size_t i = 1; window && i < std::min<size_t>(node().inputs.size(), 3); ++i) {
            for (const Reading& r : readings_) {
                if (r.initializer && r.name == node().inputs[i]) {
                    out.emplace_back(r.name,
                                     i == 1 ? nv::WeightsRole::kKERNEL : nv::WeightsRole::kBIAS);
                }
            }
        }
        return out;
    }
    bool passes_shapes() const override {
        switch (type()) {
        case Kind::kACTIVATION:
        case Kind::kCAST:
        case Kind::kCONCATENATION:
        case Kind::kELEMENTWISE:
        case Kind::kGATHER:
        case Kind::kIDENTITY:
        case Kind::kREDUCE:
        case Kind::kSELECT:
        case Kind::kSHUFFLE:
        case Kind::kSLICE:
        case Kind::kSQUEEZE:
        case Kind::kUNARY:
        case Kind::kUNSQUEEZE:
            return true;
        default:
            return false;
        }
    }

private:
    const onnx::Node& node() const { return model_->graph.nodes[index_]; }
    std::shared_ptr<const onnx::Model> model_;
    size_t index_;
    std::vector<Reading> readings_;
};

/// An initializer that is an output.
class InitializerLayer final : public Layer<nv::ILayer> {
public:
    explicit InitializerLayer(size_t initializer)
        : Layer(Kind::kCONSTANT, 1), initializer_(initializer) {}
    Values emit(const Emitter& e) override { return {e.emission.initializer(initializer_)}; }

private:
    size_t initializer_;
};

bool mentions(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
}

/// What the importer's reason is about.
ParserCode code_of(const Error& e) {
    const std::string& text = e.message();
    if (e.code() == ErrorCode::OutOfMemory) {
        return ParserCode::kMEM_ALLOC_FAILED;
    }
    if (e.code() == ErrorCode::Internal) {
        return ParserCode::kINTERNAL_ERROR;
    }
    if (mentions(text, "must be a constant") || mentions(text, "before the run") ||
        mentions(text, "at run time")) {
        return ParserCode::kUNSUPPORTED_NODE_DYNAMIC;
    }
    return mentions(text, "attribute")      ? ParserCode::kUNSUPPORTED_NODE_ATTR
           : mentions(text, "element type") ? ParserCode::kUNSUPPORTED_NODE_DATATYPE
           : mentions(text, "rank") || mentions(text, "shape") || mentions(text, "sizes")
               ? ParserCode::kUNSUPPORTED_NODE_SHAPE
           : mentions(text, "input") ? ParserCode::kUNSUPPORTED_NODE_INPUT
                                     : ParserCode::kUNSUPPORTED_NODE;
}

const onnx::FunctionProto* function_of(const onnx::Model& m, const onnx::Node& n) {
    auto it = m.functions.find({n.domain, n.op_type, n.overload});
    return it == m.functions.end() ? nullptr : &it->second;
}

int64_t opset_of(const onnx::Model& m, const onnx::Node& n) {
    auto it = m.opset_imports.find(n.domain);
    if (it == m.opset_imports.end() && n.domain.empty()) {
        it = m.opset_imports.find("ai.onnx");
    }
    return it == m.opset_imports.end() ? 0 : it->second;
}

} // namespace

void ModelLayers::run() {
    order_ = onnx::run_order(model_->graph);
    require(!model_->graph.outputs.empty(), ErrorCode::InvalidModel, "the graph has no outputs");
    network_.keep(model_);
    add_initializers();
    add_inputs();
    for (size_t index : order_) {
        add_node(index);
    }
    add_outputs();
    network_.properties = model_properties(*model_);
    network_.setName(model_->graph.name.empty() ? "main" : model_->graph.name.c_str());
}

void ModelLayers::add_initializers() {
    auto refuse = [&](const std::string& name, const std::string& reason) {
        errors_.push_back(std::make_unique<ParserError>(
            ParserCode::kINVALID_VALUE, str("initializer '", name, "': ", reason), __LINE__));
        poisoned_.insert(name);
    };
    for (const onnx::Tensor& t : model_->graph.initializers) {
        try {
            Source s;
            s.initializer = network_.add_initializer(t.name, onnx::initializer(t));
            names_.emplace(t.name, s);
        } catch (const Error& e) {
            refuse(t.name, e.message());
        }
    }
    for (const onnx::SparseTensor& t : model_->graph.sparse_initializers) {
        refuse(t.values.name, "sparse initializers are not supported; store the tensor densely");
    }
}

void ModelLayers::add_inputs() {
    for (const onnx::ValueInfo& info : model_->graph.inputs) {
        if (names_.contains(info.name)) {
            continue; // an initializer: its value is fixed
        }
        try {
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
                    t->setDimensionName(static_cast<int32_t>(i), info.dims[i].param.c_str());
                }
            }
            names_[info.name].tensor = t;
        } catch (const Error& e) {
            errors_.push_back(std::make_unique<ParserError>(
                ParserCode::kUNSUPPORTED_GRAPH, str("input '", info.name, "': ", e.message()),
                __LINE__));
            poisoned_.insert(info.name);
        }
    }
}

void ModelLayers::fail_node(size_t index, ParserCode code, const std::string& reason, int line) {
    const onnx::Node& n = model_->graph.nodes[index];
    std::string label = n.name.empty() ? str("#", index) : str("'", n.name, "'");
    auto e = std::make_unique<ParserError>(code,
                                           str("node ", label, " (",
                                               n.domain.empty() ? "" : n.domain + ".", n.op_type,
                                               ", opset ", opset_of(*model_, n), "): ", reason),
                                           line);
    e->index = static_cast<int>(index);
    e->name = n.name;
    e->op = n.op_type;
    if (const onnx::FunctionProto* f = function_of(*model_, n)) {
        e->set_function(f->key.name);
    }
    errors_.push_back(std::move(e));
    refused_.insert(index);
    poisoned_.insert(n.outputs.begin(), n.outputs.end());
}

void ModelLayers::add_node(size_t index) {
    const onnx::Node& n = model_->graph.nodes[index];
    bool poisoned = false;
    std::vector<NetworkTensor*> in;
    std::vector<Reading> readings;
    for (const std::string& name : onnx::read_names(n)) {
        if (name.empty() || poisoned_.contains(name)) {
            poisoned = poisoned || !name.empty();
            continue;
        }
        auto it = names_.find(name);
        if (it == names_.end()) {
            return fail_node(index, ParserCode::kINVALID_GRAPH,
                             str("input '", name,
                                 "' is neither an input, an initializer nor the output of a node"),
                             __LINE__);
        }
        const Source& s = it->second;
        Reading r{name, std::nullopt, std::nullopt};
        if (s.tensor != nullptr) {
            r.input = in.size();
            in.push_back(s.tensor);
        } else {
            r.initializer = s.initializer;
        }
        readings.push_back(std::move(r));
    }
    bool known = onnx::find_importer(n.domain, n.op_type, opset_of(*model_, n)) != nullptr ||
                 function_of(*model_, n) != nullptr;
    std::optional<CustomNode> custom;
    if (!known || plugins_first_) {
        custom = find_custom(n, network_.getBuilder().getPluginRegistry());
    }
    if (custom && !poisoned) {
        return add_custom(index, *custom);
    }
    if (!known && !custom) {
        return fail_node(index, ParserCode::kUNSUPPORTED_NODE,
                         opset_of(*model_, n) == 0
                             ? str("the model imports no opset of domain '", n.domain, "'")
                             : std::string("Ingot does not know this operator"),
                         __LINE__);
    }
    if (poisoned) { // what it reads was refused: only that is worth reporting
        poisoned_.insert(n.outputs.begin(), n.outputs.end());
        return;
    }
    std::vector<std::string> results;
    for (const std::string& o : n.outputs) {
        if (!o.empty()) {
            results.push_back(o);
        }
    }
    try {
        auto layer =
            std::make_unique<NodeLayer>(model_, index, std::move(readings), results.size());
        layer->name = n.name.empty() ? str(n.op_type, "_", index) : n.name;
        NodeLayer* p = network_.append(std::move(layer), in);
        for (size_t i = 0; i < results.size(); ++i) {
            p->outputs[i]->rename(results[i]);
        }
        if (!results.empty()) {
            network_.type_of(*p->outputs[0]);
        }
        for (size_t i = 0; i < results.size(); ++i) {
            define(results[i], *p->outputs[i]);
        }
        if (!n.name.empty()) {
            layers_.emplace(n.name, p);
        }
    } catch (const Error& e) {
        bool invalid = e.code() == ErrorCode::InvalidModel;
        fail_node(index, invalid ? ParserCode::kINVALID_NODE : code_of(e), e.message(), __LINE__);
    }
}

void ModelLayers::add_custom(size_t index, const CustomNode& custom) {
    const onnx::Node& n = model_->graph.nodes[index];
    try {
        std::vector<std::string> read = n.inputs;
        while (!read.empty() && read.back().empty()) {
            read.pop_back();
        }
        std::vector<NetworkTensor*> in;
        for (const std::string& name : read) {
            require(!name.empty(), ErrorCode::Unsupported, "input ", in.size(),
                    " is left out: a plugin needs all before its last");
            Source& s = names_.at(name);
            if (s.tensor == nullptr) {
                auto layer = std::make_unique<InitializerLayer>(s.initializer);
                layer->name = name;
                s.tensor = network_.append(std::move(layer), {})->outputs[0].get();
            }
            in.push_back(s.tensor);
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
            layers_.emplace(n.name, &layer);
        }
    } catch (const Error& e) {
        bool invalid = e.code() == ErrorCode::InvalidModel;
        fail_node(index, invalid ? ParserCode::kINVALID_NODE : code_of(e), e.what(), __LINE__);
    }
}

void ModelLayers::define(const std::string& name, NetworkTensor& t) {
    require(names_.emplace(name, Source{&t, 0}).second, ErrorCode::InvalidModel, "output '", name,
            "' has been defined before");
}

void ModelLayers::add_outputs() {
    for (const onnx::ValueInfo& info : model_->graph.outputs) {
        if (poisoned_.contains(info.name)) {
            continue;
        }
        auto it = names_.find(info.name);
        if (it == names_.end()) {
            errors_.push_back(std::make_unique<ParserError>(
                ParserCode::kINVALID_GRAPH,
                str("graph output '", info.name, "' is computed by no node"), __LINE__));
            continue;
        }
        NetworkTensor* t = it->second.tensor;
        if (t == nullptr) {
            auto layer = std::make_unique<InitializerLayer>(it->second.initializer);
            layer->name = info.name;
            t = network_.append(std::move(layer), {})->outputs[0].get();
            t->rename(info.name);
        }
        network_.markOutput(*t);
    }
}

} // namespace ingot::api
