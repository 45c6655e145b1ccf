// SPDX-License-Identifier: Apache-2.0
// route_channels: a convolution whose input was shuffled, sliced and concatenated along its
// channels reads the values that its channels lie in side by side, in the order in which they were
// written. Its constant weights are shuffled instead, with zeros for channels that it does not
// read: no channel is moved, and stages that concatenate grow in one memory. Results whose channels
// fill no whole vectors get further ones, which are zeros. An infinity or NaN among the channels
// with zeros reaches results.
#include "ir/rewrite.h"
#include "lower/channel_ops.h"
#include "lower/channel_route.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/squeeze_excite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace ingot::plan {

namespace {

/// Weights of a shuffled value's readers grow by no more; where they would, the value is written.
constexpr int64_t most_widening = 5;
/// More channels than any convolution's are something else, as the tokens of a text.
constexpr int64_t most_channels = 8192;

/// Weights [results, channels, window...] whose channel c is at places[c] of `wide` ones.
Tensor with_channels_at(const Tensor& w, std::span<const int64_t> places, int64_t wide) {
    Shape shape = w.shape();
    auto block = w.bytes().size() / static_cast<size_t>(shape[0] * shape[1]);
    auto channels = static_cast<size_t>(shape[1]);
    shape[1] = wide;
    Tensor out = Tensor::zeros(w.dtype(), shape);
    std::byte* to = out.mutable_bytes().data();
    for (size_t i = 0; i < static_cast<size_t>(shape[0]) * channels; ++i) {
        size_t row = i / channels * static_cast<size_t>(wide);
        std::memcpy(to + (row + static_cast<size_t>(places[i % channels])) * block,
                    w.bytes().data() + i * block, block);
    }
    return out;
}

/// The tensor whose elements along an axis before which all sizes are 1 are at places[i] of `wide`
/// ones; the others are zeros.
Tensor with_elements_at(const Tensor& t, size_t axis, std::span<const int64_t> places,
                        int64_t wide) {
    Shape shape = t.shape();
    auto block = t.bytes().size() / static_cast<size_t>(shape[axis]);
    shape[axis] = wide;
    Tensor out = Tensor::zeros(t.dtype(), shape);
    for (size_t i = 0; i < places.size(); ++i) {
        std::memcpy(out.mutable_bytes().data() + static_cast<size_t>(places[i]) * block,
                    t.bytes().data() + i * block, block);
    }
    return out;
}

std::vector<int64_t> first_places(int64_t n) {
    std::vector<int64_t> out(static_cast<size_t>(n));
    std::iota(out.begin(), out.end(), 0);
    return out;
}

class Router {
public:
    explicit Router(const Graph& g)
        : g_(g), users_(users_of(g)), takes_routes_(g.value_count(), 1), routes_(g.value_count()) {
        for (Value v : g.outputs()) {
            takes_routes_[v.id] = 0;
        }
        for (auto n = g.nodes().rbegin(); n != g.nodes().rend(); ++n) {
            for (Value v : n->outputs) {
                takes_routes_[v.id] = takes_routes_[v.id] != 0 && !users_[v.id].empty() &&
                                      std::all_of(users_[v.id].begin(), users_[v.id].end(),
                                                  [&](const Node* u) { return takes(*u, v); });
            }
        }
        padded_ = padded_values(g, users_, takes_routes_);
    }

    std::optional<Values> rewritten(Rewriter& r, const Node& n, std::span<const Value> in) {
        if (n.outputs.size() != 1 || n.inputs.empty()) {
            return std::nullopt;
        }
        if (weights_of(g_, n) != nullptr) {
            return convolution(r, n, in);
        }
        if (padded_[n.outputs[0].id] != 0) {
            return channelwise(r, n, channelwise_operands(g_, n));
        }
        if (takes_routes_[n.outputs[0].id] == 0) {
            return std::nullopt;
        }
        if (std::optional<size_t> operand = mapped_operand(g_, n)) {
            return channelwise(r, n, {*operand});
        }
        return moved(r, n, in);
    }

private:
    /// Whether a use of the value can read its channels where they lie, and, if it hands them on,
    /// all uses of what it makes can.
    bool takes(const Node& n, Value v) const {
        if (is_dense(g_, n) && n.inputs[0] == v) {
            return true;
        }
        std::optional<size_t> operand = mapped_operand(g_, n);
        bool hands_on = (is_depthwise(g_, n) && n.inputs[0] == v) ||
                        (operand && n.inputs[*operand] == v) ||
                        (n.is(concat_def) && n.as<Concat>().axis == 1) || n.is(slice_def) ||
                        n.is(reshape_def) || n.is(permute_def);
        return hands_on && takes_routes_[n.outputs[0].id] != 0;
    }

