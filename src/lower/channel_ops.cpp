// SPDX-License-Identifier: Apache-2.0
#include "lower/channel_ops.h"

#include "ops/ops.h"
#include "ops/squeeze_excite.h"

#include <algorithm>
#include <cmath>

namespace ingot::plan {

namespace {

/// Kernels copy vectors of this many bits.
constexpr int64_t vector_bits = 128;

/// Whether a map's constant operand differs by channel alone.
bool is_by_channel(const Tensor& t, int rank) {
    for (int i = 0; i < t.rank(); ++i) {
        if (t.shape()[static_cast<size_t>(i)] != 1 && i + rank - t.rank() != 1) {
            return false;
        }
    }
    return is_float(t.dtype()) && t.rank() <= rank;
}

bool is_finite_at_zeros(const Expr& e, size_t inputs) {
    std::vector<Scalar> zeros(inputs);
    std::vector<Scalar> work(e.code.size());
    return std::isfinite(eval(e, zeros, work).f);
}

/// Those of a map that have the result's channels; the others are constants by channel, or have one
/// channel.
std::vector<size_t> operands_of_map(const Graph& g, const Node& n) {
    const Type& result = g.type(n.outputs[0]);
    std::vector<size_t> out;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        const Type& t = g.type(n.inputs[i]);
        const Tensor* constant = g.constant(n.inputs[i]);
        if (constant != nullptr) {
            if (!is_by_channel(*constant, result.rank())) {
                return {};
            }
            continue;
        }
        if (!is_float(t.dtype) || t.rank() != result.rank()) {
            return {};
        }
        if (t.dims[1] == result.dims[1]) {
            out.push_back(i);
        } else if (!t.dims[1].is_const(1)) {
            return {};
        }
    }
    bool fits = is_float(result.dtype) && is_finite_at_zeros(n.as<Map>().body, n.inputs.size());
    return fits ? out : std::vector<size_t>{};
}

/// Whether n moves elements along axes behind the channels alone.
bool moves_within_channels(const Graph& g, const Node& n) {
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dims& to = g.type(n.outputs[0]).dims;
    bool same = from.size() >= 3 && to.size() >= 3 && from[0] == to[0] && from[1] == to[1];
    if (n.is(pad_def)) {
        const auto& a = n.as<Pad>();
        return same && a.low[1].is_const(0) && a.high[1].is_const(0);
    }
    if (n.is(slice_def)) {
        return same && n.as<Slice>().steps[1] == 1;
    }
    return same && (n.is(reshape_def) || (n.is(broadcast_def) && from.size() == to.size()));
}

/// Finds the values of padded_values.
class Padding {
public:
    Padding(const Graph& g, const Users& users, const std::vector<char>& takes_routes)
        : g_(g), users_(users), takes_routes_(takes_routes), padded_(g.value_count(), 0) {
        for (const Node& n : g.nodes()) {
            padded_[n.outputs[0].id] = can_be_padded(n) ? 1 : 0;
        }
        for (Value v : g.outputs()) {
            padded_[v.id] = 0;
        }
        while (drops_some()) {
        }
    }
    std::vector<char> take() && { return std::move(padded_); }

private:
    bool is_padded(Value v) const { return padded_[v.id] != 0; }

    /// By its operands, as they are known.
    bool can_be_padded(const Node& n) const {
        const Type& t = g_.type(n.outputs[0]);
        std::optional<int64_t> channels = t.rank() >= 3 ? t.dims[1].as_const() : std::nullopt;
        if (n.outputs.size() != 1 || !channels || !is_float(t.dtype) || bit_width(t.dtype) < 16 ||
            whole_vectors(*channels, t.dtype) == *channels) {
            return false;
        }
        if (is_dense(g_, n)) {
            return true;
        }
        if (is_depthwise(g_, n)) {
            return is_padded(n.inputs[0]);
        }
        std::vector<size_t> operands = channelwise_operands(g_, n);
        return !operands.empty() && std::all_of(operands.begin(), operands.end(), [&](size_t i) {
            return is_padded(n.inputs[i]) &&
                   g_.type(n.inputs[i]).dtype == t.dtype; // whose vectors are as long
        });
    }

