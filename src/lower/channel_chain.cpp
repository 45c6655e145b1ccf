// SPDX-License-Identifier: Apache-2.0
#include "lower/channel_chain.h"

#include "lower/users.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ingot::plan {

namespace {

/// The axis of a constant's channels where it meets values of that rank; negative: before its
/// first.
int64_t channel_axis(const Tensor& t, int rank) {
    return t.rank() - (rank - 1);
}

bool goes_by_channel(const Tensor& t, int64_t channels, int rank) {
    int64_t axis = channel_axis(t, rank);
    return t.count() == 1 ||
           (axis >= 0 && t.shape()[static_cast<size_t>(axis)] == channels && t.count() == channels);
}

ChannelChain chain_behind(const Graph& g, const Node& n, const Users& users) {
    ChannelChain chain{&n, {}};
    std::optional<int64_t> channels = g.type(n.outputs[0]).dims[1].as_const();
    while (channels) {
        Value v = chain.result();
        bool output = std::find(g.outputs().begin(), g.outputs().end(), v) != g.outputs().end();
        const Node* m = !output && users[v.id].size() == 1 ? users[v.id][0] : nullptr;
        bool fits = m != nullptr && m->is(map_def) &&
                    g.type(m->outputs[0]).dims == g.type(v).dims &&
                    bit_width(m->as<Map>().dtype) >= 16;
        for (size_t i = 0; fits && i < m->inputs.size(); ++i) {
            const Tensor* t = g.constant(m->inputs[i]);
            fits = m->inputs[i] == v ||
                   (t != nullptr && goes_by_channel(*t, *channels, g.type(v).rank()));
        }
        if (!fits) {
            break;
        }
        chain.maps.push_back(m);
    }
    return chain;
}

} // namespace

Graph rewrite_chains(const Graph& g, const std::function<bool(const Node&)>& wanted,
                     const std::function<Value(Rewriter&, const ChannelChain&)>& made,
                     const std::function<bool(DType)>& ends) {
    std::optional<Users> users;                  // once there is something to do
    std::map<const Node*, ChannelChain> by_last; // node
    for (const Node& n : g.nodes()) {
        if (wanted(n)) {
            users = users ? std::move(users) : users_of(g);
            ChannelChain chain = chain_behind(g, n, *users);
            while (!chain.maps.empty() && !ends(chain.maps.back()->as<Map>().dtype)) {
                chain.maps.pop_back();
            }
            by_last.emplace(&chain.last(), chain);
        }
    }
    if (by_last.empty()) {
        return g;
    }
    return dead_code(rewrite(
        g, [&](Rewriter& r, const Node& n, std::span<const Value>) -> std::optional<Values> {
            auto it = by_last.find(&n);
            return it == by_last.end() ? std::nullopt : std::optional(Values{made(r, it->second)});
        }));
}

Value with_maps(Graph& out, const Graph& old, const ChannelChain& chain, Value y,
                const std::function<Tensor(const Tensor&, size_t axis)>& change) {
    int rank = old.type(chain.result()).rank();
    Value before = chain.first->outputs[0];
    for (const Node* m : chain.maps) {
        Values in;
        for (Value v : m->inputs) {
            const Tensor* t = old.constant(v);
            if (v == before) {
                in.push_back(y);
                continue;
            }
            bool one = t->count() == 1;
            in.push_back(ops::constant(
                out, one ? *t : change(*t, static_cast<size_t>(channel_axis(*t, rank)))));
        }
        y = ops::map(out, m->as<Map>().body, m->as<Map>().dtype, in);
        before = m->outputs[0];
    }
    return y;
}

Tensor repeated(const Tensor& t, size_t axis, int64_t count) {
    Shape shape = t.shape();
    shape[axis] *= count;
    Tensor out = Tensor::empty(t.dtype(), shape);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        std::memcpy(out.mutable_bytes().data() + i * t.bytes().size(), t.bytes().data(),
                    t.bytes().size());
    }
    return out;
}

} // namespace ingot::plan
