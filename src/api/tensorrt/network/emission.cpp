// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/emission.h"

#include "api/tensorrt/network/network.h"
#include "api/tensorrt/plugin/tactics.h"
#include "base/interrupt.h"
#include "ir/fixed_sizes.h"
#include "ops/ops.h"
#include "ops/support/capture.h"

#include <algorithm>
#include <cmath>

namespace ingot::api {

Emission::Emission(const Network& network, Purpose purpose, Graph& g)
    : Emission(network, purpose, g, Marks()) {}

Emission::Emission(const Network& network, Purpose purpose, Graph& g, const Marks& marks)
    : Emission(network, purpose, g, marks, nullptr, nullptr) {}

Emission::Emission(Emission& outer, Graph& g, const void* place)
    : Emission(outer.network_, outer.purpose_, g, outer.marks_, &outer, place) {}

Emission Emission::inside(Emission& base, const void* place) {
    Emission e(base.network_, base.purpose_, base.g_, base.marks_, &base, place);
    e.shares_graph_ = true;
    return e;
}

static float int8_scale(const NetworkTensor& t) {
    float most = std::max(std::abs(t.getDynamicRangeMin()), std::abs(t.getDynamicRangeMax()));
    return t.dynamicRangeIsSet() && most > 0 ? most / 127 : 1;
}

/// The value of an input in the type that its layers see. INT8 stands for numbers by its range.
static Value as_seen_inside(Graph& g, const NetworkTensor& t, Value v) {
    if (!t.cast_type) {
        return v;
    }
    Value wide = ops::cast(g, v, dtype_of(*t.cast_type));
    float scale = t.declared_type == nv::DataType::kINT8 ? int8_scale(t) : 1;
    return scale == 1 ? wide : ops::binary(g, ExprOp::Mul, wide, static_cast<double>(scale));
}

Value as_seen_outside(Graph& g, const NetworkTensor& t, Value v) {
    if (!t.cast_type || t.isNetworkInput()) {
        return v;
    }
    DType to = dtype_of(*t.cast_type);
    if (to != DType::I8 || !is_float(g.type(v).dtype) || !t.dynamicRangeIsSet()) {
        return ops::cast(g, v, to);
    }
    Value steps = ops::binary(g, ExprOp::Div, v, static_cast<double>(int8_scale(t)));
    Value whole = ops::unary(g, ExprOp::Round, steps);
    Value low = ops::binary(g, ExprOp::Max, whole, -128.0);
    return ops::cast(g, ops::binary(g, ExprOp::Min, low, 127.0), to);
}

void Emission::begin() {
    const auto& all = network_.initializers();
    for (size_t i = 0; i < all.size(); ++i) {
        g_.set_origin(all[i].name);
        Value v = ops::constant(g_, all[i].tensor);
        g_.set_value_name(v, all[i].name);
        initializers_.emplace(i, v);
    }
    std::vector<NamedType> inputs;
    for (const auto& t : network_.inputs()) {
        inputs.emplace_back(t->name(), t->input_type());
    }
    if (marks_.plugins != nullptr && marks_.plugins->profiles != nullptr) {
        inputs = with_fixed_sizes(std::move(inputs), *marks_.plugins->profiles);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        const NetworkTensor& t = *network_.inputs()[i];
        preset(t, as_seen_inside(g_, t, g_.add_input(inputs[i].first, inputs[i].second)));
    }
}

void Emission::preset(const NetworkTensor& t, Value v) {
    values_[&t] = v;
    if (marks_.names && g_.value_name(v).empty()) {
        g_.set_value_name(v, t.name());
    }
}

Value Emission::initializer(size_t index) {
    auto it = initializers_.find(index);
    if (it != initializers_.end()) {
        return it->second;
    }
    if (shares_graph_) {
        return outer_->initializer(index);
    }
    const Network::Initializer& from = network_.initializers()[index];
    Value v = ops::constant(g_, from.tensor);
    g_.set_value_name(v, from.name);
    initializers_.emplace(index, v);
    return v;
}

Value Emission::capture(const NetworkTensor& t) {
    auto it = values_.find(&t);
    if (it != values_.end()) {
        return it->second;
    }
    Value outer = outer_->value(t);
    Value v = outer;
    if (!shares_graph_) {
        ops::Captured c = ops::capture(g_, outer_->g_, outer, t.name());
        v = c.inside;
        if (c.is_input) {
            captures_.push_back({&t, outer});
        }
    }
    values_.emplace(&t, v);
    return v;
}

Value Emission::value(const NetworkTensor& t) {
    auto it = values_.find(&t);
    if (it != values_.end()) {
        return it->second;
    }
    if (outer_ != nullptr && !network_.places_of(t).contains(place_)) {
        return capture(t);
    }
    CHECK(t.producer() != nullptr, "an input without a value");
    emit(*t.producer());
    return values_.at(&t);
}

void Emission::emit(LayerBase& layer) {
    if (!layer.outputs.empty() && values_.contains(layer.outputs[0].get())) {
        return;
    }
    auto [it, fresh] = emitted_.emplace(&layer, std::nullopt);
    if (!fresh) {
        if (it->second) {
            throw Error(*it->second);
        }
        require(layer.outputs.empty(), ErrorCode::InvalidArgument, layer.described(),
                ": depends on its own result");
        return;
    }
    try {
        emit_now(layer);
    } catch (const Error& e) {
        is_broken_ = true; // until it is noted; a later attempt may have memory
        if (e.code() != ErrorCode::OutOfMemory) {
            emitted_[&layer] = e;
            is_broken_ = false;
        }
        throw;
    } catch (...) {
        is_broken_ = true;
        throw;
    }
}

namespace {

/// By its precision or, where none is set, by a result's type.
bool computes_in_float(const LayerBase& layer) {
    return layer.precision ? layer.precision == nv::DataType::kFLOAT
                           : std::any_of(layer.output_types.begin(), layer.output_types.end(),
                                         [](const auto& t) { return t == nv::DataType::kFLOAT; });
}

} // namespace

void Emission::emit_now(LayerBase& layer) {
    check_interrupt();
    if (purpose_ == Purpose::Build && layer.close(*this)) {
        return;
    }
    Values in(layer.inputs.size());
    InputTypes types(layer.inputs.size());
    bool fenced = marks_.types && computes_in_float(layer);
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        if (layer.inputs[i] != nullptr && i < layer.forward_inputs()) {
            Value v = value(*layer.inputs[i]);
            in[i] = fenced ? fences_.enter(g_, v) : v;
            types[i] = g_.type(in[i]);
        }
    }
    Values out =
        with_place([&] { return layer.described(); },
                   [&] { return layer.compute(Emitter(*this, g_, layer, std::move(in)), types); });
    CHECK(out.size() >= layer.outputs.size(), "layer ", layer.name, " has too few results");
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
        if (layer.output_types[i]) {
            out[i] = ops::cast(g_, out[i], dtype_of(*layer.output_types[i]));
        }
        out[i] = fenced ? fences_.leave(g_, out[i]) : out[i];
        preset(*layer.outputs[i], out[i]);
    }
}

Value Emission::unknown(const Type& t) {
    return g_.add_input(str("unknown ", unknowns_++), t);
}

} // namespace ingot::api
