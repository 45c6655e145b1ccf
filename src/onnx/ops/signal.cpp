// SPDX-License-Identifier: Apache-2.0
// DFT and STFT, and Rfft and Irfft of com.microsoft, as products with matrices of roots of unity.
// Long transforms of composite length are split into two shorter ones (Cooley and Tukey).
#include "base/error.h"
#include "onnx/ops/support/inputs.h"

#include <array>
#include <cmath>
#include <numbers>

namespace ingot::onnx {

namespace {

constexpr int64_t longest_matrix = 512;

// Real and imaginary parts, each [before, n, after]; no imaginary part means 0.
struct Complex {
    Value re;
    Value im;
};

struct Table {
    Value cos;
    Value sin;
};

// cos and sin of 2 pi p / n for integers p. Integer arithmetic splits the turn into quarters and a
// remainder, so that multiples of a quarter are exact and the remainder is small.
Table roots(ingot::Graph& g, Value products, const Dim& n, DType t) {
    Value size = ops::dim_scalar(g, n);
    Value quarters = ops::mul(g, ops::binary(g, ExprOp::Mod, products, size), 4.0);
    Value quarter = ops::div(g, quarters, size);
    Value rest = ops::cast(g, ops::binary(g, ExprOp::Mod, quarters, size), DType::F64);
    Value part = ops::div(g, rest, ops::cast(g, size, DType::F64));
    Value angle = ops::mul(g, part, std::numbers::pi / 2);
    Value cos = ops::unary(g, ExprOp::Cos, angle);
    Value sin = ops::unary(g, ExprOp::Sin, angle);
    auto is = [&](double q) { return ops::binary(g, ExprOp::Eq, quarter, q); };
    Value odd = ops::binary(g, ExprOp::Or, is(1), is(3));
    Value negative_cos = ops::binary(g, ExprOp::Or, is(1), is(2));
    Value negative_sin = ops::binary(g, ExprOp::Or, is(2), is(3));
    auto chosen = [&](Value swap, Value negative, Value a, Value b) {
        Value v = ops::select(g, swap, a, b);
        return ops::cast(g, ops::select(g, negative, ops::unary(g, ExprOp::Neg, v), v), t);
    };
    return {chosen(odd, negative_cos, sin, cos), chosen(odd, negative_sin, cos, sin)};
}

// i64 [rows, columns]: i * j.
Value products(ingot::Graph& g, const Dim& rows, const Dim& columns) {
    Value i = ops::iota(g, DType::I64, {rows, Dim(1)}, 0);
    return ops::mul(g, i, ops::iota(g, DType::I64, {Dim(1), columns}, 1));
}

// [bins, n] times the middle axis of x.
Value apply(ingot::Graph& g, Value matrix, Value x) {
    Value y = ops::dot(g, Dot{{}, {}, {1}, {1}, g.type(x).dtype}, matrix, x);
    return ops::permute(g, y, {1, 0, 2});
}

// (re + i im) * (c + sign * i s)
Complex turned(ingot::Graph& g, const Complex& x, const Table& t, double sign) {
    auto signed_sum = [&](Value a, Value b, double s) {
        return s > 0 ? ops::add(g, a, b) : ops::sub(g, a, b);
    };
    Complex y{ops::mul(g, x.re, t.cos), {}};
    Value cross = ops::mul(g, x.re, t.sin);
    if (!x.im.valid()) {
        y.im = sign > 0 ? cross : ops::unary(g, ExprOp::Neg, cross);
        return y;
    }
    y.re = signed_sum(y.re, ops::mul(g, x.im, t.sin), -sign);
    y.im = signed_sum(ops::mul(g, x.im, t.cos), cross, sign);
    return y;
}

Complex by_matrix(ingot::Graph& g, const Complex& x, const Dim& n, const Dim& bins, double sign) {
    Table t = roots(g, products(g, bins, n), n, g.type(x.re).dtype);
    Complex y{apply(g, t.cos, x.re), apply(g, t.sin, x.re)};
    if (!x.im.valid()) {
        y.im = sign > 0 ? y.im : ops::unary(g, ExprOp::Neg, y.im);
        return y;
    }
    Value ss = apply(g, t.sin, x.im);
    Value sc = apply(g, t.cos, x.im);
    y.re = sign > 0 ? ops::sub(g, y.re, ss) : ops::add(g, y.re, ss);
    y.im = sign > 0 ? ops::add(g, sc, y.im) : ops::sub(g, sc, y.im);
    return y;
}

// The largest divisor of n that does not exceed its square root; 1 for primes.
int64_t middle_divisor(int64_t n) {
    if (n > (int64_t{1} << 32)) {
        return 1; // too large for any memory, and slow to factor
    }
    auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
    while (d > 1 && n % d != 0) {
        --d;
    }
    return d;
}

Complex reshaped(ingot::Graph& g, const Complex& x, const Dims& dims) {
    return {ops::reshape(g, x.re, dims), x.im.valid() ? ops::reshape(g, x.im, dims) : Value{}};
}

// sum over t of x[t] * exp(sign * 2 pi i k t / n) for k < bins; x is [before, n, after].
Complex transform(ingot::Graph& g, const Complex& x, const Dim& n, const Dim& bins, double sign) {
    int64_t a = n.is_const() && n.value() > longest_matrix ? middle_divisor(n.value()) : 1;
    if (a == 1) {
        return by_matrix(g, x, n, bins, sign);
    }
    // t = b t1 + t2 and k = k1 + a k2: transforms of length a over t1, a twist, and of length b.
    const Dims dims = ops::dims(g, x.re);
    const Dim& before = dims[0];
    const Dim& after = dims[2];
    Dim b = n.value() / a;
    Complex y = transform(g, reshaped(g, x, {before, Dim(a), b * after}), a, a, sign);
    y = reshaped(g, y, {before, Dim(a), b, after});
    Table twist = roots(g, products(g, a, b), n, g.type(x.re).dtype);
    for (Value* v : {&twist.cos, &twist.sin}) {
        *v = ops::reshape(g, *v, {Dim(1), Dim(a), b, Dim(1)});
    }
    y = turned(g, y, twist, sign);
    y = transform(g, reshaped(g, y, {before * Dim(a), b, after}), b, b, sign);
    y = reshaped(g, y, {before, Dim(a), b, after});
    for (Value* v : {&y.re, &y.im}) {
        *v = ops::reshape(g, ops::permute(g, *v, {0, 2, 1, 3}), {before, n, after});
        *v = ops::slice(g, *v, 1, 0, bins);
    }
    return y;
}

// Cuts the middle axis, or pads it with zeros.
Value resized(ingot::Graph& g, Value x, const Dim& n) {
    const Dims dims = ops::dims(g, x);
    if (dims[1] == n) {
        return x;
    }
    Dim kept = min(dims[1], n);
    Value y = ops::pad(g, ops::slice(g, x, 1, 0, kept), {Dim(0), Dim(0), Dim(0)},
                       {Dim(0), n - kept, Dim(0)});
    return ops::reshape(g, y, {dims[0], n, dims[2]});
}

// The parts of x [..., 1 or 2].
Complex parts(ingot::Graph& g, Value x) {
    int64_t last = g.type(x).rank() - 1;
    auto part = [&](int64_t i) { return ops::squeeze(g, ops::slice(g, x, last, i, 1), {last}); };
    bool real = ops::dims(g, x).back().is_const(1);
    return {part(0), real ? Value{} : part(1)};
}

Value joined(ingot::Graph& g, const Complex& y) {
    Values both = {ops::unsqueeze(g, y.re, {-1}), ops::unsqueeze(g, y.im, {-1})};
    return ops::concat(g, both, -1);
}

// The real signal of n elements whose spectrum begins with x: the other half is the conjugate, so
// each bin counts twice except those without a partner, the first and for even n the last.
Value real_inverse(ingot::Graph& g, const Complex& x, const Dim& n) {
    DType t = g.type(x.re).dtype;
    Dim bins = floor_div(n, 2) + Dim(1);
    Complex half{resized(g, x.re, bins), {}};
    half.im = x.im.valid() ? resized(g, x.im, bins) : Value{};
    Value k = ops::iota(g, DType::I64, {bins}, 0);
    Value partner =
        ops::binary(g, ExprOp::Mod, ops::sub(g, ops::dim_scalar(g, n), k), ops::dim_scalar(g, n));
    Value alone = ops::equal(g, partner, k);
    Value weight = ops::select(g, alone, ops::scalar(g, t, 1), ops::scalar(g, t, 2));
    weight = ops::reshape(g, weight, {bins, Dim(1)});
    // sum over k of weight (re cos - im sin)
    Table table = roots(g, products(g, n, bins), n, t);
    Value y = apply(g, table.cos, ops::mul(g, half.re, weight));
    if (half.im.valid()) {
        y = ops::sub(g, y, apply(g, table.sin, ops::mul(g, half.im, weight)));
    }
    return ops::div(g, y, size_scalar(g, n, t));
}

struct Options {
    bool inverse = false;
    bool onesided = false;
};

// c [before, m, after] -> [before, bins, after]; no imaginary part for a real result.
Complex dft_parts(ingot::Graph& g, Complex c, const Dim& n, Options o) {
    if (o.inverse && o.onesided) {
        return {real_inverse(g, c, n), {}};
    }
    c.re = resized(g, c.re, n);
    c.im = c.im.valid() ? resized(g, c.im, n) : c.im;
    Dim bins = o.onesided ? floor_div(n, 2) + Dim(1) : n;
    Complex y = transform(g, c, n, bins, o.inverse ? 1 : -1);
    if (o.inverse) {
        Value scale = size_scalar(g, n, g.type(y.re).dtype);
        y = {ops::div(g, y.re, scale), ops::div(g, y.im, scale)};
    }
    return y;
}

// x [before, m, after, 1 or 2] -> [before, bins, after, 1 or 2]
Value dft_middle(ingot::Graph& g, Value x, const Dim& n, Options o) {
    Complex y = dft_parts(g, parts(g, x), n, o);
    return y.im.valid() ? joined(g, y) : ops::unsqueeze(g, y.re, {3});
}

// c with its axis `at` transformed.
Complex dft_along(ingot::Graph& g, const Complex& c, size_t at, const Dim& n, Options o) {
    const Dims dims = ops::dims(g, c.re);
    Complex y =
        reshaped(g, c, {product_of(dims, 0, at), dims[at], product_of(dims, at + 1, dims.size())});
    y = dft_parts(g, y, n, o);
    Dims out = dims;
    out[at] = ops::dims(g, y.re)[1];
    return reshaped(g, y, out);
}

void check_signal(const NodeContext& c, int64_t least_rank) {
    const Type& t = c.type(0);
    c.ensure(t.rank() >= least_rank, "input 0 is ", t, ", expected rank ", least_rank, " or more");
    if (!t.dims.back().is_const()) {
        c.refuse(RefusalKind::Dynamic, "the last size of input 0, ", t,
                 ", is not known before the run; it tells real from complex");
    }
    c.ensure(t.dims.back().is_const(1) || t.dims.back().is_const(2), "the last size of input 0, ",
             t, ", is ", t.dims.back(), ", expected 1 (real) or 2 (complex)");
}

Options dft_options(NodeContext& c) {
    Options o{c.i("inverse", 0) != 0, c.i("onesided", 0) != 0};
    bool real = c.type(0).dims.back().is_const(1);
    c.ensure(!o.onesided || o.inverse || real, "a one-sided transform needs a real signal, got ",
             c.type(0));
    return o;
}

Dim dft_length(NodeContext& c, const Dim& size, Options o) {
    if (c.has(1)) {
        return size_input(c, 1);
    }
    return o.inverse && o.onesided ? Dim(2) * (size - Dim(1)) : size;
}

Values dft_at(NodeContext& c, int64_t axis) {
    const Dims dims = c.type(0).dims;
    Options o = dft_options(c);
    axis = normalize_axis(axis, c.rank(0));
    c.ensure(axis + 1 < c.rank(0),
             "the axis is the last one, which holds the parts of complex numbers");
    auto at = static_cast<size_t>(axis);
    Complex x = parts(c.g, ops::widen(c.g, c.in(0)));
    Complex y = dft_along(c.g, x, at, dft_length(c, dims[at], o), o);
    Value all = y.im.valid() ? joined(c.g, y) : ops::unsqueeze(c.g, y.re, {-1});
    return {ops::cast(c.g, all, c.dtype(0))};
}

// For an axis known only at run time: reshapes it to the middle one of three.
Values dft_anywhere(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims dims = c.type(0).dims;
    Options o = dft_options(c);
    auto rank = static_cast<int64_t>(dims.size());
    Value axis = ops::wrap_indices(g, to_scalar(g, to_i64(g, c.in(2))), rank);
    Dims signal(dims.begin(), dims.end() - 1);
    AroundAxis a = around_axis(g, signal, axis);
    Dim n = dft_length(c, a.size, o);
    Value x = ops::reshape(g, ops::widen(g, c.in(0)), {a.before, a.size, a.after, dims.back()});
    Value y = dft_middle(g, x, n, o);
    Dims made = ops::dims(g, y);
    Dims out = signal;
    if (!(made[1] == a.size)) {
        Value here = ops::equal(g, ops::iota(g, DType::I64, {Dim(rank - 1)}, 0), axis);
        out = ops::dims_from(
            g, ops::select(g, here, ops::dim_scalar(g, made[1]), ops::dims_tensor(g, signal)));
    }
    out.push_back(made[3]);
    return {ops::cast(g, ops::reshape(g, y, out), c.dtype(0))};
}

Values dft_attribute(NodeContext& c) {
    check_signal(c, 2);
    return dft_at(c, c.i("axis", 1));
}

Values dft(NodeContext& c) {
    check_signal(c, 2);
    if (!c.has(2)) {
        return dft_at(c, -2);
    }
    auto axis = known_ints(c, 2);
    return axis && axis->size() == 1 ? dft_at(c, (*axis)[0]) : dft_anywhere(c);
}

// [batch, length, parts] -> [batch, frames, size, parts]
Value framed(NodeContext& c, const Dim& size) {
    ingot::Graph& g = c.g;
    const Dims dims = c.type(0).dims;
    auto step = known_ints(c, 1);
    if (step && step->size() == 1 && size.is_const()) {
        c.ensure((*step)[0] > 0, "the frame step is ", (*step)[0]);
        Value w = ops::window(g, c.in(0), Window{{1}, {size.value()}, {(*step)[0]}, {1}});
        return ops::permute(g, w, {0, 1, 3, 2});
    }
    Dim hop = size_input(c, 1);
    Dim frames = max(floor_div(dims[1] - size, hop) + Dim(1), 0);
    Value start =
        ops::mul(g, ops::iota(g, DType::I64, {frames, Dim(1)}, 0), ops::dim_scalar(g, hop));
    Value index = ops::add(g, start, ops::iota(g, DType::I64, {Dim(1), size}, 1));
    return ops::gather(g, c.in(0), index, 1);
}

Values stft(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 3, "input 0 is ", c.type(0), ", expected [batch, length, 1 or 2]");
    check_signal(c, 3);
    const Dims dims = c.type(0).dims;
    bool onesided = c.i("onesided", 1) != 0;
    c.ensure(!onesided || dims[2].is_const(1), "a one-sided transform needs a real signal, got ",
             c.type(0));
    Dim size = c.has(2) ? c.dim(2, 0) : c.has(3) ? size_input(c, 3) : dims[1];
    Value frames = ops::widen(g, framed(c, size));
    if (c.has(2)) {
        Value window = ops::reshape(g, ops::widen(g, c.in(2)), {size, Dim(1)});
        frames = ops::mul(g, frames, window);
    }
    const Dims made = ops::dims(g, frames);
    Value x = ops::reshape(g, frames, {made[0] * made[1], size, Dim(1), made[3]});
    Value y = dft_middle(g, x, size, Options{false, onesided});
    Dims out = {made[0], made[1], ops::dims(g, y)[1], ops::dims(g, y)[3]};
    return {ops::cast(g, ops::reshape(g, y, out), c.dtype(0))};
}

// --- Rfft, Irfft

// `parts` is 1 where the last axis holds the parts of complex numbers.
void check_signal_axes(const NodeContext& c, int64_t count, int64_t parts) {
    if (c.i("onesided", 1) != 1 || c.i("normalized", 0) != 0) {
        c.refuse(RefusalKind::Attribute, "attributes 'onesided' and 'normalized' are ",
                 c.i("onesided", 1), " and ", c.i("normalized", 0),
                 "; the operator is defined for 1 and 0 only");
    }
    c.ensure(count >= 1 && count + parts <= c.rank(0), "attribute 'signal_ndim' is ", count,
             " for ", c.type(0));
}

// One-sided along the last axis, then along the others.
Values rfft(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t count = c.i("signal_ndim", 1);
    check_signal_axes(c, count, 0);
    auto last = static_cast<size_t>(c.rank(0) - 1);
    Complex y{ops::widen(g, c.in(0)), {}};
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const Dim n = ops::dims(g, y.re)[last - i];
        y = dft_along(g, y, last - i, n, Options{false, i == 0});
    }
    return {ops::cast(g, joined(g, y), c.dtype(0))};
}