    bool reads_vectors(const Node& n, Value v) const {
        return (is_dense(g_, n) && n.inputs[0] == v) || is_padded(n.outputs[0]);
    }
    bool may_read(const Node& n, Value v) const {
        return reads_vectors(n, v) || n.is(reduce_def) ||
               (n.is(concat_def) && takes_routes_[n.outputs[0].id] != 0);
    }

    /// Drops values that some reader cannot take or none needs, and those made of them.
    bool drops_some() {
        bool some = false;
        auto nodes = g_.nodes();
        for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
            Value v = n->outputs[0];
            const std::vector<const Node*>& users = users_[v.id];
            auto reads = [&](const Node* u) { return reads_vectors(*u, v); };
            auto may = [&](const Node* u) { return may_read(*u, v); };
            bool stays = is_padded(v) && can_be_padded(*n) &&
                         std::any_of(users.begin(), users.end(), reads) &&
                         std::all_of(users.begin(), users.end(), may);
            some = some || (is_padded(v) && !stays);
            padded_[v.id] = stays ? 1 : 0;
        }
        return some;
    }

    const Graph& g_;
    const Users& users_;
    const std::vector<char>& takes_routes_;
    std::vector<char> padded_;
};

} // namespace

const Tensor* weights_of(const Graph& g, const Node& n) {
    const Tensor* w = n.is(ops::conv_def) ? g.constant(n.inputs[1]) : nullptr;
    bool fits = w != nullptr && is_float(w->dtype()) && bit_width(w->dtype()) >= 16 &&
                bit_width(w->dtype()) <= 32 && w->count() > 0 &&
                g.type(n.outputs[0]).dtype == w->dtype();
    return fits ? w : nullptr;
}

bool is_dense(const Graph& g, const Node& n) {
    return weights_of(g, n) != nullptr && n.as<ops::Conv>().groups == 1;
}

bool is_depthwise(const Graph& g, const Node& n) {
    const Tensor* w = weights_of(g, n);
    return w != nullptr && w->shape()[1] == 1 && n.as<ops::Conv>().groups == w->shape()[0] &&
           g.type(n.inputs[0]).dims[1].is_const(w->shape()[0]);
}

std::optional<size_t> mapped_operand(const Graph& g, const Node& n) {
    if (!n.is(map_def) || g.type(n.outputs[0]).rank() < 2) {
        return std::nullopt;
    }
    std::vector<size_t> operands = operands_of_map(g, n);
    auto computed = std::count_if(n.inputs.begin(), n.inputs.end(),
                                  [&](Value v) { return g.constant(v) == nullptr; });
    bool alone = operands.size() == 1 && computed == 1 &&
                 g.type(n.inputs[operands[0]]).dims == g.type(n.outputs[0]).dims;
    return alone ? std::optional(operands[0]) : std::nullopt;
}

std::vector<size_t> channelwise_operands(const Graph& g, const Node& n) {
    if (n.outputs.size() != 1 || n.inputs.empty()) {
        return {};
    }
    if (n.is(map_def)) {
        return operands_of_map(g, n);
    }
    bool takes = n.is(ops::pool_def) || moves_within_channels(g, n);
    if (n.is(ops::resize_def)) {
        const auto& axes = n.as<ops::Resize>().axes;
        takes = std::find(axes.begin(), axes.end(), 1) == axes.end();
    } else if (n.is(ops::squeeze_excite_def)) {
        takes = std::all_of(n.inputs.begin() + 1, n.inputs.end(),
                            [&](Value v) { return g.constant(v) != nullptr; });
    }
    return takes ? std::vector<size_t>{0} : std::vector<size_t>{};
}

int64_t whole_vectors(int64_t channels, DType t) {
    int64_t vector = vector_bits / bit_width(t);
    int64_t whole = (channels + vector - 1) / vector * vector;
    return whole <= 2 * channels ? whole : channels; // else it would be mostly zeros
}

std::vector<char> padded_values(const Graph& g, const Users& users,
                                const std::vector<char>& takes_routes) {
    return Padding(g, users, takes_routes).take();
}

} // namespace ingot::plan
