// SPDX-License-Identifier: Apache-2.0
#include "lower/f8_products.h"

#include "lower/dequantised.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::plan {

namespace {

/// With sums of fewer products, operands and results take as long in 16-bit floats.
constexpr int64_t least_depth = 64;
/// Channels that a convolution's kernels load at once.
constexpr int64_t channel_vector = 16;
/// Convolutions of up to so many channels have kernels for 16-bit floats.
constexpr int64_t few_channels = 4;

std::optional<Dequantised> f8_operand(Graph& g, Value v) {
    auto x = dequantised(g, v);
    bool plain = x && g.type(x->q).dtype == DType::F8E4M3 && x->block == 0 &&
                 x->dtype != DType::F64 && (!x->zero.valid() || is_zero(g, x->zero));
    return plain ? x : std::nullopt;
}

/// The scale of an operand in f32, along an axis of the results with `trailing` axes behind it.
Value placed(Graph& g, Value scale, int64_t trailing) {
    Dims shape;
    if (!is_one(g, scale)) {
        shape.assign(static_cast<size_t>(trailing) + 1, Dim(1));
        shape[0] = g.type(scale).dims[0];
    }
    const Tensor* t = g.constant(scale);
    if (t == nullptr) {
        return ops::reshape(g, ops::cast(g, scale, DType::F32), shape);
    }
    std::vector<float> numbers;
    for (int64_t i = 0; i < t->count(); ++i) {
        numbers.push_back(static_cast<float>(t->get_f64(i)));
    }
    Shape sizes = *as_const(shape);
    return ops::constant(g, Tensor::of(DType::F32, sizes, std::span<const float>(numbers)));
}

/// The product of two constants, of which one is one number; an invalid value for others.
Value folded(Graph& g, Value a, Value b) {
    const Tensor* one = g.constant(a);
    const Tensor* all = g.constant(b);
    if (one != nullptr && all != nullptr && one->count() != 1) {
        std::swap(one, all);
    }
    if (one == nullptr || all == nullptr || one->count() != 1) {
        return {};
    }
    std::vector<float> numbers;
    for (int64_t i = 0; i < all->count(); ++i) {
        numbers.push_back(one->as<float>()[0] * all->as<float>()[static_cast<size_t>(i)]);
    }
    return ops::constant(g, Tensor::of(DType::F32, all->shape(), std::span<const float>(numbers)));
}

/// sums * scale of one operand * scale of the other, in the product's type.
Value scaled(Graph& g, Value sums, Value a, Value b, DType type) {
    Value both = folded(g, a, b);
    Value y = both.valid() ? ops::mul(g, sums, both) : ops::mul(g, ops::mul(g, sums, a), b);
    return ops::cast(g, y, type);
}

// --- dot

bool contains(const std::vector<int64_t>& axes, int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The position of an operand's free axis among its free axes; -1 for other axes.
int64_t free_position(int64_t axis, const std::vector<int64_t>& batch,
                      const std::vector<int64_t>& contract) {
    int64_t at = axis;
    for (int64_t i = 0; i < axis; ++i) {
        at -= contains(batch, i) || contains(contract, i) ? 1 : 0;
    }
    return contains(batch, axis) || contains(contract, axis) ? -1 : at;
}

/// Whether sums may be of enough products: sizes that are not known may be large.
bool is_deep(const Type& t, const std::vector<int64_t>& contract) {
    int64_t depth = 1;
    for (int64_t axis : contract) {
        std::optional<int64_t> size = t.dims[static_cast<size_t>(axis)].as_const();
        if (!size) {
            return true;
        }
        depth *= *size;
    }
    return depth >= least_depth;
}

std::optional<Values> f8_dot(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    auto a = f8_operand(g, in[0]);
    auto b = a ? f8_operand(g, in[1]) : std::nullopt;
    Dot d = n.as<Dot>();
    if (!b || d.dtype == DType::F64 || !is_deep(g.type(a->q), d.a_contract)) {
        return std::nullopt;
    }
    int64_t rank = g.type(in[0]).rank() + g.type(in[1]).rank() -
                   static_cast<int64_t>(2 * d.a_contract.size() + d.a_batch.size());
    int64_t right =
        g.type(in[1]).rank() - static_cast<int64_t>(d.b_contract.size() + d.b_batch.size());
    int64_t left = rank - right - static_cast<int64_t>(d.a_batch.size());
    int64_t at_a = free_position(a->axis, d.a_batch, d.a_contract);
    int64_t at_b = free_position(b->axis, d.b_batch, d.b_contract);
    if ((!is_one(g, a->scale) && at_a < 0) || (!is_one(g, b->scale) && at_b < 0)) {
        return std::nullopt;
    }
    Value scale_a = placed(g, a->scale, left - 1 - at_a + right);
    Value scale_b = placed(g, b->scale, right - 1 - at_b);
    DType type = d.dtype;
    d.dtype = DType::F32;
    Value sums = ops::dot(g, std::move(d), a->q, b->q);
    return Values{scaled(g, sums, scale_a, scale_b, type)};
}

// --- conv

/// Whether convolutions with these weights load vectors of channels, and sum enough products.
bool has_many_channels(const Type& w, int64_t groups) {
    int64_t depth = 1;
    for (size_t i = 1; i < w.dims.size(); ++i) {
        if (!w.dims[i].is_const()) {
            return false;
        }
        depth *= w.dims[i].value();
    }
    int64_t channels = w.dims[1].value();
    return channels % channel_vector == 0 && depth >= least_depth &&
           (groups == 1 || channels >= least_depth);
}

bool has_few_channels(const Type& w, int64_t groups) {
    return groups == 1 && w.dims[1].is_const() && w.dims[1].value() <= few_channels;
}

bool has_kernels(const Graph& g, Value w, int64_t groups) {
    return has_many_channels(g.type(w), groups) ||
           (has_few_channels(g.type(w), groups) && g.constant(w) != nullptr);
}

/// A constant in 16-bit floats, which have every number of f8e4m3.
Value widened(Graph& g, Value w) {
    const Tensor& narrow = *g.constant(w);
    Tensor wide = Tensor::empty(DType::F16, narrow.shape());
    for (int64_t i = 0; i < narrow.count(); ++i) {
        wide.set_f64(i, narrow.get_f64(i));
    }
    return ops::constant(g, std::move(wide));
}

std::optional<Values> f8_conv(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    auto x = f8_operand(g, in[0]);
    auto w = x ? f8_operand(g, in[1]) : std::nullopt;
    ops::Conv a = n.as<ops::Conv>();
    if (!w || !is_one(g, x->scale) || (!is_one(g, w->scale) && w->axis != 0) ||
        a.dtype == DType::F64 || !has_kernels(g, w->q, a.groups)) {
        return std::nullopt;
    }
    for (Dims* pads : {&a.low, &a.high}) {
        *pads = r.mapped(*pads);
    }
    DType type = a.dtype;
    a.dtype = DType::F32;
    auto spatial = static_cast<int64_t>(a.strides.size());
    Value scale_x = placed(g, x->scale, 0);
    Value scale_w = placed(g, w->scale, spatial);
    bool few = has_few_channels(g.type(w->q), a.groups);
    Value image = few ? ops::cast(g, x->q, DType::F16) : x->q;
    Value weights = few ? widened(g, w->q) : w->q;
    Value sums = ops::conv(g, std::move(a), image, weights);
    return Values{scaled(g, sums, scale_x, scale_w, type)};
}

} // namespace

std::optional<Values> f8_product(Rewriter& r, const Node& n, std::span<const Value> in) {
    return n.is(dot_def)         ? f8_dot(r, n, in)
           : n.is(ops::conv_def) ? f8_conv(r, n, in)
                                 : std::nullopt;
}

std::optional<Values> float_weight(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    const Node* p = n.is(ops::conv_def) && f8_operand(g, in[0]) ? g.producer(in[1]) : nullptr;
    if (p == nullptr || !p->is(ops::dequantize_def)) {
        return std::nullopt;
    }
    const Tensor* q = g.constant(p->inputs[0]);
    const Tensor* scale = g.constant(p->inputs[1]);
    const Tensor* zero = p->inputs.size() == 3 ? g.constant(p->inputs[2]) : nullptr;
    DType type = g.type(in[1]).dtype;
    bool known = q != nullptr && scale != nullptr && (p->inputs.size() == 2 || zero != nullptr);
    if (!known || scale->dtype() != DType::F32 || (type != DType::F32 && type != DType::F16)) {
        return std::nullopt;
    }
    Tensor w = dequantised_constant(*q, *scale, zero, p->as<ops::Dequantize>());
    if (type == DType::F16) {
        Tensor halves = Tensor::empty(type, w.shape());
        std::transform(w.as<float>().begin(), w.as<float>().end(),
                       halves.as_mutable<uint16_t>().begin(), f16_from_f32);
        w = std::move(halves);
    }
    Value wide = ops::constant(g, std::move(w));
    return r.copy(n, std::array{in[0], wide});
}

} // namespace ingot::plan
