// SPDX-License-Identifier: Apache-2.0
#include "lower/join_pair.h"

#include "base/log.h"
#include "lower/group_inputs.h"
#include "ops/ops.h"

#include <map>

namespace ingot::plan {

std::optional<Group> convolution_group(const Graph& g, const Node* n) {
    if (n == nullptr || n->outputs.size() != 1) {
        return std::nullopt;
    }
    bool is_conv =
        n->is(ops::conv_def) || (n->is(fused_def) && n->as<Fused>().kernel == ops::conv_def.name);
    return is_conv ? std::optional(group_of(g, *n)) : std::nullopt;
}

namespace {

std::optional<Values> join(const JoinedPair& pair, Graph& out, std::span<const uint32_t> uses,
                           const Node& n, std::span<const Value> in) {
    Node now = n;
    now.inputs.assign(in.begin(), in.end());
    std::optional<Group> second = convolution_group(out, &now);
    if (!second) {
        return std::nullopt;
    }
    int at = second->input_index(second->first().inputs[0]);
    if (at < 0 || uses[n.inputs[static_cast<size_t>(at)].id] != 1) {
        return std::nullopt;
    }
    Value between = in[static_cast<size_t>(at)];
    const Node* producer = out.producer(between);
    std::optional<Group> first = pair.producer(out, producer);
    if (!first) {
        return std::nullopt;
    }
    Graph body = out.sibling("group");
    GroupInputs inputs(body, out);
    auto placed = [&](const Group& group, std::span<const Value> outer, Value made) {
        std::map<uint32_t, Value> inside;
        for (size_t i = 0; i < outer.size(); ++i) {
            inside[group.inputs[i].id] = outer[i] == between ? made : inputs.of(outer[i]);
        }
        append_nodes(body, group.nodes, inside);
        return inside.at(group.outputs[0].id);
    };
    // All inputs come before the first node.
    for (Value v : producer->inputs) {
        inputs.of(v);
    }
    for (Value v : in) {
        if (v != between) {
            inputs.of(v);
        }
    }
    Value made = placed(*first, producer->inputs, {});
    body.add_output("", placed(*second, in, made));
    Group group{body, body.nodes(), body.inputs(), body.outputs()};
    std::string reason;
    if (pair.kernels.find(pair.kernel, group, &reason) == nullptr) {
        log(LogLevel::Verbose, pair.kernels.backend, ": '", n.name, "' stays apart from '",
            producer->name, "' (", pair.kernel, "): ", reason);
        return std::nullopt;
    }
    out.set_origin(producer->name.empty() ? n.name : producer->name + " + " + n.name);
    return out.add(fused_def, Fused{pair.kernel, std::make_shared<const Graph>(std::move(body))},
                   inputs.values());
}

} // namespace

Pass join_pass(std::string_view name, std::string_view summary, const JoinedPair& pair) {
    return {
        .name = name,
        .summary = summary,
        .run =
            [pair](const Graph& g, const PassOptions&) {
                std::vector<uint32_t> uses = use_counts(g);
                return dead_code(
                    rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                        return join(pair, r.out(), uses, n, in);
                    }));
            },
    };
}

} // namespace ingot::plan
