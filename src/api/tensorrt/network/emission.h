// SPDX-License-Identifier: Apache-2.0
// Emission: one graph being filled from a network: that which answers questions for types, that of
// an engine, or a body of a loop or conditional.
#pragma once

#include "api/tensorrt/network/layer.h"
#include "ir/profile.h"
#include "ops/fence.h"

#include <map>
#include <set>
#include <unordered_map>

namespace ingot::api {

struct PluginBuild;

class Emission {
public:
    enum class Purpose {
        Types, // loops and conditionals are cut: what comes out of a border is an unknown value
        Build,
    };
    /// What an engine's graph has beyond the layers' ops.
    struct Marks {
        /// Values have the names of their tensors.
        bool names = false;
        /// Layers whose types are set stand between fences (ops/fence.h).
        bool types = false;
        /// Constants of layers' weights have the weights' names.
        bool weights = false;
        /// Plugins are configured, and say what the engine has to hold; null: not yet.
        PluginBuild* plugins = nullptr;
    };
    /// Fills the main graph.
    Emission(const Network& network, Purpose purpose, Graph& g);
    Emission(const Network& network, Purpose purpose, Graph& g, const Marks& marks);
    /// Fills a body whose inside is `place`: what lies elsewhere is taken from `outer` and becomes
    /// an input of the body. Constants are repeated.
    Emission(Emission& outer, Graph& g, const void* place);
    /// Computes what lies in `place` in the graph of `base`, once more where it has been, with
    /// presets of its own; what lies elsewhere is as in `base`.
    static Emission inside(Emission& base, const void* place);

    Graph& graph() { return g_; }
    Purpose purpose() const { return purpose_; }
    const Network& network() const { return network_; }
    const Marks& marks() const { return marks_; }
    /// Something else than an error of a layer was thrown (no memory): start anew.
    bool is_broken() const { return is_broken_; }
    /// The main graph's constants and inputs, in the order in which the importer would add them.
    void begin();
    /// The value of a tensor; emits what it needs. Errors: those of the layers, with their names.
    Value value(const NetworkTensor& t);
    /// The value of an initializer of a parsed model.
    Value initializer(size_t index);
    /// Whether it is known already.
    bool has(const NetworkTensor& t) const { return values_.contains(&t); }
    /// Says what a tensor is in this graph.
    void preset(const NetworkTensor& t, Value v);
    /// Adds a layer's ops unless that has been done. Errors are kept, and thrown each time.
    void emit(LayerBase& layer);
    /// An input of the type graph that stands for something unknown.
    Value unknown(const Type& t);
    bool has_unknowns() const { return unknowns_ > 0; }

    /// Outer values that became inputs of this body, in order.
    struct Capture {
        const NetworkTensor* tensor;
        Value outer;
    };
    const std::vector<Capture>& captures() const { return captures_; }
    /// Makes the outer value of a tensor an input of the body, if it is not one yet.
    Value capture(const NetworkTensor& t);

private:
    Emission(const Network& network, Purpose purpose, Graph& g, const Marks& marks, Emission* outer,
             const void* place)
        : network_(network), purpose_(purpose), marks_(marks), g_(g), outer_(outer), place_(place) {
    }
    void emit_now(LayerBase& layer);

    const Network& network_;
    Purpose purpose_;
    Marks marks_;
    Graph& g_;
    Emission* outer_ = nullptr;
    const void* place_ = nullptr;
    bool shares_graph_ = false; // with outer_
    bool is_broken_ = false;
    std::unordered_map<const NetworkTensor*, Value> values_;
    std::map<size_t, Value> initializers_;
    std::map<const LayerBase*, std::optional<Error>> emitted_;
    std::vector<Capture> captures_;
    ops::Fences fences_; // around layers that keep their types
    int64_t unknowns_ = 0;
};

} // namespace ingot::api
