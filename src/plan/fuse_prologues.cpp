// SPDX-License-Identifier: Apache-2.0
// fuse_prologues: a cast of a 16-bit float to f32 becomes part of the kernel that reads it, where
// the kernel widens what it loads anyway. The cast stays for other readers.
#include "ir/rewrite.h"
#include "ops/primitives.h"
#include "plan/kernel.h"
#include "plan/lowering.h"

namespace ingot::plan {

namespace {

/// What a map does no more to than widen, or an invalid value.
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
    Values outer;   // what they are in the graph around it
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

std::optional<Values> fuse_cast(const KernelSet& kernels, Rewriter& r, const Node& n,
                                std::span<const Value> in) {
    Graph& g = r.out();
    if (n.outputs.size() != 1 || !bodies(n).empty() != n.is(fused_def)) {
        return std::nullopt;
    }
    std::optional<Candidate> c = candidate(g, n, in);
    if (!c || !kernels.reads_casts(c->kernel)) {
        return std::nullopt;
    }
    Value narrow;
    Graph body = g.sibling("group");
    Values inputs;
    std::map<uint32_t, Value> inside;
    for (size_t i = 0; i < c->inputs.size(); ++i) {
        bool first = c->inputs[i] == c->operand;
        Value source = first ? widened(g, c->outer[i]) : Value{};
        narrow = source.valid() ? source : narrow;
        inputs.push_back(source.valid() ? source : c->outer[i]);
        inside[c->inputs[i].id] = body.add_input("", g.type(inputs.back()));
    }
    if (!narrow.valid()) {
        return std::nullopt;
    }
    Expr cast;
    cast.in(0, g.type(narrow).dtype);
    Value& operand = inside[c->operand.id];
    operand = body.add1(map_def, Map{cast, DType::F32}, {operand});
    for (const Node& node : c->nodes) {
        Values operands;
        for (Value v : node.inputs) {
            operands.push_back(inside.at(v.id));
        }
        body.set_origin(node.name);
        inside[node.outputs[0].id] = body.add(*node.def, node.attrs, operands)[0];
    }
    body.add_output("", inside.at(c->results[0].id));
    Group group{body, body.nodes(), body.inputs(), body.outputs()};
    if (kernels.find(c->kernel, group) == nullptr) {
        return std::nullopt;
    }
    return g.add(fused_def, Fused{c->kernel, std::make_shared<const Graph>(std::move(body))},
                 inputs);
}

} // namespace

Graph fuse_prologues(const Graph& g, const KernelSet& kernels) {
    return dead_code(rewrite_all(g, [&kernels](const Graph& part) {
        return rewrite(part, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
            return fuse_cast(kernels, r, n, in);
        });
    }));
}

} // namespace ingot::plan
