// SPDX-License-Identifier: Apache-2.0
// Fusion: maps into maps by substitution of expressions, maps into the kernels before them.
#include "base/log.h"
#include "ir/rewrite.h"
#include "ops/primitives.h"
#include "plan/kernel.h"
#include "plan/lowering.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr size_t most_inputs = 16;
constexpr size_t most_instructions = 160;

/// The map that computes v in the new graph, or null.
const Node* map_of(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    return p != nullptr && p->is(map_def) ? p : nullptr;
}

/// Collects the operands of a fused map; equal ones are shared.
struct MapBuilder {
    const Graph& g;
    Expr body;
    Values inputs;

    int input(Value v) {
        auto it = std::find(inputs.begin(), inputs.end(), v);
        auto index = static_cast<int>(it - inputs.begin());
        if (it == inputs.end()) {
            inputs.push_back(v);
        }
        return body.in(index, g.type(v).dtype);
    }

    /// The result of a map as its reader sees it: rounded as the store would have done.
    int inline_map(const Node& map) {
        std::vector<int> at;
        for (Value v : map.inputs) {
            at.push_back(input(v));
        }
        int result = body.inline_expr(map.as<Map>().body, at);
        DType stored = map.as<Map>().dtype;
        return compute_type(stored) == stored ? result : body.cast(result, stored);
    }
};

std::optional<Values> fuse_into_map(Rewriter& r, const Node& n, std::span<const Value> in,
                                    std::span<const uint32_t> uses) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    const Graph& g = r.out();
    const Dims& dims = r.mapped(r.from().type(n.outputs[0]).dims);
    MapBuilder b{g, {}, {}};
    std::vector<int> at;
    bool any = false;
    size_t budget = most_instructions;
    size_t operands = in.size();
    for (size_t i = 0; i < in.size(); ++i) {
        const Node* p = map_of(g, in[i]);
        auto occurrences =
            static_cast<uint32_t>(std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]));
        bool fuses = p != nullptr && uses[n.inputs[i].id] == occurrences &&
                     g.type(in[i]).dims == dims && p->as<Map>().body.code.size() < budget &&
                     operands + p->inputs.size() <= most_inputs;
        if (fuses) {
            budget -= p->as<Map>().body.code.size();
            operands += p->inputs.size();
            at.push_back(b.inline_map(*p));
            any = true;
        } else {
            at.push_back(b.input(in[i]));
        }
    }
    const auto& map = n.as<Map>();
    if (!any || map.body.code.size() > budget) {
        return std::nullopt;
    }
    int result = b.body.inline_expr(map.body, at);
    if (static_cast<size_t>(result) + 1 != b.body.code.size()) {
        return std::nullopt; // the result is a shared earlier instruction
    }
    return Values{r.out().add1(map_def, Map{b.body, map.dtype}, b.inputs)};
}

/// A body with the producer and, after it, the map; `inputs` gets the operands.
GraphRef group_body(const Graph& g, const Node& producer, const Node& map,
                    std::span<const Value> map_in, Value result, Values& inputs) {
    Graph body = g.sibling("group");
    std::vector<std::pair<Value, Value>> inside;
    auto input = [&](Value v) {
        for (const auto& [outer, inner] : inside) {
            if (outer == v) {
                return inner;
            }
        }
        Value inner = body.add_input("", g.type(v));
        inside.emplace_back(v, inner);
        inputs.push_back(v);
        return inner;
    };
    Values in;
    for (Value v : producer.inputs) {
        in.push_back(input(v));
    }
    body.set_origin(producer.name);
    Values results = body.add(*producer.def, producer.attrs, in);
    in.clear();
    for (Value v : map_in) {
        in.push_back(v == result ? results[0] : input(v));
    }
    body.set_origin(map.name);
    body.add_output("", body.add(*map.def, map.attrs, in)[0]);
    return std::make_shared<const Graph>(std::move(body));
}

std::optional<Values> fuse_epilogue(const KernelSet& kernels, Rewriter& r, const Node& n,
                                    std::span<const Value> in, std::span<const uint32_t> uses) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    // The operand that is computed last waits least for the others.
    std::vector<size_t> candidates(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        candidates[i] = i;
    }
    std::sort(candidates.begin(), candidates.end(),
              [&in](size_t a, size_t b) { return in[b] < in[a]; });
    for (size_t i : candidates) {
        const Node* p = r.out().producer(in[i]);
        auto occurrences =
            static_cast<uint32_t>(std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]));
        if (p == nullptr || p->is(map_def) || p->is(constant_def) || p->outputs.size() != 1 ||
            uses[n.inputs[i].id] != occurrences) {
            continue;
        }
        Values inputs;
        GraphRef body = group_body(r.out(), *p, n, in, in[i], inputs);
        Group group{*body, body->nodes(), body->inputs(), body->outputs()};
        std::string reason = "no kernel of that name";
        if (kernels.find(p->def->name, group, &reason) == nullptr) {
            log(LogLevel::Verbose, kernels.backend, ": '", n.name, "' stays apart from '", p->name,
                "' (", p->def->name, "): ", reason);
            continue;
        }
        std::string kernel(p->def->name);
        std::string origin = p->name == n.name ? n.name : p->name + " + " + n.name;
        r.out().set_origin(std::move(origin));
        return r.out().add(fused_def, Fused{std::move(kernel), body}, inputs);
    }
    return std::nullopt;
}

template <class Rule>
Graph fuse_with(const Graph& g, const Rule& rule) {
    return rewrite_all(g, [&rule](const Graph& part) {
        std::vector<uint32_t> uses = use_counts(part);
        return rewrite(part, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
            return rule(r, n, in, uses);
        });
    });
}

} // namespace

Graph fuse_maps(const Graph& g) {
    return dead_code(fuse_with(g, fuse_into_map));
}

Graph fuse_epilogues(const Graph& g, const KernelSet& kernels) {
    return dead_code(fuse_with(g, [&kernels](Rewriter& r, const Node& n, std::span<const Value> in,
                                             std::span<const uint32_t> uses) {
        return fuse_epilogue(kernels, r, n, in, uses);
    }));
}

} // namespace ingot::plan
