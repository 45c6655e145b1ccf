// SPDX-License-Identifier: Apache-2.0
// fuse_moves: reshapes and permutes before and behind a roll become part of its kernel, so that it
// reads and writes in the order that its neighbours want instead of a copy beside it.
#include "base/log.h"
#include "ir/rewrite.h"
#include "ops/primitives.h"
#include "ops/roll.h"
#include "plan/kernel.h"
#include "plan/lowering.h"

#include <algorithm>

namespace ingot::plan {

namespace {

constexpr size_t longest_chain = 6;

bool is_move(const Node& n) {
    return n.is(reshape_def) || n.is(permute_def);
}

bool is_roll(const Node& n) {
    return n.is(ops::roll_def) || (n.is(fused_def) && n.as<Fused>().kernel == ops::roll_def.name);
}

/// The value that a roll, or a group around one, moves.
Value source_of(const Graph& g, const Node& n) {
    if (!n.is(fused_def)) {
        return n.inputs[0];
    }
    const Graph& body = *n.as<Fused>().body;
    Value moved = body.nodes()[0].inputs[0];
    auto at = std::find(body.inputs().begin(), body.inputs().end(), moved);
    CHECK(at != body.inputs().end(), "a group around a roll in '", g.name(), "' begins elsewhere");
    return n.inputs[static_cast<size_t>(at - body.inputs().begin())];
}

/// Moves in front of v, the first one first.
std::vector<const Node*> moves_before(const Graph& g, Value v) {
    std::vector<const Node*> out;
    for (const Node* p = g.producer(v); p != nullptr && is_move(*p) && out.size() < longest_chain;
         p = g.producer(p->inputs[0])) {
        out.insert(out.begin(), p);
    }
    return out;
}

/// The body of a group: `before`, the roll, `behind`; `inputs` gets the operands.
GraphRef body_of(const Graph& g, std::span<const Node* const> before, const Node& roll,
                 std::span<const Node* const> behind, Values& inputs) {
    Graph body = g.sibling("group");
    Value source = source_of(g, roll);
    Value first = before.empty() ? source : before[0]->inputs[0];
    auto input = [&](Value v) {
        auto at = std::find(inputs.begin(), inputs.end(), v);
        if (at != inputs.end()) {
            return body.inputs()[static_cast<size_t>(at - inputs.begin())];
        }
        inputs.push_back(v);
        return body.add_input("", g.type(v));
    };
    auto follow = [&body](const Node& n, Value v) {
        body.set_origin(n.name);
        return body.add(*n.def, n.attrs, std::span<const Value>(&v, 1))[0];
    };
    Value moved = input(first);
    for (const Node* n : before) {
        moved = follow(*n, moved);
    }
    Value result = moved;
    if (roll.is(fused_def)) {
        const Graph& inner = *roll.as<Fused>().body;
        std::vector<Value> at(inner.value_count());
        Value start = inner.nodes()[0].inputs[0];
        for (const Node& n : inner.nodes()) {
            Values in;
            for (Value v : n.inputs) {
                bool begins = v == start && &n == &inner.nodes()[0];
                auto k = std::find(inner.inputs().begin(), inner.inputs().end(), v);
                in.push_back(
                    begins ? moved
                    : k != inner.inputs().end()
                        ? input(roll.inputs[static_cast<size_t>(k - inner.inputs().begin())])
                        : at[v.id]);
            }
            body.set_origin(n.name);
            at[n.outputs[0].id] = result = body.add(*n.def, n.attrs, in)[0];
        }
    } else {
        result = follow(roll, moved);
    }
    for (const Node* n : behind) {
        result = follow(*n, result);
    }
    body.add_output("", result);
    return std::make_shared<const Graph>(std::move(body));
}

std::optional<Values> fused(const KernelSet& kernels, Rewriter& r, const Node& roll,
                            std::span<const Node* const> behind, const std::string& origin) {
    std::vector<const Node*> before = moves_before(r.out(), source_of(r.out(), roll));
    if (before.empty() && behind.empty()) {
        return std::nullopt;
    }
    Values inputs;
    GraphRef body = body_of(r.out(), before, roll, behind, inputs);
    Group group{*body, body->nodes(), body->inputs(), body->outputs()};
    std::string reason = "no kernel of that name";
    if (kernels.find(ops::roll_def.name, group, &reason) == nullptr) {
        log(LogLevel::Verbose, kernels.backend, ": '", roll.name,
            "' (roll) stays apart from the moves around it: ", reason);
        return std::nullopt;
    }
    r.out().set_origin(origin);
    return r.out().add(fused_def, Fused{std::string(ops::roll_def.name), body}, inputs);
}

/// A reshape of what was permuted behind a roll would be a copy: it ends the roll's group.
std::optional<Values> fuse_behind(const KernelSet& kernels, Rewriter& r, const Node& n,
                                  std::span<const Value> in, const std::vector<uint32_t>& uses) {
    if (!n.is(reshape_def) || uses[n.inputs[0].id] != 1) {
        return std::nullopt;
    }
    Node last = r.current(n);
    std::vector<const Node*> behind{&last};
    bool permuted = false;
    const Node* old = r.from().producer(n.inputs[0]);
    const Node* p = r.out().producer(in[0]);
    while (old != nullptr && p != nullptr && is_move(*old) && old->def == p->def &&
           uses[old->inputs[0].id] == 1 && behind.size() < longest_chain) {
        permuted = permuted || p->is(permute_def);
        behind.insert(behind.begin(), p);
        old = r.from().producer(old->inputs[0]);
        p = r.out().producer(p->inputs[0]);
    }
    bool ends_in_roll = old != nullptr && p != nullptr && old->def == p->def && is_roll(*p) &&
                        p->outputs.size() == 1;
    if (!permuted || !ends_in_roll) {
        return std::nullopt;
    }
    const Node roll = *p;
    return fused(kernels, r, roll, behind, roll.name);
}

} // namespace

Graph fuse_moves(const Graph& g, const KernelSet& kernels) {
    return dead_code(rewrite_all(g, [&kernels](const Graph& part) {
        Graph read =
            dead_code(rewrite(part, [&kernels](Rewriter& r, const Node& n, std::span<const Value>) {
                return is_roll(n) ? fused(kernels, r, r.current(n), {}, n.name) : std::nullopt;
            }));
        std::vector<uint32_t> uses = use_counts(read);
        return rewrite(read, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
            return fuse_behind(kernels, r, n, in, uses);
        });
    }));
}

} // namespace ingot::plan