    /// The route of an old value, of which `now` is the new one.
    std::optional<ChannelRoute> route_of(Rewriter& r, Value old, Value now) const {
        const std::optional<ChannelRoute>& known = routes_[old.id];
        if (known) {
            return known;
        }
        std::optional<ChannelRoute> own = own_channels(r.out(), now);
        return own && own->count() <= most_channels ? own : std::nullopt;
    }

    /// A slice, concat, reshape or permutation: what it reads stays where it is.
    std::optional<Values> moved(Rewriter& r, const Node& n, std::span<const Value> in) {
        std::vector<ChannelRoute> parts;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            std::optional<ChannelRoute> part = route_of(r, n.inputs[i], in[i]);
            if (!part) {
                return std::nullopt;
            }
            parts.push_back(std::move(*part));
        }
        std::optional<ChannelRoute>& route = routes_[n.outputs[0].id];
        if (n.is(concat_def) && n.as<Concat>().axis == 1 &&
            std::all_of(parts.begin(), parts.end(),
                        [](const ChannelRoute& p) { return p.is_flat(); })) {
            route = concat_of(parts);
        } else if (n.is(slice_def)) {
            route = through_slice(g_, n, parts[0]);
        } else if (n.is(permute_def)) {
            route = through_permute(n, parts[0]);
        } else if (n.is(reshape_def)) {
            route = through_reshape(g_, n, parts[0]);
        }
        bool ends_shuffle = route && n.is(reshape_def) && route->is_shuffled && route->is_flat() &&
                            !parts[0].is_flat();
        return ends_shuffle ? written(r, n) : std::nullopt;
    }

    /// A shuffled value itself, for those that need it. Where too many channels lie between those
    /// that it has, it is what later ones read.
    std::optional<Values> written(Rewriter& r, const Node& n) {
        Graph& out = r.out();
        const ChannelRoute& route = *routes_[n.outputs[0].id];
        std::span<const Value> run = route.run();
        std::vector<int64_t> places = places_in(out, run, route);
        bool is_far = channels_of(out, run) > most_widening * route.count();
        Value all = side_by_side(out, run);
        if (!is_far) {
            return Values{gathered(out, all, places)};
        }
        int64_t count = route.count();
        places.resize(static_cast<size_t>(whole_vectors(count, out.type(all).dtype)), places[0]);
        Value wide = gathered(out, all, places);
        set_route(r, n.outputs[0], wide, first_places(count));
        return Values{gathered(out, wide, first_places(count))};
    }

    static Value side_by_side(Graph& g, std::span<const Value> run) {
        return run.size() == 1 ? run[0] : ops::concat(g, run, 1);
    }

    /// The channels at these places: as a view where they are the first ones, else copied with
    /// channels last, as convolutions read them.
    static Value gathered(Graph& g, Value all, const std::vector<int64_t>& places) {
        auto count = static_cast<int64_t>(places.size());
        if (places == first_places(count)) {
            return channels_of(g, all) == count ? all : ops::slice(g, all, 1, 0, count);
        }
        std::vector<int64_t> last = first_places(g.type(all).rank());
        std::vector<int64_t> first = last;
        std::rotate(last.begin() + 1, last.begin() + 2, last.end());
        std::rotate(first.begin() + 1, first.end() - 1, first.end());
        Value x = ops::gather(g, ops::permute(g, all, last), ops::i64_list(g, places),
                              g.type(all).rank() - 1);
        return ops::permute(g, x, first);
    }

