// SPDX-License-Identifier: Apache-2.0
// sink_constants: constants captured by if and loop move into the bodies, where kernels can pack
// them once. Tensors share their bytes, so nothing is copied.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/primitives.h"

namespace ingot::plan {

namespace {

/// The body with inputs replaced by the tensors in `constants`.
GraphRef bind_inputs(const Graph& body, std::span<const Tensor* const> constants) {
    Graph out = body.sibling(body.name());
    Values map(body.value_count());
    for (size_t i = 0; i < constants.size(); ++i) {
        Value v = body.inputs()[i];
        if (constants[i] == nullptr) {
            map[v.id] = out.add_input(body.value_name(v), body.type(v));
            if (HostRef host = body.host(v)) {
                out.set_host(map[v.id], host);
            }
        } else {
            map[v.id] = out.add1(constant_def, Constant{*constants[i]}, {});
        }
    }
    for (const Node& n : body.nodes()) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(map[v.id]);
        }
        out.set_origin(n.name);
        Values results = out.add(*n.def, n.attrs, in);
        for (size_t i = 0; i < results.size(); ++i) {
            map[n.outputs[i].id] = results[i];
            out.set_value_name(results[i], body.value_name(n.outputs[i]));
        }
    }
    for (size_t i = 0; i < body.outputs().size(); ++i) {
        out.add_output(body.output_names()[i], map[body.outputs()[i].id]);
    }
    return std::make_shared<const Graph>(std::move(out));
}

std::optional<Values> sink(Rewriter& r, const Node& n, std::span<const Value> in) {
    bool is_if = n.is(if_def);
    if (!is_if && !n.is(loop_def)) {
        return std::nullopt;
    }
    // Both bodies of an if take the inputs after the condition; a loop's body takes all inputs.
    size_t skipped = is_if ? 1 : 0;
    size_t first = is_if ? 1 : 2 + static_cast<size_t>(n.as<Loop>().carried);
    std::vector<const Tensor*> constants(in.size() - skipped, nullptr);
    Values kept(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(first));
    bool any = false;
    for (size_t i = first; i < in.size(); ++i) {
        constants[i - skipped] = r.out().constant(in[i]);
        if (constants[i - skipped] == nullptr) {
            kept.push_back(in[i]);
        }
        any = any || constants[i - skipped] != nullptr;
    }
    if (!any) {
        return std::nullopt;
    }
    AttrMap map;
    map.body = [&](const GraphRef& body) { return bind_inputs(*body, constants); };
    return r.out().add(*n.def, map_attrs(*n.def, n.attrs.get(), map), kept);
}

Graph sunk(const Graph& g) {
    // Outer graphs first: a constant may sink through several bodies.
    return rewrite_bodies(rewrite(g, sink), sunk);
}

} // namespace

Pass sink_constants(const KernelSet&) {
    return {
        .name = "sink_constants",
        .summary = "constants that bodies capture move into them",
        .run = [](const Graph& g, const PassOptions&) { return sunk(g); },
        .structural = true,
        .handles_bodies = true,
    };
}

} // namespace ingot::plan
