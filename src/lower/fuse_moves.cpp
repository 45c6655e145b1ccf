// SPDX-License-Identifier: Apache-2.0
// fuse_moves: reshapes and permutes around a roll become part of its kernel, which then reads and
// writes in its neighbours' order and saves a copy. Maps whose operands would need such a copy
// become such kernels too.
#include "base/log.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/primitives.h"
#include "ops/roll.h"
#include "plan/kernel.h"

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

/// The view ops that lead to v, first one first.
std::vector<const Node*> moves_before(const Graph& g, Value v) {
    std::vector<const Node*> out;
    for (const Node* p = g.producer(v); p != nullptr && is_move(*p) && out.size() < longest_chain;
         p = g.producer(p->inputs[0])) {
        out.insert(out.begin(), p);
    }
    return out;
}

/// A group being written; `inputs` are its operands in the outer graph.
class GroupBuilder {
public:
    explicit GroupBuilder(const Graph& g) : g_(g), body_(g.sibling("group")) {}

    Value input(Value v) {
        auto at = std::find(inputs_.begin(), inputs_.end(), v);
        if (at != inputs_.end()) {
            return body_.inputs()[static_cast<size_t>(at - inputs_.begin())];
        }
        inputs_.push_back(v);
        return body_.add_input("", g_.type(v));
    }
    Value add(const Node& n, const Values& in) {
        body_.set_origin(n.name);
        return body_.add(*n.def, n.attrs, in)[0];
    }
    /// Applies the moves to v.
    Value follow(std::span<const Node* const> moves, Value v) {
        for (const Node* n : moves) {
            v = add(*n, {v});
        }
        return v;
    }
    /// Copies the nodes of a group; the first one reads `moved`.
    Value inline_group(const Node& fused, Value moved) {
        const Graph& inner = *fused.as<Fused>().body;
        Values at(inner.value_count());
        Value result;
        for (const Node& n : inner.nodes()) {
            Values in;
            for (Value v : n.inputs) {
                auto k = std::find(inner.inputs().begin(), inner.inputs().end(), v);
                auto position = static_cast<size_t>(k - inner.inputs().begin());
                bool begins = &n == &inner.nodes()[0];
                in.push_back(begins                      ? moved
                             : k != inner.inputs().end() ? input(fused.inputs[position])
                                                         : at[v.id]);
            }
            at[n.outputs[0].id] = result = add(n, in);
        }
        return result;
    }
    /// Adds the group to the outer graph, if a kernel takes it.
    std::optional<Values> finish(const KernelSet& kernels, Rewriter& r, Value result,
                                 const std::string& origin) {
        body_.add_output("", result);
        Group group{body_, body_.nodes(), body_.inputs(), body_.outputs()};
        std::string reason = "no kernel of that name";
        if (kernels.find(ops::roll_def.name, group, &reason) == nullptr) {
            log(LogLevel::Verbose, kernels.backend, ": '", origin,
                "' stays apart from the moves around it: ", reason);
            return std::nullopt;
        }
        r.out().set_origin(origin);
        auto body = std::make_shared<const Graph>(std::move(body_));
        return r.out().add(fused_def, Fused{std::string(ops::roll_def.name), body}, inputs_);
    }

private:
    const Graph& g_;
    Graph body_;
    Values inputs_;
};

std::optional<Values> fuse_roll(const KernelSet& kernels, Rewriter& r, const Node& roll,
                                std::span<const Node* const> behind) {
    Value source = source_of(r.out(), roll);
    std::vector<const Node*> before = moves_before(r.out(), source);
    if (before.empty() && behind.empty()) {
        return std::nullopt;
    }
    GroupBuilder b(r.out());
    Value moved = b.follow(before, b.input(before.empty() ? source : before[0]->inputs[0]));
    moved = roll.is(fused_def) ? b.inline_group(roll, moved) : b.add(roll, {moved});
    return b.finish(kernels, r, b.follow(behind, moved), roll.name);
}

/// Whether the last move reshapes a permuted value, which no view can express, and keeps the last
/// axis.
bool moves_rows(std::span<const Node* const> moves) {
    bool permuted = false;
    for (const Node* n : moves) {
        if (n->is(permute_def)) {
            const auto& perm = n->as<Permute>().perm;
            permuted = true;
            if (perm.back() + 1 != static_cast<int64_t>(perm.size())) {
                return false;
            }
        }
    }
    return permuted && moves.back()->is(reshape_def);
}

/// Fuses a map that reads rows in another order than they were written.
std::optional<Values> fuse_map(const KernelSet& kernels, Rewriter& r, const Node& n,
                               std::span<const Value> in) {
    const Graph& g = r.out();
    for (Value moved : in) {
        std::vector<const Node*> moves = moves_before(g, moved);
        if (moves.empty() || !moves_rows(moves) || g.constant(moves[0]->inputs[0]) != nullptr) {
            continue;
        }
        GroupBuilder b(g);
        Value v = b.follow(moves, b.input(moves[0]->inputs[0]));
        Values operands;
        for (Value operand : in) {
            operands.push_back(operand == moved ? v : b.input(operand));
        }
        if (auto made = b.finish(kernels, r, b.add(r.current(n), operands), n.name)) {
            return made;
        }
    }
    return std::nullopt;
}

/// A reshape of a permuted roll would be a copy: it ends the roll's group.
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
    return fuse_roll(kernels, r, roll, behind);
}

Graph fused(const Graph& g, const KernelSet& kernels) {
    Graph read =
        dead_code(rewrite(g, [&kernels](Rewriter& r, const Node& n, std::span<const Value> in) {
            return is_roll(n)      ? fuse_roll(kernels, r, r.current(n), {})
                   : n.is(map_def) ? fuse_map(kernels, r, n, in)
                                   : std::nullopt;
        }));
    std::vector<uint32_t> uses = use_counts(read);
    return dead_code(rewrite(read, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        return fuse_behind(kernels, r, n, in, uses);
    }));
}

} // namespace

Pass fuse_moves(const KernelSet& kernels) {
    return {
        .name = "fuse_moves",
        .summary = "reshapes and permutes become part of rolls and of maps that read them",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
        .structural = true,
    };
}

} // namespace ingot::plan