    /// The old value's channels are at these places of a new one.
    void set_route(Rewriter& r, Value old, Value wide, std::span<const int64_t> places) {
        std::optional<ChannelRoute> route = own_channels(r.out(), wide);
        auto count = static_cast<int64_t>(places.size());
        route->is_padded = count < route->count();
        route->is_shuffled = !std::is_sorted(places.begin(), places.end());
        route->channels.clear();
        for (int64_t at : places) {
            route->channels.push_back({wide, at});
        }
        route->axes = {count};
        routes_[old.id] = std::move(route);
    }

    /// Values in which the channels of an old one lie, in other places than its own.
    struct Source {
        std::span<const Value> run;
        std::vector<int64_t> places; // of the channels, in all of `run`
        int64_t channels = 0;        // in all of `run`
    };

    /// The source of a convolution's input or a map's operand, unless it has `most` times as many
    /// channels, or one of them twice.
    std::optional<Source> source_of(const Graph& out, Value old, int64_t most) const {
        const std::optional<ChannelRoute>& route = routes_[old.id];
        if (!route || !route->is_flat() || !(route->is_shuffled || route->is_padded)) {
            return std::nullopt;
        }
        Source s{route->run(), {}, 0};
        s.places = places_in(out, s.run, *route);
        s.channels = channels_of(out, s.run);
        bool once = std::set(s.places.begin(), s.places.end()).size() == s.places.size();
        return once && s.channels <= most * route->count() ? std::optional(s) : std::nullopt;
    }

    /// A convolution's input with channels of zeros behind its own, where they fill no vectors: a
    /// copy takes less than convolutions of single elements do, unless positions are few.
    std::optional<Value> filled(Graph& out, Value old, Value x) {
        constexpr int64_t least_channels = 9;
        constexpr int64_t least_positions = 49;
        const Type t = out.type(x);
        std::optional<int64_t> known = out.type(x).dims[1].as_const();
        if (!known) {
            return std::nullopt;
        }
        int64_t channels = *known;
        int64_t positions = 1;
        for (size_t i = 2; i < t.dims.size(); ++i) {
            positions *= t.dims[i].as_const().value_or(least_positions);
        }
        int64_t more = whole_vectors(channels, t.dtype) - channels;
        if (more == 0 || channels < least_channels || positions < least_positions) {
            return std::nullopt;
        }
        auto [it, is_new] = filled_.try_emplace(old.id);
        if (is_new) {
            Dims zeros = t.dims;
            zeros[1] = more;
            it->second = ops::concat(out, Values{x, ops::full(out, t.dtype, zeros, 0)}, 1);
        }
        return it->second;
    }

    std::optional<Values> convolution(Rewriter& r, const Node& n, std::span<const Value> in) {
        Graph& out = r.out();
        Tensor w = *weights_of(g_, n);
        auto a = r.current(n).as<ops::Conv>();
        int64_t results = w.shape()[0];
        bool takes = takes_routes_[n.outputs[0].id] != 0 || padded_[n.outputs[0].id] != 0;
        Value x = in[0];
        int64_t wide = results;
        std::vector<int64_t> places = first_places(results);
        if (is_dense(g_, n)) {
            if (std::optional<Source> s = source_of(out, n.inputs[0], 2 * most_widening)) {
                Values run(s->run.begin(), s->run.end());
                int64_t whole = whole_vectors(s->channels, w.dtype());
                // Their rows get whole vectors where they are written anyway.
                if (run.size() > 1 && whole > s->channels) {
                    Type t = out.type(run[0]);
                    t.dims[1] = whole - s->channels;
                    run.push_back(ops::full(out, t.dtype, t.dims, 0));
                }
                x = side_by_side(out, run);
                w = with_channels_at(w, s->places, channels_of(out, x));
            } else if (std::optional<Value> whole = filled(out, n.inputs[0], in[0])) {
                w = with_channels_at(w, first_places(w.shape()[1]), channels_of(out, *whole));
                x = *whole;
            }
            wide = takes ? whole_vectors(results, w.dtype()) : results;
        } else if (is_depthwise(g_, n)) {
            std::optional<Source> s =
                takes ? source_of(out, n.inputs[0], most_widening) : std::nullopt;
            if (s) {
                x = side_by_side(out, s->run);
                places = s->places;
                wide = s->channels;
            } else if (std::optional<Value> whole = filled(out, n.inputs[0], in[0])) {
                x = *whole;
                wide = channels_of(out, x);
            }
            a.groups = wide;
        }
        if (x == in[0] && wide == results) {
            return std::nullopt;
        }
        if (wide != results) {
            w = with_elements_at(w, 0, places, wide);
        }
        Value y = ops::conv(out, a, x, ops::constant(out, w));
        set_route(r, n.outputs[0], y, places);
        return Values{gathered(out, y, places)};
    }

