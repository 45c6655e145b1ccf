// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/emission.h"

#include "api/tensorrt/network/network.h"
#include "api/tensorrt/plugin/tactics.h"
#include "base/interrupt.h"
#include "ir/fixed_sizes.h"
#include "ops/ops.h"
#include "ops/support/capture.h"

#include <algorithm>

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
        preset(*network_.inputs()[i], g_.add_input(inputs[i].first, inputs[i].second));
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