// The way back, to a last axis of even size.
Values irfft(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t count = c.i("signal_ndim");
    check_signal_axes(c, count, 1);
    Dims dims = c.type(0).dims;
    c.ensure(!dims.back().is_const() || dims.back().is_const(2), "input 0 is ", c.type(0),
             ", expected 2 parts of complex numbers on the last axis");
    auto last = static_cast<size_t>(c.rank(0) - 2);
    dims.back() = 2;
    Complex y = parts(g, ops::reshape(g, ops::widen(g, c.in(0)), dims));
    for (auto i = static_cast<size_t>(count - 1); i > 0; --i) {
        y = dft_along(g, y, last - i, dims[last - i], Options{true, false});
    }
    y = dft_along(g, y, last, Dim(2) * (dims[last] - Dim(1)), Options{true, true});
    return {ops::cast(g, y.re, c.dtype(0))};
}

const ImporterRow rows[] = {
    {"", "DFT", 17, dft_attribute, no_shapes},
    {"", "DFT", 20, dft, no_shapes},
    {"", "STFT", 17, stft, no_shapes},
    {"com.microsoft", "Rfft", 1, rfft, no_shapes},
    {"com.microsoft", "Irfft", 1, irfft, no_shapes},
};

} // namespace

extern const ImporterTable signal_importers;
const ImporterTable signal_importers = rows;

} // namespace ingot::onnx
