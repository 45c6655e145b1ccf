// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/layer.h"

#include "api/tensorrt/network/network.h"
#include "api/tensorrt/network/weight_names.h"
#include "api/tensorrt/parser/parsed_op.h"
#include "onnx/import_node.h"

#include <algorithm>

namespace ingot::api {

namespace {

constexpr int64_t opset = 24;

const onnx::Model& operators() {
    static const onnx::Model m = [] {
        onnx::Model model;
        model.opset_imports[""] = opset;
        return model;
    }();
    return m;
}

onnx::Attribute named(std::string_view name, onnx::AttributeType type) {
    onnx::Attribute a;
    a.name = std::string(name);
    a.type = type;
    return a;
}

} // namespace

onnx::Attribute attribute(std::string_view name, int64_t v) {
    onnx::Attribute a = named(name, onnx::AttributeType::Int);
    a.i = v;
    return a;
}

onnx::Attribute attribute(std::string_view name, double v) {
    onnx::Attribute a = named(name, onnx::AttributeType::Float);
    a.f = static_cast<float>(v);
    return a;
}

onnx::Attribute attribute(std::string_view name, std::string v) {
    onnx::Attribute a = named(name, onnx::AttributeType::String);
    a.s = std::move(v);
    return a;
}

onnx::Attribute attribute(std::string_view name, std::vector<int64_t> v) {
    onnx::Attribute a = named(name, onnx::AttributeType::Ints);
    a.ints = std::move(v);
    return a;
}

Value Emitter::weights(const nv::Weights& w, Shape shape, std::string_view what) const {
    if (std::optional<size_t> index = emission.network().initializer_of(w)) {
        Value same = emission.initializer(*index);
        require(count_of(shape) == w.count, ErrorCode::InvalidArgument, what, " are ", w.count,
                " elements, expected ", count_of(shape), " for ", shape);
        return g.type(same).dims == to_dims(shape) ? same : ops::reshape(g, same, to_dims(shape));
    }
    Value v = ops::constant(g, weights_tensor(w, std::move(shape), what));
    if (emission.marks().weights) {
        g.set_value_name(v, weights_name(layer, w, what));
    }
    return v;
}

std::vector<int64_t> Emitter::constant_ints(size_t i) const {
    std::vector<int64_t> out;
    if (const Tensor* t = g.constant(in[i])) {
        for (int64_t k = 0; k < t->count(); ++k) {
            out.push_back(t->get_i64(k));
        }
        return out;
    }
    auto known = ops::known_dims(g, in[i]);
    std::optional<Shape> fixed = known ? as_const(*known) : std::nullopt;
    require(fixed.has_value(), ErrorCode::InvalidArgument, "input ", i, " ",
            layer.inputs[i]->quoted(), " must be a constant; it is computed at run time");
    return *fixed;
}

Values Emitter::onnx(std::string_view op, std::span<const Value> inputs,
                     std::vector<onnx::Attribute> attributes, size_t outputs) const {
    onnx::Node node;
    node.op_type = std::string(op);
    node.name = layer.name;
    node.attributes = std::move(attributes);
    std::unordered_map<std::string, Value> names;
    for (size_t i = 0; i < inputs.size(); ++i) {
        std::string name = inputs[i].valid() ? str("input ", i) : std::string();
        node.inputs.push_back(name);
        if (inputs[i].valid()) {
            names.emplace(name, inputs[i]);
        }
    }
    for (size_t i = 0; i < outputs; ++i) {
        node.outputs.push_back(str("output ", i));
    }
    return onnx::import_node(operators(), g, node, 0, std::move(names));
}

Value Emitter::onnx1(std::string_view op, std::initializer_list<Value> inputs,
                     std::vector<onnx::Attribute> attributes) const {
    return onnx(op, std::span(inputs.begin(), inputs.size()), std::move(attributes))[0];
}

std::string LayerBase::described() const {
    return str("layer '", name, "' (", kind(), ")");
}

std::string LayerBase::kind() const {
    return std::string(kind_.name);
}

Values LayerBase::compute(const Emitter& e, const InputTypes& in) {
    require(rank_count == 1 || spans_ranks(), ErrorCode::Unsupported, "setNbRanks() says ",
            rank_count,
            " GPUs, and the layer runs on one: give each rank its part of the weights, "
            "and combine their results by addDistCollective()");
    if (parsed != nullptr) {
        return parsed->emit(e);
    }
    check(in);
    e.g.set_origin(name);
    return emit(e);
}

void LayerBase::require_free() const {
    require(settles == nullptr, ErrorCode::InvalidArgument, "its value has become a setting of ",
            settles == nullptr ? "" : settles->described(), "; change that one");
}

void LayerBase::require_settable() {
    if (parsed == nullptr || network().is_reading()) {
        return;
    }
    Emission& types = network().types();
    try {
        Values in(inputs.size());
        InputTypes known(inputs.size());
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i] != nullptr) {
                in[i] = types.value(*inputs[i]);
                known[i] = types.graph().type(in[i]);
            }
        }
        check(known);
        Values made = emit(Emitter(types, types.graph(), *this, std::move(in)));
        for (size_t i = 0; i < outputs.size(); ++i) {
            Type is = network().type_of(*outputs[i]);
            Type would_be = types.graph().type(made.at(i));
            require(output_types[i] || (is.dtype == would_be.dtype && is.rank() == would_be.rank()),
                    ErrorCode::Unsupported, "output ", i, " is ", is, ", but would be ", would_be);
        }
    } catch (const Error& e) {
        network().changed(); // undoes the trial
        fail(ErrorCode::Unsupported,
             "it runs a node of the model, and its settings cannot express that node: ",
             e.message(), "; leave it as it is, or add layers in its place");
    }
    network().changed();
}

