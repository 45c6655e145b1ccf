// SPDX-License-Identifier: Apache-2.0
#include "lower/dequantised.h"

#include "base/thread_pool.h"
#include "ops/ops.h"
#include "passes/match.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

constexpr size_t longest_chain = 4;
constexpr int64_t grain = 1 << 16; // elements that a thread dequantises at a time

/// Maps an element to its parameter: one for all, one per position of an axis, or one per block
/// along it.
struct ParameterIndex {
    int64_t count = 1;
    int64_t inner = 1;
    int64_t size = 1;
    int64_t block = 0;

    int64_t operator()(int64_t element) const {
        if (count == 1) {
            return 0;
        }
        int64_t position = element / inner % size;
        if (block == 0) {
            return position;
        }
        int64_t blocks = (size + block - 1) / block;
        return (element / inner / size * blocks + position / block) * inner + element % inner;
    }
};

ParameterIndex index_of(const Tensor& q, const Tensor& parameter, const ops::Dequantize& a) {
    ParameterIndex out;
    out.count = parameter.count();
    if (out.count > 1) {
        auto axis = static_cast<size_t>(normalize_axis(a.axis, q.rank()));
        out.size = q.shape()[axis];
        out.block = a.block;
        for (size_t i = axis + 1; i < q.shape().size(); ++i) {
            out.inner *= q.shape()[i];
        }
    }
    return out;
}

} // namespace

bool is_one(const Graph& g, Value v) {
    const Dims& d = g.type(v).dims;
    return std::all_of(d.begin(), d.end(), [](const Dim& x) { return x.is_const(1); });
}

const Tensor* repeated_constant(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    return p != nullptr && p->is(broadcast_def) ? g.constant(p->inputs[0]) : g.constant(v);
}

bool is_zero(const Graph& g, Value zero) {
    const Tensor* t = repeated_constant(g, zero);
    for (int64_t i = 0; t != nullptr && i < t->count(); ++i) {
        if (t->get_f64(i) != 0) {
            return false;
        }
    }
    return t != nullptr;
}

std::optional<Dequantised> dequantised(Graph& g, Value v) {
    std::vector<Node> views;
    const Node* p = g.producer(v);
    DType dtype = g.type(v).dtype;
    for (; p != nullptr && views.size() < longest_chain; p = g.producer(p->inputs[0])) {
        if (p->is(reshape_def) || p->is(permute_def)) {
            views.push_back(*p);
        } else if (!passes::converts_floats(g, *p)) {
            break;
        }
    }
    if (p == nullptr || !p->is(ops::dequantize_def)) {
        return std::nullopt;
    }
    const auto& a = p->as<ops::Dequantize>();
    Dequantised out{p->inputs[0], p->inputs[1], {}, a.axis, a.block, dtype};
    out.zero = p->inputs.size() == 3 ? p->inputs[2] : Value{};
    bool one = a.block == 0 && is_one(g, out.scale) && (!out.zero.valid() || is_one(g, out.zero));
    if (!views.empty() && (!one || is_packed(g.type(out.q).dtype))) {
        return std::nullopt;
    }
    for (size_t i = views.size(); i-- > 0;) {
        out.q = g.add(*views[i].def, views[i].attrs, std::array{out.q})[0];
    }
    out.axis = g.type(out.q).rank() > 0 && !one ? normalize_axis(a.axis, g.type(out.q).rank()) : 0;
    return out;
}

Tensor dequantised_constant(const Tensor& q, const Tensor& scale, const Tensor* zero,
                            const ops::Dequantize& a) {
    Tensor out = Tensor::empty(DType::F32, q.shape());
    std::span<float> to = out.as_mutable<float>();
    std::span<const float> scales = scale.as<float>();
    ParameterIndex of_scale = index_of(q, scale, a);
    ParameterIndex of_zero = zero == nullptr ? ParameterIndex{} : index_of(q, *zero, a);
    const auto* bytes = reinterpret_cast<const uint8_t*>(q.bytes().data());
    auto element = [&q, bytes](int64_t i) {
        return q.dtype() == DType::I8   ? static_cast<float>(static_cast<int8_t>(bytes[i]))
               : q.dtype() == DType::U8 ? static_cast<float>(bytes[i])
                                        : static_cast<float>(q.get_f64(i));
    };
    std::vector<float> zeros(zero == nullptr ? 1 : static_cast<size_t>(zero->count()), 0.0F);
    for (size_t i = 0; zero != nullptr && i < zeros.size(); ++i) {
        zeros[i] = static_cast<float>(zero->get_f64(static_cast<int64_t>(i)));
    }
    ThreadPool::shared().parallel_for(q.count(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float x = element(i) - zeros[static_cast<size_t>(of_zero(i))];
            to[static_cast<size_t>(i)] = x * scales[static_cast<size_t>(of_scale(i))];
        }
    });
    return out;
}

} // namespace ingot::plan