    /// The operands of an op with channels in other places: `wide` is what the operands at
    /// `positions` lie in.
    Values read_at(Rewriter& r, const Node& n, const std::vector<size_t>& positions,
                   std::span<const Source> sources) const {
        Graph& out = r.out();
        const Source& s = sources[0];
        auto count = static_cast<int64_t>(s.places.size());
        int rank = g_.type(n.outputs[0]).rank();
        Values read;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            auto at = std::find(positions.begin(), positions.end(), i);
            const Tensor* t = g_.constant(n.inputs[i]);
            if (at != positions.end()) {
                read.push_back(sources[static_cast<size_t>(at - positions.begin())].run[0]);
                continue;
            }
            bool excites = n.is(ops::squeeze_excite_def);
            int axis = t == nullptr || (!excites && !n.is(map_def)) ? -1
                       : excites                                    ? (i == 2   ? -1
                                                                       : i == 1 ? 1
                                                                                : 0)
                                                                    : 1 - (rank - t->rank());
            bool grows = axis >= 0 && count != 1 && t->shape()[static_cast<size_t>(axis)] == count;
            if (!grows) {
                read.push_back(r.mapped(n.inputs[i]));
                continue;
            }
            Tensor wide = excites && i == 1 ? with_channels_at(*t, s.places, s.channels)
                                            : with_elements_at(*t, static_cast<size_t>(axis),
                                                               s.places, s.channels);
            read.push_back(ops::constant(out, std::move(wide)));
        }
        return read;
    }

    /// An op that treats each channel alone, on those that lie in other places.
    std::optional<Values> channelwise(Rewriter& r, const Node& n,
                                      const std::vector<size_t>& positions) {
        Graph& out = r.out();
        std::vector<Source> sources;
        for (size_t i : positions) {
            std::optional<Source> s = source_of(out, n.inputs[i], most_widening);
            if (!s || s->run.size() != 1 || (!sources.empty() && s->places != sources[0].places) ||
                (!sources.empty() && s->channels != sources[0].channels)) {
                return std::nullopt;
            }
            sources.push_back(std::move(*s));
        }
        Values read = read_at(r, n, positions, sources);
        Value y = with_dims_of(out, n, read, sources[0].channels);
        set_route(r, n.outputs[0], y, sources[0].places);
        return Values{gathered(out, y, sources[0].places)};
    }

    /// n of other operands, whose results have so many channels.
    static Value with_dims_of(Graph& out, const Node& n, const Values& in, int64_t channels) {
        if (n.is(reshape_def) || n.is(broadcast_def)) {
            Dims dims = n.is(reshape_def) ? n.as<Reshape>().dims : n.as<Broadcast>().dims;
            dims[1] = channels;
            return n.is(reshape_def) ? ops::reshape(out, in[0], dims)
                                     : ops::broadcast_to(out, in[0], dims);
        }
        if (n.is(slice_def)) {
            auto a = n.as<Slice>();
            a.sizes[1] = channels;
            return out.add1(slice_def, a, in);
        }
        return out.add(*n.def, n.attrs, in)[0];
    }

    const Graph& g_;
    Users users_;
    std::vector<char> takes_routes_; // by old value: all of its uses do
    std::vector<char> padded_;       // by old value: as padded_values() says
    std::vector<std::optional<ChannelRoute>> routes_;
    std::map<uint32_t, Value> filled_; // by old value
};

} // namespace

Pass route_channels(const KernelSet&) {
    return {
        .name = "route_channels",
        .summary = "convolutions read shuffled channels where they lie, and odd ones get zeros",
        .run =
            [](const Graph& g, const PassOptions&) {
                Router router(g);
                return dead_code(
                    rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                        return router.rewritten(r, n, in);
                    }));
            },
    };
}

} // namespace ingot::plan
