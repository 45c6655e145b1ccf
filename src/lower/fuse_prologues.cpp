// SPDX-License-Identifier: Apache-2.0
// fuse_prologues: a cast of a 16-bit float to f32 becomes part of the kernel that reads it, where
// the kernel widens its operand on loading. The cast stays for other readers. A norm of possibly
// few rows becomes part of the only product that reads it.
#include "ir/rewrite.h"
#include "lower/few_rows.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "plan/kernel.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// The operand of a map that only widens it, or an invalid value.
Value widened(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    bool casts = p != nullptr && p->is(map_def) && p->inputs.size() == 1 &&
                 p->as<Map>().body.code.size() == 1 && p->as<Map>().dtype == DType::F32;
    if (!casts) {
        return {};
    }
    DType from = g.type(p->inputs[0]).dtype;
    return from == DType::F16 || from == DType::BF16 ? p->inputs[0] : Value{};
}

struct Candidate {
    std::string kernel;
    std::vector<Node> nodes; // of `graph`
    const Graph* graph;
    Values inputs;  // of `graph`
    Values outer;   // their counterparts in the outer graph
    Value operand;  // the main node's first operand, in `graph`
    Values results; // of `graph`
};

/// The node as a group, if its first operand comes from outside.
std::optional<Candidate> candidate(const Graph& g, const Node& n, std::span<const Value> in) {
    Candidate c;
    if (n.is(fused_def)) {
        const auto& fused = n.as<Fused>();
        c.kernel = fused.kernel;
        c.graph = fused.body.get();
        c.nodes.assign(c.graph->nodes().begin(), c.graph->nodes().end());
        c.inputs.assign(c.graph->inputs().begin(), c.graph->inputs().end());
        c.results.assign(c.graph->outputs().begin(), c.graph->outputs().end());
    } else {
        c.kernel = std::string(n.def->name);
        c.graph = &g;
        c.nodes.push_back(n);
        c.nodes[0].inputs.assign(in.begin(), in.end());
        c.inputs = c.nodes[0].inputs;
        c.results = n.outputs;
    }
    c.outer.assign(in.begin(), in.end());
    if (c.nodes[0].inputs.empty()) {
        return std::nullopt;
    }
    c.operand = c.nodes[0].inputs[0];
    return c;
}

/// The candidate's nodes behind those in `body`, as one node of `g`, if a kernel runs them.
/// `inside` maps the candidate's values to `body`.
std::optional<Values> fused(const KernelSet& kernels, Graph& g, const Candidate& c, Graph body,
                            std::map<uint32_t, Value> inside, const Values& inputs) {
    append_nodes(body, c.nodes, inside);
    body.add_output("", inside.at(c.results[0].id));
    Group group{body, body.nodes(), body.inputs(), body.outputs()};
    if (kernels.find(c.kernel, group) == nullptr) {
        return std::nullopt;
    }
    return g.add(fused_def, Fused{c.kernel, std::make_shared<const Graph>(std::move(body))},
                 inputs);
}

std::optional<Values> fuse_cast(const KernelSet& kernels, Graph& g, const Candidate& c) {
    if (!kernels.reads_casts(c.kernel)) {
        return std::nullopt;
    }
    Value narrow;
    Graph body = g.sibling("group");
    Values inputs;
    std::map<uint32_t, Value> inside;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
        bool first = c.inputs[i] == c.operand;
        Value source = first ? widened(g, c.outer[i]) : Value{};
        narrow = source.valid() ? source : narrow;
        inputs.push_back(source.valid() ? source : c.outer[i]);
        inside[c.inputs[i].id] = body.add_input("", g.type(inputs.back()));
    }
    if (!narrow.valid()) {
        return std::nullopt;
    }
    Expr cast;
    cast.in(0, g.type(narrow).dtype);
    Value& operand = inside[c.operand.id];
    operand = body.add1(map_def, Map{cast, DType::F32}, {operand});
    return fused(kernels, g, c, std::move(body), std::move(inside), inputs);
}

std::optional<Values> fuse_norm(const KernelSet& kernels, Graph& g, const Candidate& c) {
    auto at = std::find(c.inputs.begin(), c.inputs.end(), c.operand);
    bool product = c.nodes[0].is(dot_def) || c.nodes[0].is(ops::quantized_dot_def);
    if (!product || at == c.inputs.end()) {
        return std::nullopt;
    }
    Value result = c.outer[static_cast<size_t>(at - c.inputs.begin())];
    const Node* norm = g.producer(result);
    if (norm == nullptr || !norm->is(ops::layer_norm_def) || !may_have_few_rows(g.type(result))) {
        return std::nullopt;
    }
    Graph body = g.sibling("group");
    GroupInputs inputs(body, g);
    Values operands;
    for (Value v : norm->inputs) {
        operands.push_back(inputs.of(v));
    }
    std::map<uint32_t, Value> inside;
    body.set_origin(norm->name);
    inside[c.operand.id] = body.add(*norm->def, norm->attrs, operands)[0];
    for (size_t i = 0; i < c.inputs.size(); ++i) {
        if (c.inputs[i] != c.operand) {
            inside[c.inputs[i].id] = inputs.of(c.outer[i]);
        }
    }
    return fused(kernels, g, c, std::move(body), std::move(inside), inputs.values());
}

/// The number of reads of each value, as a graph output too.
std::map<uint32_t, int> readers_of(const Graph& g) {
    std::map<uint32_t, int> readers;
    for (const Node& n : g.nodes()) {
        for (Value v : n.inputs) {
            ++readers[v.id];
        }
    }
    for (Value v : g.outputs()) {
        ++readers[v.id];
    }
    return readers;
}

Graph fused(const Graph& g, const KernelSet& kernels) {
    std::map<uint32_t, int> readers = readers_of(g);
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value> in) -> std::optional<Values> {
            bool group = n.is(fused_def);
            if (n.outputs.size() != 1 || !bodies(n).empty() != group || n.inputs.empty()) {
                return std::nullopt;
            }
            std::optional<Candidate> c = candidate(r.out(), n, in);
            if (!c) {
                return std::nullopt;
            }
            if (auto cast = fuse_cast(kernels, r.out(), *c)) {
                return cast;
            }
            auto at = std::find(c->inputs.begin(), c->inputs.end(), c->operand);
            bool alone = at != c->inputs.end() &&
                         readers[n.inputs[static_cast<size_t>(at - c->inputs.begin())].id] == 1;
            return alone ? fuse_norm(kernels, r.out(), *c) : std::nullopt;
        }));
}

} // namespace

Pass fuse_prologues(const KernelSet& kernels) {
    return {
        .name = "fuse_prologues",
        .summary = "casts and norms become part of the kernels that read them",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
        .structural = true,
    };
}

} // namespace ingot::plan