void LayerBase::leave_model() noexcept {
    if (!network().is_reading()) {
        parsed.reset();
    }
}

void LayerBase::attach(Network& network, size_t at, std::vector<NetworkTensor*> in) {
    network_ = &network;
    position = at;
    inputs = std::move(in);
    if (name.empty()) {
        name = str("(Unnamed Layer* ", at, ") [", kind_.name, "]");
    }
    for (size_t i = 0; i < output_count_; ++i) {
        outputs.push_back(std::make_unique<NetworkTensor>(
            network, this, i == 0 ? name + "_output" : str(name, "_output_", i)));
    }
    output_types.resize(output_count_);
}

void LayerBase::set_name(const char* text) noexcept {
    adjust("ILayer::setName", [&] {
        require(text != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        name = text;
    });
}

void LayerBase::set_input(int32_t i, nv::ITensor& tensor) noexcept {
    adjust("ILayer::setInput", [&] {
        require_free();
        size_t limit = input_limit();
        require(i >= 0 && static_cast<size_t>(i) < limit, ErrorCode::InvalidArgument, "index ", i,
                " is out of range: it has ", limit, limit == 1 ? " input" : " inputs");
        auto at = static_cast<size_t>(i);
        NetworkTensor* t = &network().ours(tensor, str("input ", i));
        std::vector<NetworkTensor*> before = inputs;
        inputs.resize(std::max(inputs.size(), at + 1), nullptr);
        inputs[at] = t;
        network().changed();
        if (parsed != nullptr && !parsed->reads(at)) {
            leave_model();
        }
        if (parsed == nullptr && at < forward_inputs() && t->producer() != this) {
            InputTypes types(inputs.size());
            try {
                types[at] = network().try_type_of(*t);
                check(types);
            } catch (...) {
                inputs = std::move(before);
                throw;
            }
        }
    });
}

nv::ITensor* LayerBase::input(int32_t i) const noexcept {
    return i >= 0 && static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)]
                                                            : nullptr;
}

nv::ITensor* LayerBase::output(int32_t i) const noexcept {
    return i >= 0 && static_cast<size_t>(i) < outputs.size() ? outputs[static_cast<size_t>(i)].get()
                                                             : nullptr;
}

nv::DataType LayerBase::output_type(int32_t i) const noexcept {
    return network().report().guard("ILayer::getOutputType", nv::DataType::kFLOAT, [&] {
        const nv::ITensor* t = output(i);
        require(t != nullptr, ErrorCode::InvalidArgument, described(), ": index ", i,
                " is out of range: it has ", outputs.size(),
                outputs.size() == 1 ? " output" : " outputs");
        return t->getType();
    });
}

void LayerBase::set_metadata(const char* text) noexcept {
    adjust("ILayer::setMetadata", [&] {
        require(text != nullptr, ErrorCode::InvalidArgument, "metadata is nullptr");
        metadata = text;
    });
}

bool LayerBase::set_rank_count(int32_t n) noexcept {
    return adjust("ILayer::setNbRanks", [&] {
        require(n >= 1, ErrorCode::InvalidArgument, "nbRanks is ", n, ", expected 1 or more");
        rank_count = n;
    });
}

void LayerBase::set_precision(nv::DataType t) noexcept {
    adjust("ILayer::setPrecision", [&] {
        require(!network().getFlag(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED),
                ErrorCode::InvalidArgument,
                "the network is strongly typed: a layer computes in the types of its inputs; add a "
                "cast layer");
        dtype_of(t);
        precision = t;
    });
}

void LayerBase::set_output_type(int32_t i, nv::DataType t) noexcept {
    adjust("ILayer::setOutputType", [&] {
        require(output(i) != nullptr, ErrorCode::InvalidArgument, "index ", i,
                " is out of range: it has ", outputs.size(),
                outputs.size() == 1 ? " output" : " outputs");
        dtype_of(t);
        output_types[static_cast<size_t>(i)] = t;
    });
}

bool LayerBase::output_type_is_set(int32_t i) const noexcept {
    return output(i) != nullptr && output_types[static_cast<size_t>(i)].has_value();
}

void LayerBase::reset_output_type(int32_t i) noexcept {
    if (output(i) != nullptr) {
        output_types[static_cast<size_t>(i)].reset();
        network().changed();
    }
}

} // namespace ingot::api
