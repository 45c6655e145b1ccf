// SPDX-License-Identifier: Apache-2.0
// The graph of a network: queries for types and shapes, and the graph that an engine is built of.
#include "api/tensorrt/layers/control.h"
#include "api/tensorrt/network/network.h"
#include "api/tensorrt/plugin/tactics.h"

#include <algorithm>

namespace ingot::api {

// --- emission ------------------------------------------------------------------------------------

void Network::changed() const {
    if (is_reading()) {
        return;
    }
    emission_.reset();
    graph_.reset();
    places_.clear();
    next_ = 0;
}

Emission& Network::types() const {
    if (emission_ != nullptr && emission_->is_broken()) {
        changed();
    }
    if (emission_ == nullptr) {
        graph_ = std::make_unique<Graph>(name_);
        auto made = std::make_unique<Emission>(*this, Emission::Purpose::Types, *graph_);
        made->begin();
        emission_ = std::move(made);
    }
    return *emission_;
}

const Type& Network::type_of(const NetworkTensor& t) const {
    Emission& e = types();
    for (; t.producer() != nullptr && next_ <= t.producer()->position; ++next_) {
        try { // earlier layers first: the recursion stays flat
            e.emit(*layers_[next_]);
        } catch (const Error& error) { // thrown again when the layer is queried
            if (error.code() == ErrorCode::OutOfMemory) {
                throw;
            }
        }
    }
    return graph_->type(e.value(t));
}

std::optional<Type> Network::try_type_of(const NetworkTensor& t) const {
    try {
        return type_of(t);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::OutOfMemory) {
            throw;
        }
        return std::nullopt;
    }
}

Graph Network::build(const Emission::Marks& marks) const {
    require(!outputs_.empty() || !shape_outputs_.empty(), ErrorCode::InvalidArgument,
            "the network has no outputs; mark at least one tensor with markOutput()");
    Emission& all = types();
    for (const auto& layer : layers_) {
        all.emit(*layer);
    }
    bool plugins = marks.plugins != nullptr &&
                   std::any_of(layers_.begin(), layers_.end(), [](const auto& layer) {
                       return layer->type() == nv::LayerType::kPLUGIN_V2 ||
                              layer->type() == nv::LayerType::kPLUGIN_V3;
                   });
    bool sized = marks.plugins != nullptr && marks.plugins->profiles != nullptr &&
                 !marks.plugins->profiles->empty();
    bool anew =
        all.has_unknowns() || marks.names || marks.types || marks.weights || plugins || sized;
    Graph g = anew ? Graph(name_) : Graph(*graph_);
    std::unique_ptr<Emission> whole;
    if (anew) {
        whole = std::make_unique<Emission>(*this, Emission::Purpose::Build, g, marks);
        whole->begin();
        for (const auto& layer : layers_) {
            if (!layer->outputs.empty() && places_of(*layer->outputs[0]).empty()) {
                whole->emit(*layer);
            }
        }
    }
    auto add = [&](const NetworkTensor& t) {
        Value v = whole != nullptr ? whole->value(t) : all.value(t);
        const auto& names = g.output_names();
        require(std::find(names.begin(), names.end(), t.name()) == names.end(),
                ErrorCode::InvalidArgument, "two outputs have the name '", t.name(),
                "'; give one another with ITensor::setName()");
        require(t.producer() == nullptr || places_of(t).empty(), ErrorCode::InvalidArgument,
                "output ", t.quoted(),
                " lies inside a loop or conditional; lead it out by an output layer");
        g.add_output(t.name(), as_seen_outside(g, t, v));
    };
    for (const NetworkTensor* t : outputs_) {
        add(*t);
    }
    for (const NetworkTensor* t : shape_outputs_) {
        add(*t);
    }
    for (const NetworkTensor* t : debug_outputs()) {
        require(places_of(*t).empty(), ErrorCode::InvalidArgument, "debug tensor ", t->quoted(),
                " lies inside a loop or conditional: lead it out by an output layer, and mark "
                "that layer's output");
        const auto& names = g.output_names();
        require(std::find(names.begin(), names.end(), t->name()) == names.end(),
                ErrorCode::InvalidArgument, "debug tensor ", t->quoted(),
                " has the name of an output or of another debug tensor; give it another with "
                "ITensor::setName()");
        add(*t);
    }
    return g;
}

const Places& Network::places_of(const NetworkTensor& t) const {
    auto it = places_.find(&t);
    if (it != places_.end()) {
        return it->second;
    }
    Places places;
    const LayerBase* layer = t.producer();
    if (layer != nullptr) {
        places_.emplace(&t, Places()); // breaks the recursion of a cycle
        try {
            for (size_t i = 0; i < layer->inputs.size() && i < layer->forward_inputs(); ++i) {
                if (layer->inputs[i] != nullptr) {
                    const Places& from = places_of(*layer->inputs[i]);
                    places.insert(from.begin(), from.end());
                }
            }
            layer->cross(places);
        } catch (...) {
            places_.clear(); // results that were computed meanwhile may be wrong
            throw;
        }
    }
    return places_[&t] = std::move(places);
}

// --- shapes --------------------------------------------------------------------------------------

namespace {

// Tensors whose values are used as shapes.
std::set<const NetworkTensor*> shape_tensors(const Network& n) {
    std::vector<const NetworkTensor*> work(n.shape_outputs().begin(), n.shape_outputs().end());
    for (const auto& layer : n.layers()) {
        for (size_t i = 0; i < layer->inputs.size(); ++i) {
            if (layer->inputs[i] != nullptr && layer->reads_shape(i)) {
                work.push_back(layer->inputs[i]);
            }
        }
    }
    std::set<const NetworkTensor*> out;
    while (!work.empty()) {
        const NetworkTensor* t = work.back();
        work.pop_back();
        if (!out.insert(t).second || t->producer() == nullptr || !t->producer()->passes_shapes()) {
            continue;
        }
        for (const NetworkTensor* in : t->producer()->inputs) {
            if (in != nullptr) {
                work.push_back(in);
            }
        }
    }
    return out;
}

} // namespace

bool Network::is_shape(const NetworkTensor& t) const {
    return shape_tensors(*this).contains(&t);
}

bool Network::is_data(const NetworkTensor& t) const {
    if (std::find(outputs_.begin(), outputs_.end(), &t) != outputs_.end()) {
        return true;
    }
    std::set<const NetworkTensor*> shapes = shape_tensors(*this);
    for (const auto& layer : layers_) {
        for (size_t i = 0; i < layer->inputs.size(); ++i) {
            bool as_shape =
                layer->reads_shape(i) || (layer->passes_shapes() && !layer->outputs.empty() &&
                                          shapes.contains(layer->outputs[0].get()));
            if (layer->inputs[i] == &t && !as_shape) {
                return true;
            }
        }
    }
    return !shapes.contains(&t);
}

} // namespace ingot::api
