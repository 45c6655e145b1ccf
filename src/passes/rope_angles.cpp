// SPDX-License-Identifier: Apache-2.0
#include "passes/rope_angles.h"

#include <algorithm>

namespace ingot::passes {

namespace {

constexpr int max_depth = 8;

bool is_even(const Dim& d) {
    return floor_div(d, 2) * Dim(2) == d;
}

bool repeats(const Tensor& t, bool interleaved) {
    int64_t size = t.rank() == 0 ? 1 : t.shape().back();
    if (size % 2 != 0) {
        return false;
    }
    for (int64_t i = 0; i < t.count(); ++i) {
        int64_t c = i % size;
        bool first = interleaved ? c % 2 == 0 : c < size / 2;
        int64_t twin = interleaved ? i + 1 : i + size / 2;
        if (first && t.get_f64(i) != t.get_f64(twin)) {
            return false;
        }
    }
    return true;
}

Value first_of(Graph& g, Value v, bool interleaved) {
    Dim half = floor_div(g.type(v).dims.back(), 2);
    return ops::slice(g, v, -1, 0, half, interleaved ? 2 : 1);
}

// A repeated element in place of a last axis of an even size.
bool repeats_one(const Graph& g, const Node& n) {
    const Dims& from = g.type(n.inputs[0]).dims;
    const Dim& size = g.type(n.outputs[0]).dims.back();
    return n.is(broadcast_def) && (from.empty() || from.back().is_const(1)) && is_even(size);
}

std::optional<Value> half(Graph& g, Value v, bool interleaved, int depth);

std::optional<Value> half_of_map(Graph& g, const Node& n, bool interleaved, int depth) {
    Values in;
    const Dims out = g.type(n.outputs[0]).dims;
    for (Value x : n.inputs) {
        const Dims d = g.type(x).dims;
        if (d.empty() || (d.back().is_const(1) && !out.back().is_const(1))) {
            in.push_back(x);
            continue;
        }
        auto h = half(g, x, interleaved, depth + 1);
        if (!h) {
            return std::nullopt;
        }
        in.push_back(*h);
    }
    return ops::map(g, n.as<Map>().body, n.as<Map>().dtype, in);
}

// The operands of a concat along the last axis of which the second half equals the first.
std::optional<Value> half_of_repeated(Graph& g, const Node& n) {
    size_t count = n.inputs.size() / 2;
    auto middle = n.inputs.begin() + static_cast<int64_t>(count);
    if (n.inputs.size() % 2 != 0 || !std::equal(n.inputs.begin(), middle, middle)) {
        return std::nullopt;
    }
    return count == 1 ? n.inputs[0]
                      : ops::concat(g, Values(n.inputs.begin(), middle), n.as<Concat>().axis);
}

std::optional<Value> half_of_concat(Graph& g, const Node& n, bool interleaved, int depth) {
    auto last = g.type(n.outputs[0]).rank() - 1;
    if (n.as<Concat>().axis == last && !interleaved) {
        return half_of_repeated(g, n);
    }
    Values in;
    for (Value x : n.inputs) {
        if (n.as<Concat>().axis == last && !is_even(g.type(x).dims.back())) {
            return std::nullopt;
        }
        auto h = half(g, x, interleaved, depth + 1);
        if (!h) {
            return std::nullopt;
        }
        in.push_back(*h);
    }
    return ops::concat(g, in, n.as<Concat>().axis);
}

// A reshape that keeps the last axis, or one that flattens repeated elements into it.
std::optional<Value> half_of_reshape(Graph& g, const Node& n, bool interleaved, int depth) {
    const Dims from = g.type(n.inputs[0]).dims;
    const Dims to = g.type(n.outputs[0]).dims;
    if (!from.empty() && from.back() == to.back()) {
        auto h = half(g, n.inputs[0], interleaved, depth + 1);
        if (!h) {
            return std::nullopt;
        }
        Dims d = to;
        d.back() = g.type(*h).dims.back();
        return ops::reshape(g, *h, d);
    }
    const Node* b = g.producer(n.inputs[0]);
    size_t r = from.size();
    if (b == nullptr || r < 2) {
        return std::nullopt;
    }
    // [..., D/2, 1] repeated to [..., D/2, 2], or [..., 1, D/2] to [..., 2, D/2]
    size_t axis = interleaved ? r - 1 : r - 2;
    if (!from[axis].is_const(2) || !(from[r - 2] * from[r - 1] == to.back())) {
        return std::nullopt;
    }
    Dims source = g.type(b->inputs[0]).dims;
    bool twice = b->is(concat_def) && b->inputs.size() == 2 && b->inputs[0] == b->inputs[1] &&
                 static_cast<size_t>(b->as<Concat>().axis) == axis;
    Dims one = from;
    one[axis] = 1;
    if (!twice && !(b->is(broadcast_def) && source == one)) {
        return std::nullopt;
    }
    Dims small = to;
    small.back() = from[interleaved ? r - 2 : r - 1];
    return ops::reshape(g, b->inputs[0], small);
}

std::optional<Value> half(Graph& g, Value v, bool interleaved, int depth) {
    const Node* p = g.producer(v);
    if (p == nullptr || depth > max_depth || g.type(v).rank() == 0) {
        return std::nullopt;
    }
    const Node n = *p; // a copy: the graph grows
    int64_t rank = g.type(v).rank();
    if (n.is(constant_def)) {
        bool fits = repeats(n.as<Constant>().value, interleaved);
        return fits ? std::optional(first_of(g, v, interleaved)) : std::nullopt;
    }
    if (n.is(map_def)) {
        return half_of_map(g, n, interleaved, depth);
    }
    if (n.is(concat_def)) {
        return half_of_concat(g, n, interleaved, depth);
    }
    if (n.is(reshape_def)) {
        return half_of_reshape(g, n, interleaved, depth);
    }
    if (repeats_one(g, n)) {
        Dims d = g.type(v).dims;
        d.back() = floor_div(d.back(), 2);
        return ops::broadcast_to(g, n.inputs[0], d);
    }
    bool rows = n.is(gather_def) && n.as<Gather>().axis < g.type(n.inputs[0]).rank() - 1;
    bool columns_stay =
        n.is(slice_def) && n.as<Slice>().sizes.back() == g.type(n.inputs[0]).dims.back();
    bool repeated = n.is(broadcast_def) && !g.type(n.inputs[0]).dims.empty() &&
                    g.type(n.inputs[0]).dims.back() == g.type(v).dims.back();
    if (!rows && !columns_stay && !repeated) {
        return std::nullopt;
    }
    auto h = half(g, n.inputs[0], interleaved, depth + 1);
    if (!h) {
        return std::nullopt;
    }
    if (rows) {
        return ops::gather(g, *h, n.inputs[1], n.as<Gather>().axis);
    }
    Dims d = g.type(v).dims;
    d[static_cast<size_t>(rank - 1)] = g.type(*h).dims.back();
    if (repeated) {
        return ops::broadcast_to(g, *h, d);
    }
    Slice a = n.as<Slice>();
    a.sizes = d;
    return g.add1(slice_def, a, {*h});
}

} // namespace

std::optional<Value> half_angles(Graph& g, Value v, bool interleaved) {
    return half(g, v, interleaved, 0);
}

} // namespace ingot::passes
