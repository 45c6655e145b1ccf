// SPDX-License-Identifier: Apache-2.0
#include "ops/support/sampling.h"

#include "base/error.h"

namespace ingot::ops {

namespace {

// Row-major strides of `sizes`.
Dims strides_in(const Dims& sizes) {
    Dims strides(sizes.size(), Dim(1));
    for (size_t i = sizes.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * sizes[i];
    }
    return strides;
}

Value times(Graph& g, Value i64, const Dim& factor) {
    return factor.is_const(1) ? i64 : mul(g, i64, dim_scalar(g, factor));
}

} // namespace

Value point_rows(Graph& g, Value x, size_t lead) {
    const Dims d = dims(g, x);
    std::vector<int64_t> perm;
    Dim rows = 1;
    for (size_t i = 0; i < d.size(); ++i) {
        if (i != lead) {
            perm.push_back(static_cast<int64_t>(i));
            rows = rows * d[i];
        }
    }
    perm.push_back(static_cast<int64_t>(lead));
    return reshape(g, permute(g, x, perm), {rows, d[lead]});
}

Value lead_base(Graph& g, const Dims& lead, const Dims& sizes, size_t rank) {
    Dim all = product(lead);
    Value base = times(g, iota(g, DType::I64, {all}, 0), product(sizes));
    Dims shape = lead;
    shape.resize(rank, Dim(1));
    return reshape(g, base, shape);
}

std::vector<Value> neighbours(Graph& g, Value rows, Value base, const Dims& sizes,
                              std::span<const Taps> axes) {
    const Dims strides = strides_in(sizes);
    std::vector<Tap> found = {{base, Value{}}};
    for (size_t axis = 0; axis < axes.size(); ++axis) {
        std::vector<Tap> next;
        Taps here;
        for (const Tap& t : axes[axis]) {
            here.push_back({times(g, cast(g, t.index, DType::I64), strides[axis]), t.weight});
        }
        for (const Tap& f : found) {
            for (const Tap& t : here) {
                bool both = f.weight.valid() && t.weight.valid();
                Value weight = f.weight.valid() ? f.weight : t.weight;
                next.push_back(
                    {add(g, f.index, t.index), both ? mul(g, f.weight, t.weight) : weight});
            }
        }
        found = std::move(next);
    }
    std::vector<Value> out;
    for (const Tap& f : found) {
        Value v = gather(g, rows, f.index, 0);
        if (f.weight.valid()) {
            Dims w = dims(g, f.weight);
            w.emplace_back(1);
            v = mul(g, v, reshape(g, cast(g, f.weight, g.type(v).dtype), w));
        }
        out.push_back(v);
    }
    return out;
}

Value sum_of(Graph& g, std::span<const Value> values) {
    Value sum = values[0];
    for (Value v : values.subspan(1)) {
        sum = add(g, sum, v);
    }
    return sum;
}

Value channels_after(Graph& g, Value v, size_t lead) {
    auto rank = static_cast<size_t>(g.type(v).rank());
    std::vector<int64_t> perm;
    for (size_t i = 0; i + 1 < rank; ++i) {
        if (i == lead) {
            perm.push_back(static_cast<int64_t>(rank - 1));
        }
        perm.push_back(static_cast<int64_t>(i));
    }
    if (perm.size() < rank) {
        perm.push_back(static_cast<int64_t>(rank - 1));
    }
    return permute(g, v, perm);
}

Value clamp_index(Graph& g, Value x, const Dim& size) {
    DType t = g.type(x).dtype;
    Value zero = scalar(g, t, 0);
    Value low = select(g, less(g, zero, x), x, zero);
    return minimum(g, low, dim_scalar(g, size - Dim(1), t));
}

Taps linear_taps(Graph& g, Value coordinate, const Dim& size) {
    DType t = g.type(coordinate).dtype;
    Value low = unary(g, ExprOp::Floor, coordinate);
    Value fraction = sub(g, coordinate, low);
    Value zero = scalar(g, t, 0);
    auto inside = [&](Value at, Value weight) {
        Value clamped = clamp_index(g, at, size);
        return Tap{clamped, select(g, equal(g, at, clamped), weight, zero)};
    };
    return {inside(low, sub(g, scalar(g, t, 1), fraction)), inside(add(g, low, 1.0), fraction)};
}

Value sample_linear(Graph& g, Value x, size_t lead, const Points& p) {
    DType stored = g.type(x).dtype;
    const Dims d = dims(g, x);
    Value rows = point_rows(g, widen(g, x), lead);
    Dims leading(d.begin(), d.begin() + static_cast<int64_t>(lead));
    auto rank = static_cast<size_t>(g.type(p.coordinates[0]).rank());
    Value base = lead_base(g, leading, p.sizes, rank);
    std::vector<Taps> axes;
    for (size_t i = 0; i < p.sizes.size(); ++i) {
        axes.push_back(linear_taps(g, p.coordinates[i], p.sizes[i]));
    }
    std::vector<Value> all = neighbours(g, rows, base, p.sizes, axes);
    return cast(g, channels_after(g, sum_of(g, all), lead), stored);
}

} // namespace ingot::ops
