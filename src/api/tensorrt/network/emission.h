// SPDX-License-Identifier: Apache-2.0
// Emission: one graph being filled from a network: the graph for type queries, an engine's graph,
// or the body of a loop or conditional.
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
        Types, // loops and conditionals are cut: their results are unknown values
        Build,
    };
    /// Additions to an engine's graph beside the layers' ops.
    struct Marks {
        /// Values have the names of their tensors.
        bool names = false;
        /// Fences (ops/fence.h) surround layers with set types.
        bool types = false;
        /// Constants of layers' weights have the weights' names.
        bool weights = false;
        /// Configures plugins and collects the engine's plugin data; null: not yet.
        PluginBuild* plugins = nullptr;
    };
    /// Fills the main graph.
    Emission(const Network& network, Purpose purpose, Graph& g);
    Emission(const Network& network, Purpose purpose, Graph& g, const Marks& marks);
    /// Fills the body of `place`. Values from elsewhere come from `outer` and become inputs of the
    /// body; constants are copied.
    Emission(Emission& outer, Graph& g, const void* place);
    /// Emits the layers of `place` again into the graph of `base`, with its own presets; other
    /// values are those of `base`.
    static Emission inside(Emission& base, const void* place);

    Graph& graph() { return g_; }
    Purpose purpose() const { return purpose_; }
    const Network& network() const { return network_; }
    const Marks& marks() const { return marks_; }
    /// An exception other than a layer's error was thrown (no memory): start anew.
    bool is_broken() const { return is_broken_; }
    /// Adds the main graph's constants and inputs in the importer's order.
    void begin();
    /// The value of a tensor; emits what it needs. Errors: those of the layers, with their names.
    Value value(const NetworkTensor& t);
    /// The value of an initializer of a parsed model.
    Value initializer(size_t index);
    /// Whether the tensor has a value already.
    bool has(const NetworkTensor& t) const { return values_.contains(&t); }
    /// Sets the value of a tensor in this graph.
    void preset(const NetworkTensor& t, Value v);
    /// Adds a layer's ops once. Keeps an error and throws it again each time.
    void emit(LayerBase& layer);
    /// An input of the type graph, for an unknown value.
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
    ops::Fences fences_; // around layers that keep their set types
    int64_t unknowns_ = 0;
};

/// The value of a network output in the type that setType() gave it; INT8 by the tensor's range.
Value as_seen_outside(Graph& g, const NetworkTensor& t, Value v);

} // namespace ingot::api
