// SPDX-License-Identifier: Apache-2.0
// quantized_products: products of two quantised operands become integer products, or products of
// f8e4m3 on devices that have them, followed by dequantisation of the sums; products of floats with
// a quantised weight become quantized_dot, whose kernels read the weight as stored.
// integer_products: only the first of these, for backends whose kernels multiply bytes of any shape
// and read no quantised weight.
#include "ir/rewrite.h"
#include "lower/before_views.h"
#include "lower/dequantised.h"
#include "lower/f8_products.h"
#include "lower/gathered_bytes.h"
#include "lower/lowering.h"
#include "lower/packed_transpose.h"
#include "lower/same_bytes.h"
#include "lower/signed_weight.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ingot::plan {

namespace {

constexpr int64_t longest_vector = 65536;

bool per_tensor(const Graph& g, const Dequantised& x) {
    return x.block == 0 && g.constant(x.scale)->count() == 1;
}

// --- integer products

/// A vector along an axis with `trailing` axes behind it; a scalar when it has one element.
template <class T>
Value along(Graph& g, DType t, const std::vector<T>& v, int64_t trailing) {
    Shape shape;
    if (v.size() > 1) {
        shape.assign(static_cast<size_t>(trailing) + 1, 1);
        shape[0] = static_cast<int64_t>(v.size());
    }
    return ops::constant(g, Tensor::of(t, shape, std::span<const T>(v)));
}

struct Operands {
    Dequantised x;
    SignedWeight w;
    int64_t zero = 0;          // of x
    std::vector<double> scale; // of the sums
};

/// x with one scale, w a constant with one scale or one per position of `axis`, the axis of the
/// results.
std::optional<Operands> integer_operands(Graph& g, Value left, const std::optional<Dequantised>& w,
                                         int64_t axis, ZeroPoints zero_points) {
    auto x = w ? dequantised(g, left) : std::nullopt;
    if (!x || g.constant(x->scale) == nullptr || g.constant(w->scale) == nullptr ||
        !per_tensor(g, *x) || w->block != 0 || !is_byte(g.type(x->q).dtype) ||
        x->dtype == DType::F64) {
        return std::nullopt;
    }
    auto zero = zeros_of(g, *x);
    bool aligned = per_tensor(g, *w) || w->axis == axis;
    auto bytes = zero && zero->size() == 1 && aligned ? signed_weight(g, *w, axis, zero_points)
                                                      : std::nullopt;
    if (!bytes) {
        return std::nullopt;
    }
    Operands out{*x, *bytes, (*zero)[0], {}};
    auto left_scale = static_cast<float>(g.constant(x->scale)->get_f64(0));
    const Tensor* scales = g.constant(w->scale);
    for (int64_t i = 0; i < scales->count(); ++i) {
        out.scale.push_back(left_scale * static_cast<float>(scales->get_f64(i)));
    }
    return out;
}

/// Whether sums of this many products of bytes fit 32 bits.
bool sums_fit(int64_t depth, const SignedWeight& w) {
    return depth * 255 * (w.zeros.empty() ? 128 : 255) < int64_t{1} << 31;
}

/// (sums - zero of x times sums of w) * scale, in the product's type. Zero points of w are
/// subtracted before (less_zeros()).
Value dequantised_sums(Graph& g, Value sums, const Operands& o, int64_t trailing, DType type) {
    if (o.zero != 0) {
        std::vector<int64_t> shift = o.w.sums;
        for (int64_t& s : shift) {
            s *= o.zero;
        }
        sums = ops::sub(g, sums, along(g, DType::I32, shift, trailing));
    }
    Value scale = along(g, DType::F32, o.scale, trailing);
    return ops::cast(g, ops::mul(g, ops::cast(g, sums, DType::F32), scale), type);
}

/// Convolutions of up to so many channels have kernels for 16-bit floats, and none for bytes.
constexpr int64_t few_channels = 4;

/// Whether 16-bit floats multiply these bytes without rounding: their sums fit f32.
bool fits_floats(const ops::Conv& a, const Tensor& w) {
    int64_t depth = w.count() / std::max<int64_t>(w.shape()[0], 1);
    return a.groups == 1 && w.shape()[1] <= few_channels && depth * 255 * 128 < int64_t{1} << 24;
}

/// The convolution of bytes as one of 16-bit floats, which are whole numbers.
Value conv_of_whole_floats(Graph& g, ops::Conv a, const Operands& o) {
    const Tensor& bytes = *g.constant(o.w.v);
    Tensor w = Tensor::empty(DType::F16, bytes.shape());
    for (int64_t i = 0; i < bytes.count(); ++i) {
        w.set_f64(i, bytes.get_f64(i));
    }
    a.dtype = DType::F32;
    Value x = ops::sub(g, ops::cast(g, o.x.q, DType::F32), static_cast<double>(o.zero));
    x = ops::cast(g, x, DType::F16);
    return ops::conv(g, std::move(a), x, ops::constant(g, std::move(w)));
}

std::optional<Values> integer_conv(Rewriter& r, const Node& n, std::span<const Value> in,
                                   bool floats_of_few_channels) {
    if (!n.is(ops::conv_def) || r.out().constant(in[1]) != nullptr) {
        return std::nullopt;
    }
    Graph& g = r.out();
    auto o = integer_operands(g, in[0], dequantised(g, in[1]), 0, ZeroPoints::Subtracted);
    const Tensor* w = o ? g.constant(o->w.v) : nullptr;
    if (w == nullptr || !sums_fit(w->count() / std::max<int64_t>(w->shape()[0], 1), o->w)) {
        return std::nullopt;
    }
    ops::Conv a = n.as<ops::Conv>();
    for (Dims* pads : {&a.low, &a.high}) {
        *pads = r.mapped(*pads);
    }
    DType type = a.dtype;
    auto spatial = static_cast<int64_t>(a.strides.size());
    if (floats_of_few_channels && fits_floats(a, *w)) {
        Value sums = conv_of_whole_floats(g, std::move(a), *o);
        o->zero = 0; // subtracted already
        return Values{dequantised_sums(g, sums, *o, spatial, type)};
    }
    a.dtype = DType::I32;
    Value x = o->x.q;
    auto padded = [](const Dims& d) {
        return std::any_of(d.begin(), d.end(), [](const Dim& p) { return !p.is_const(0); });
    };
    if (o->zero != 0 && (padded(a.low) || padded(a.high))) {
        // The padding must be the quantised zero.
        Dims low(2, Dim(0));
        Dims high(2, Dim(0));
        low.insert(low.end(), a.low.begin(), a.low.end());
        high.insert(high.end(), a.high.begin(), a.high.end());
        x = ops::pad(g, x, low, high, static_cast<double>(o->zero));
        a.low.assign(a.low.size(), Dim(0));
        a.high.assign(a.high.size(), Dim(0));
    }
    Value sums = ops::conv(g, std::move(a), x, o->w.v);
    return Values{dequantised_sums(g, sums, *o, spatial, type)};
}

/// The one axis of b that is neither batch nor contracted, or -1.
int64_t free_axis(const Graph& g, const Dot& d, Value b) {
    int rank = g.type(b).rank();
    bool one = d.b_batch.empty() && static_cast<int>(d.b_contract.size()) + 1 == rank;
    for (int64_t i = 0; one && i < rank; ++i) {
        if (std::find(d.b_contract.begin(), d.b_contract.end(), i) == d.b_contract.end()) {
            return i;
        }
    }
    return -1;
}

std::optional<Values> conv_of_bytes(Rewriter& r, const Node& n, std::span<const Value> in) {
    return integer_conv(r, n, in, false);
}

std::optional<Values> conv_of_bytes_or_few_channels(Rewriter& r, const Node& n,
                                                    std::span<const Value> in) {
    return integer_conv(r, n, in, true);
}

/// Sums of x and (w - zeros) from those of x and w, of which `depth` are added: less the zeros of w
/// times the sums of x, and with x's own zero point in both.
Value less_zeros(Graph& g, Value sums, const Operands& o, const Dot& d, int64_t depth) {
    Value of_rows = ops::reduce_sum(g, ops::cast(g, o.x.q, DType::I32), d.a_contract);
    of_rows = ops::sub(g, of_rows, ops::scalar_i64(g, DType::I32, depth * o.zero));
    of_rows = ops::unsqueeze(g, of_rows, {g.type(of_rows).rank()});
    return ops::sub(g, sums, ops::mul(g, of_rows, along(g, DType::I32, o.w.zeros, 0)));
}

/// The weight's constant behind a permutation, with the product's and the weight's axes as there.
void read_before_permutation(const Graph& g, Dequantised& w, Dot& d) {
    const Node* p = g.producer(w.q);
    if (p == nullptr || !p->is(permute_def) || g.constant(p->inputs[0]) == nullptr) {
        return;
    }
    auto before = [&](int64_t axis) { return p->as<Permute>().perm[static_cast<size_t>(axis)]; };
    for (int64_t& axis : d.b_contract) {
        axis = before(axis);
    }
    w.axis = before(w.axis);
    w.q = p->inputs[0];
}

std::optional<Values> dot_of_bytes(Rewriter& r, const Node& n, std::span<const Value> in,
                                   ZeroPoints zero_points) {
    Graph& g = r.out();
    if (!n.is(dot_def) || !is_float(g.type(in[0]).dtype) || g.constant(in[1]) != nullptr) {
        return std::nullopt;
    }
    Dot d = n.as<Dot>();
    auto weight = free_axis(g, d, in[1]) >= 0 ? dequantised(g, in[1]) : std::nullopt;
    if (!weight) {
        return std::nullopt;
    }
    if (zero_points == ZeroPoints::Kept) {
        read_before_permutation(g, *weight, d);
    }
    int64_t axis = free_axis(g, d, weight->q);
    auto o = integer_operands(g, in[0], weight, axis, zero_points);
    const Tensor* w = o ? g.constant(o->w.v) : nullptr;
    int64_t columns = w != nullptr ? w->shape()[static_cast<size_t>(axis)] : 0;
    int64_t depth = w != nullptr ? w->count() / std::max<int64_t>(columns, 1) : 0;
    if (w == nullptr || !sums_fit(depth, o->w)) {
        return std::nullopt;
    }
    DType type = d.dtype;
    d.dtype = DType::I32;
    Value sums = ops::dot(g, d, o->x.q, o->w.v);
    if (!o->w.zeros.empty()) {
        sums = less_zeros(g, sums, *o, d, depth);
    }
    return Values{dequantised_sums(g, sums, *o, 0, type)};
}

std::optional<Values> integer_dot(Rewriter& r, const Node& n, std::span<const Value> in) {
    return dot_of_bytes(r, n, in, ZeroPoints::Subtracted);
}

std::optional<Values> integer_dot_of_any_weight(Rewriter& r, const Node& n,
                                                std::span<const Value> in) {
    return dot_of_bytes(r, n, in, ZeroPoints::Kept);
}

// --- quantised weights

/// The zero point in the kernels' form: one number, or one per position in bytes.
std::optional<Value> weight_zero(Graph& g, const Dequantised& w) {
    if (!w.zero.valid() || !is_integer(g.type(w.zero).dtype)) {
        return w.zero;
    }
    DType packed = g.type(w.zero).dtype;
    const Tensor* t = repeated_constant(g, w.zero);
    if (t == nullptr) {
        return is_packed(packed) ? std::nullopt : std::optional(w.zero);
    }
    auto zeros = zeros_of(g, w);
    if (!zeros) {
        return std::nullopt;
    }
    DType type = packed == DType::I4 ? DType::I8 : packed == DType::U4 ? DType::U8 : packed;
    if (all_equal(*zeros, (*zeros)[0])) {
        return (*zeros)[0] == 0 ? Value{} : ops::scalar_i64(g, type, (*zeros)[0]);
    }
    Shape shape = t->shape();
    return ops::constant(g, Tensor::of(type, shape, std::span<const int64_t>(*zeros)));
}

bool is_quantised_type(DType t) {
    return is_byte(t) || t == DType::I4 || t == DType::U4 || t == DType::F8E4M3 ||
           t == DType::F8E5M2;
}

std::optional<Values> quantised_weight(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    if (!n.is(dot_def) || g.constant(in[1]) != nullptr) {
        return std::nullopt;
    }
    const auto& d = n.as<Dot>();
    int64_t axis = free_axis(g, d, in[1]);
    auto w = axis >= 0 && g.type(in[1]).rank() == 2 ? dequantised(g, in[1]) : std::nullopt;
    if (!w || !is_quantised_type(g.type(w->q).dtype) || (w->block > 0 && w->axis == axis)) {
        return std::nullopt;
    }
    auto zero = weight_zero(g, *w);
    if (!zero) {
        return std::nullopt;
    }
    ops::QuantizedDot a{d.a_contract, d.b_contract, d.dtype, w->axis, w->block};
    const Tensor* t = is_packed(g.type(w->q).dtype) ? g.constant(w->q) : nullptr;
    if (t != nullptr && axis == 1 && w->block == 0) {
        w->q = ops::constant(g, transposed_packed(*t));
        a.b_contract = {1};
        a.axis = 1 - w->axis;
    } else if (t != nullptr && axis == 1) {
        w->q = ops::constant(g, transposed_packed(*t));
        w->scale = ops::permute(g, w->scale, {1, 0});
        *zero = zero->valid() && g.type(*zero).rank() == 2 ? ops::permute(g, *zero, {1, 0}) : *zero;
        a.b_contract = {1};
        a.axis = 1;
    }
    return Values{ops::quantized_dot(g, a, in[0], w->q, w->scale, *zero)};
}

/// Folds dequantised biases and the like.
std::optional<Values> constant_vector(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    const Type& type = r.from().type(n.outputs[0]);
    if (!n.is(ops::dequantize_def) || type.rank() > 1 || n.as<ops::Dequantize>().block != 0) {
        return std::nullopt;
    }
    const Tensor* q = g.constant(in[0]);
    const Tensor* scale = g.constant(in[1]);
    const Tensor* zero = in.size() == 3 ? g.constant(in[2]) : nullptr;
    if (q == nullptr || scale == nullptr || (in.size() == 3 && zero == nullptr) ||
        q->count() > longest_vector || type.dtype == DType::F64) {
        return std::nullopt;
    }
    std::vector<double> values;
    for (int64_t i = 0; i < q->count(); ++i) {
        double z = zero == nullptr ? 0 : zero->get_f64(zero->count() == 1 ? 0 : i);
        auto steps = static_cast<float>(q->get_f64(i) - z);
        values.push_back(steps * static_cast<float>(scale->get_f64(scale->count() == 1 ? 0 : i)));
    }
    return Values{
        ops::constant(g, Tensor::of(type.dtype, q->shape(), std::span<const double>(values)))};
}

/// Leaves out zero points that are 0, and makes a vector of one scale a number: operands of an
/// epilogue that need no reading.
std::optional<Values> plain_parameters(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    bool quantises = n.is(ops::quantize_def) && n.as<ops::Quantize>().block == 0;
    if (!quantises && !(n.is(ops::dequantize_def) && n.as<ops::Dequantize>().block == 0)) {
        return std::nullopt;
    }
    const Tensor* scale = g.constant(in[1]);
    bool vector = scale != nullptr && scale->count() == 1 && scale->rank() > 0;
    bool zero = in.size() == 3 && is_zero(g, in[2]);
    if (!vector && !zero) {
        return std::nullopt;
    }
    Values operands(in.begin(), zero ? in.begin() + 2 : in.end());
    if (vector) {
        operands[1] = ops::constant(g, Tensor::scalar(scale->dtype(), scale->get_f64(0)));
    }
    return g.add(*n.def, n.attrs, operands);
}

using Rule = std::optional<Values> (*)(Rewriter&, const Node&, std::span<const Value>);

Graph with_rules(const Graph& g, std::span<const Rule> rules) {
    Graph out = rewrite(quantised_before_views(g),
                        [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                            std::optional<Values> values;
                            for (size_t i = 0; i < rules.size() && !values; ++i) {
                                values = rules[i](r, n, in);
                            }
                            return values;
                        });
    return dequantised_before_views(dead_code(out));
}

} // namespace

Pass quantized_products(const KernelSet&) {
    return {
        .name = "quantized_products",
        .summary = "products of quantised operands become integer ones, or ones of f8e4m3",
        .run =
            [](const Graph& g, const PassOptions& o) {
                std::vector<Rule> rules = {constant_vector, same_bytes, gathered_bytes,
                                           conv_of_bytes_or_few_channels, integer_dot};
                if (o.f8_products) {
                    rules.push_back(f8_product);
                }
                rules.insert(rules.end(), {float_weight, quantised_weight, plain_parameters});
                return with_rules(g, rules);
            },
    };
}

Pass integer_products(const KernelSet&) {
    return {
        .name = "integer_products",
        .summary = "products of quantised operands become integer ones",
        .run =
            [](const Graph& g, const PassOptions& o) {
                std::vector<Rule> rules = {constant_vector, same_bytes, gathered_bytes,
                                           integer_dot_of_any_weight, plain_parameters};
                if (o.byte_convolutions) {
                    rules.push_back(conv_of_bytes);
                }
                return with_rules(g, rules);
            },
    };
}

} // namespace ingot::plan
