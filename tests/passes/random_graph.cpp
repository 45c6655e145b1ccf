// SPDX-License-Identifier: Apache-2.0
#include "passes/random_graph.h"

#include "base/error.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace ingot::test {

using namespace ops;

namespace {

class Draw {
public:
    explicit Draw(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
    uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x2545f4914f6cdd1dULL;
    }
    /// In [0, n).
    int64_t below(int64_t n) {
        return static_cast<int64_t>((next() >> 11) % static_cast<uint64_t>(n));
    }
    bool chance(int percent) { return below(100) < percent; }
    double real() { return static_cast<double>(below(2001)) / 1000 - 1; }
    template <class T, size_t N>
    const T& of(const std::array<T, N>& list) {
        return list[static_cast<size_t>(below(N))];
    }

private:
    uint64_t state_;
};

Tensor random_tensor(Draw& d, DType t, const Shape& shape) {
    Tensor out = Tensor::zeros(t, shape);
    for (int64_t i = 0; i < out.count(); ++i) {
        is_float(t) ? out.set_f64(i, d.real()) : out.set_i64(i, d.below(t == DType::Bool ? 2 : 7));
    }
    return out;
}

class Generator {
public:
    Generator(uint64_t seed, const RandomGraphOptions& o)
        : g_("random"), d_(seed), smooth_(o.smooth), steps_(o.steps) {}

    Graph run() {
        Dim n = Dim::symbol("N");
        keep(g_.add_input("x", {DType::F32, {n, 4, 6}}));
        keep(g_.add_input("y", {DType::F32, {2, 4, 6}}));
        keep(g_.add_input("h", {DType::F16, {n, 6}}));
        keep(g_.add_input("image", {DType::F32, {n, 4, 6, 6}}));
        keep(g_.add_input("i", {DType::I64, {n, 3}}));
        keep(g_.add_input("flags", {DType::Bool, {4, 1}}));
        keep(g_.add_input("bytes", {DType::U8, {8}}));
        for (int i = 0; i < steps_; ++i) {
            g_.set_origin(str("step ", i));
            step();
        }
        outputs();
        return std::move(g_);
    }

private:
    using Step = void (Generator::*)();

    void step() {
        static constexpr std::array steps = {
            &Generator::pointwise,  &Generator::pointwise,  &Generator::pointwise,
            &Generator::binary_map, &Generator::binary_map, &Generator::casts,
            &Generator::views,      &Generator::views,      &Generator::views,
            &Generator::slices,     &Generator::slices,     &Generator::pads,
            &Generator::concats,    &Generator::gathers,    &Generator::reductions,
            &Generator::orders,     &Generator::contracts,  &Generator::shapes,
            &Generator::dynamic,    &Generator::branches,   &Generator::loops,
            &Generator::images,     &Generator::images,     &Generator::composites,
            &Generator::spelled,    &Generator::scatters,
        };
        (this->*steps[static_cast<size_t>(d_.below(steps.size()))])();
    }

    void keep(Value v) {
        if (product_at(g_.type(v).dims, 3) <= 6000) {
            pool_.push_back(v);
        }
    }
    static int64_t product_at(const Dims& dims, int64_t n) {
        Symbols s{{"N", n}};
        int64_t p = 1;
        for (const Dim& d : dims) {
            p *= d.try_eval(s).value_or(4);
        }
        return p;
    }
    Value any() {
        auto n = static_cast<int64_t>(pool_.size());
        int64_t recent = std::min<int64_t>(n, 4); // chains grow from what is new
        int64_t at = d_.chance(60) ? n - 1 - d_.below(recent) : d_.below(n);
        return pool_[static_cast<size_t>(at)];
    }
    template <class F>
    Value any_that(F&& wanted) {
        for (int i = 0; i < 12; ++i) {
            Value v = any();
            if (wanted(g_.type(v))) {
                return v;
            }
        }
        return {};
    }
    Value any_float() {
        Value v = any_that([](const Type& t) { return is_float(t.dtype); });
        return v.valid() ? v : g_.inputs()[0];
    }
    Value any_f32(int rank_at_least) {
        return any_that(
            [&](const Type& t) { return t.dtype == DType::F32 && t.rank() >= rank_at_least; });
    }
    Value tensor(DType t, const Shape& shape) { return constant(g_, random_tensor(d_, t, shape)); }
    const Dims& dims_of(Value v) { return ops::dims(g_, v); }
    int64_t axis_of(Value v) { return d_.below(std::max(1, g_.type(v).rank())); }

    // A constant or a part of `v` that broadcasts against it.
    Value partner(Value v) {
        DType t = g_.type(v).dtype;
        if (d_.chance(30)) {
            return d_.chance(50) ? is_float(t) ? scalar(g_, t, static_cast<double>(d_.below(3)))
                                               : scalar_i64(g_, t, d_.below(2))
                                 : v;
        }
        Shape shape;
        for (const Dim& d : dims_of(v)) {
            shape.push_back(d.is_const() && d_.chance(60) ? d.value() : 1);
        }
        size_t drop =
            shape.empty() ? 0 : static_cast<size_t>(d_.below(static_cast<int64_t>(shape.size())));
        shape.erase(shape.begin(), shape.begin() + static_cast<int64_t>(drop));
        Value c = tensor(t, shape);
        return d_.chance(20) ? broadcast_to(g_, c, *broadcast(dims_of(v), dims_of(c))) : c;
    }

    void pointwise() {
        Value v = any();
        DType t = g_.type(v).dtype;
        if (is_float(t)) {
            static constexpr std::array all = {ExprOp::Tanh,    ExprOp::Neg,   ExprOp::Sin,
                                               ExprOp::Sigmoid, ExprOp::Erf,   ExprOp::Abs,
                                               ExprOp::Cos,     ExprOp::Floor, ExprOp::Round,
                                               ExprOp::Abs,     ExprOp::Sign};
            ExprOp op = all[static_cast<size_t>(d_.below(smooth_ ? 7 : 11))];
            v = unary(g_, op, v);
            keep(d_.chance(30) ? unary(g_, op, v) : v);
        } else if (t == DType::Bool) {
            v = logical_not(g_, v);
            keep(d_.chance(50) ? logical_not(g_, v) : v);
        } else {
            keep(unary(g_, is_signed(t) ? ExprOp::Neg : ExprOp::Not, v));
        }
    }

    void binary_map() {
        Value v = any();
        DType t = g_.type(v).dtype;
        Value w = partner(v);
        if (t == DType::Bool) {
            return keep(binary(g_, d_.chance(50) ? ExprOp::And : ExprOp::Or, v, w));
        }
        static constexpr std::array all = {ExprOp::Add, ExprOp::Sub, ExprOp::Mul, ExprOp::Min,
                                           ExprOp::Max};
        ExprOp op = d_.of(all);
        Value r = binary(g_, op, v, w);
        if (is_float(t)) {
            r = unary(g_, ExprOp::Tanh, r); // keeps values small
        }
        if (d_.chance(20) && !smooth_) {
            Value c = less(g_, v, w);
            r = select(g_, c, r, d_.chance(50) ? v : r);
        }
        keep(r);
        if (d_.chance(20) && (op == ExprOp::Min || op == ExprOp::Max)) {
            keep(binary(g_, op, binary(g_, op, v, 1.0), 2.0));
        }
    }

    void casts() {
        Value v = any();
        static constexpr std::array types = {DType::F32, DType::F16, DType::F64, DType::I64,
                                             DType::I32, DType::I8,  DType::U8,  DType::BF16};
        for (int i = 0; i < 3; ++i) {
            DType to = d_.of(types);
            bool breaks = is_float(g_.type(v).dtype) && (!is_float(to) || bit_width(to) < 32);
            if (!(smooth_ && breaks)) {
                v = cast(g_, v, to);
            }
        }
        keep(v);
    }

    void views() {
        Value v = any();
        Dims d = dims_of(v);
        switch (d_.below(6)) {
        case 0: {
            int64_t axis = axis_of(v);
            v = unsqueeze(g_, v, {axis});
            return keep(d_.chance(40) ? squeeze(g_, v, {axis}) : v);
        }
        case 1: {
            std::vector<int64_t> perm(d.size());
            std::iota(perm.begin(), perm.end(), 0);
            for (size_t i = perm.size(); i > 1; --i) {
                std::swap(perm[i - 1],
                          perm[static_cast<size_t>(d_.below(static_cast<int64_t>(i)))]);
            }
            v = permute(g_, v, perm);
            return keep(d_.chance(40) ? permute(g_, v, perm) : v);
        }
        case 2: { // merge two axes, perhaps permute, split again
            if (d.size() < 2) {
                return keep(flatten(g_, v));
            }
            Dims merged(d.begin() + 1, d.end());
            merged[0] = merged[0] * d[0];
            Value m = reshape(g_, v, merged);
            if (merged.size() == 2 && d_.chance(60)) {
                m = permute(g_, m, {1, 0});
                Dims back = {d[2], d[0], d[1]};
                m = reshape(g_, m, back);
            }
            return keep(m);
        }
        case 3:
            d.insert(d.begin(), Dim(2));
            v = broadcast_to(g_, v, d);
            d.insert(d.begin(), Dim(1));
            return keep(d_.chance(30) ? broadcast_to(g_, v, d) : v);
        case 4:
            return keep(flatten(g_, v));
        default:
            if (g_.type(v).dtype == DType::U8) {
                return keep(bitcast(g_, bitcast(g_, v, DType::I8), DType::U8));
            }
            if (!d.empty() && d.back().is_const() && d.back().value() > 2) {
                auto last = static_cast<int64_t>(d.size()) - 1;
                return keep(window(g_, v, Window{{last}, {2}, {1}, {1}}));
            }
        }
    }

    void slices() {
        Value v = any_that([](const Type& t) {
            return t.rank() > 0 && t.dims.back().is_const() && t.dims.back().value() > 2;
        });
        if (!v.valid()) {
            return;
        }
        int64_t axis = g_.type(v).rank() - 1;
        int64_t size = dims_of(v).back().value();
        Value a = slice(g_, v, axis, 0, size / 2);
        Value b = slice(g_, v, axis, size / 2, size - size / 2);
        switch (d_.below(4)) {
        case 0:
            return keep(concat(g_, std::array{a, b}, axis));
        case 1:
            return keep(concat(g_, std::array{b, a}, axis));
        case 2:
            return keep(slice(g_, slice(g_, v, axis, size - 1, size - 1, -1), axis, 1, 1));
        default:
            keep(a);
            return keep(slice(g_, concat(g_, std::array{a, v, b}, axis), axis, size / 2 + 1, 1));
        }
    }

    void pads() {
        Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype != DType::Bool; });
        if (!v.valid()) {
            return;
        }
        Dims low(dims_of(v).size(), Dim(0));
        Dims high = low;
        high.back() = d_.below(3);
        low.back() = d_.below(2);
        static const std::array<std::string, 3> modes = {"constant", "edge", "constant"};
        Value fill = scalar_i64(g_, DType::I64, d_.below(2));
        std::string mode = d_.of(modes);
        Value p = pad(g_, v, low, high, cast(g_, fill, g_.type(v).dtype), mode);
        keep(d_.chance(40) ? pad(g_, p, high, low, cast(g_, fill, g_.type(v).dtype), mode) : p);
    }

    void concats() {
        Value v = any_that([](const Type& t) { return t.rank() > 0; });
        if (!v.valid()) {
            return;
        }
        int64_t axis = axis_of(v);
        Value both = concat(g_, std::array{v, v}, axis);
        keep(d_.chance(50) ? concat(g_, std::array{both, v}, axis) : both);
    }

    void gathers() {
        Value v = any_that([](const Type& t) {
            return t.rank() > 0 && t.dims[0].is_const() && t.dims[0].value() >= 2;
        });
        if (!v.valid()) {
            return;
        }
        static const std::array<std::vector<int64_t>, 4> lists = {
            std::vector<int64_t>{0, 1}, {1, 0}, {1, 1, 0}, {1}};
        Value indices = i64_list(g_, d_.of(lists));
        if (d_.chance(30)) {
            indices = scalar_i64(g_, DType::I64, d_.below(2));
        } else if (d_.chance(30)) {
            indices = broadcast_to(g_, indices, {2, g_.type(indices).dims[0]});
        } else if (d_.chance(30)) {
            indices = add(g_, iota(g_, DType::I64, {1, dims_of(v)[0]}, 1), 0);
        }
        keep(gather(g_, v, indices, 0));
    }

    void reductions() {
        Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype != DType::Bool; });
        if (!v.valid()) {
            return;
        }
        static const std::array<std::string, 4> fns = {"sum", "max", "min", "max"};
        std::string fn = d_.of(fns);
        Value r = reduce(g_, fn, v, {axis_of(v)}, d_.chance(50));
        if (g_.type(r).rank() > 0 && d_.chance(40)) {
            r = reduce(g_, fn, r, {axis_of(r)});
        }
        keep(is_float(g_.type(r).dtype) ? unary(g_, ExprOp::Tanh, r) : r);
    }

    void orders() {
        Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype != DType::Bool; });
        if (!v.valid() || (smooth_ && is_float(g_.type(v).dtype))) {
            return;
        }
        int64_t axis = axis_of(v);
        switch (d_.below(3)) {
        case 0:
            return keep(arg_reduce(g_, "max", v, axis, d_.chance(50)));
        case 1:
            return keep(sort(g_, v, axis, d_.chance(50))[static_cast<size_t>(d_.below(2))]);
        default:
            return keep(scan(g_, Scan{"max", axis, false, d_.chance(50)}, v));
        }
    }

    void contracts() {
        Value v = any_f32(2);
        if (!v.valid() || !dims_of(v).back().is_const()) {
            return;
        }
        int64_t k = dims_of(v).back().value();
        Value w = tensor(DType::F32, {k, 5});
        Value y =
            matmul(g_, v, d_.chance(50) ? w : permute(g_, tensor(DType::F32, {5, k}), {1, 0}));
        if (d_.chance(50)) {
            y = mul(g_, y, tensor(DType::F32, {5}));
        }
        if (d_.chance(50)) {
            y = add(g_, y, tensor(DType::F32, {5}));
        }
        if (d_.chance(40)) {
            y = div(g_, y, 4);
        }
        if (d_.chance(30)) {
            y = matmul(g_, v, transpose_last(g_, v));
        }
        keep(unary(g_, ExprOp::Tanh, y));
    }

    // Shape arithmetic as exporters spell it.
    void shapes() {
        Value v = any_that([](const Type& t) { return t.rank() >= 2; });
        if (!v.valid()) {
            return;
        }
        const Dims d = dims_of(v);
        Value shape = dims_tensor(g_, d);
        Value first = gather(g_, shape, i64_list(g_, {0}), 0);
        Value rest = slice(g_, shape, 0, 1, Dim(static_cast<int64_t>(d.size()) - 1));
        Value count = mul(g_, first, reduce(g_, "prod", rest, {0}, true));
        keep(reshape(g_, v, dims_from(g_, count)));
        keep(add(g_, shape, 1));
    }

    void dynamic() {
        Value v = any();
        if (g_.type(v).rank() == 0 || (smooth_ && is_float(g_.type(v).dtype))) {
            return;
        }
        Value where = g_.add1(nonzero_def, NonZero{g_.fresh_symbol()}, {v});
        keep(reduce(g_, "sum", where, {1}));
        if (d_.chance(50)) {
            Value again = g_.add1(nonzero_def, NonZero{g_.fresh_symbol()}, {v});
            keep(reduce(g_, "max", add(g_, again, 1), {1}));
        }
        Value bound = minimum(g_, reduce(g_, "sum", cast(g_, where, DType::I64), {0, 1}), 5.0);
        Dims size = dims_from(g_, maximum(g_, bound, 0.0));
        keep(reduce(g_, "sum", iota(g_, DType::I64, size, 0), {0}));
    }

    GraphRef body_of(Value v, bool grows) {
        Graph b = g_.sibling("branch");
        Value x = b.add_input("x", g_.type(v));
        Value c = b.add_input("c", {DType::I64, {}});
        Value y = grows ? concat(b, std::array{x, x}, 0) : add(b, x, cast(b, c, g_.type(v).dtype));
        b.add_output("", y);
        return std::make_shared<const Graph>(std::move(b));
    }

    void branches() {
        Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype != DType::Bool; });
        if (!v.valid()) {
            return;
        }
        Value condition = d_.chance(50) ? scalar_i64(g_, DType::Bool, d_.below(2))
                                        : reduce(g_, "max", g_.inputs()[5], {0, 1});
        If a{body_of(v, false), body_of(v, d_.chance(50)), {}};
        if (a.else_body->type(a.else_body->outputs()[0]) != g_.type(v)) {
            a.symbols = {g_.fresh_symbol()};
        }
        Value r = g_.add1(if_def, a, {condition, v, scalar_i64(g_, DType::I64, 1)});
        keep(reduce(g_, "max", r, {0}));
    }

    void loops() {
        Value v = any_that([](const Type& t) { return t.rank() > 0 && t.dtype == DType::F32; });
        if (!v.valid()) {
            return;
        }
        Graph b = g_.sibling("body");
        Value step = b.add_input("", {DType::I64, {}});
        Value go_on = b.add_input("", {DType::Bool, {}});
        Value x = b.add_input("", g_.type(v));
        Value c = b.add_input("", {DType::F32, {}});
        b.add_input("", {DType::F32, {}}); // unused
        Value y = unary(b, ExprOp::Tanh, add(b, x, mul(b, cast(b, step, DType::F32), c)));
        b.add_output("", go_on);
        b.add_output("", y);
        bool scans = d_.chance(50);
        if (scans) {
            b.add_output("", reduce_sum(b, y, {0}));
        }
        int64_t trips = d_.below(3);
        Loop a{std::make_shared<const Graph>(std::move(b)), 1, g_.fresh_symbol(), {}};
        Values in = {scalar_i64(g_, DType::I64, trips), scalar_i64(g_, DType::Bool, 1), v,
                     scalar(g_, DType::F32, 0.5), scalar(g_, DType::F32, 2)};
        Values out = g_.add(loop_def, a, in);
        keep(out[0]);
        if (scans) {
            keep(reduce_sum(g_, out[1], {0}));
        }
    }

    void images() {
        Value v = any_that([](const Type& t) {
            return t.dtype == DType::F32 && t.rank() == 4 && t.dims[1].is_const() &&
                   t.dims[2].is_const() && t.dims[3].is_const() && t.dims[2].value() >= 3 &&
                   t.dims[3].value() >= 3 && t.dims[2].value() < 10 && t.dims[3].value() < 10;
        });
        if (!v.valid()) {
            v = g_.inputs()[3];
        }
        int64_t c = dims_of(v)[1].value();
        int64_t groups = c % 2 == 0 && d_.chance(30) ? 2 : 1;
        Dims none = {0, 0};
        if (d_.chance(40)) {
            v = pad(g_, v, {0, 0, 1, 0}, {0, 0, 1, 1}, 0.0);
        }
        Value y;
        if (d_.chance(20)) {
            y = pool(g_, Pool{"average", {2, 2}, {1, 1}, {1, 1}, none, none, none, false}, v);
        } else if (d_.chance(30)) {
            ConvTranspose t{{2, 1}, {1, 1}, none, none, groups};
            y = conv_transpose(g_, t, v, tensor(DType::F32, {c, 4 / groups, 2, 2}));
        } else {
            Conv a{{1, 1}, {1, 1}, {1, 0}, {0, 1}, groups, DType::F32};
            y = conv(g_, a, v, tensor(DType::F32, {4, c / groups, 2, 2}));
        }
        int64_t channels = dims_of(y)[1].value();
        for (int i = static_cast<int>(d_.below(4)); i > 0; --i) {
            Value p =
                d_.chance(70) ? tensor(DType::F32, {channels, 1, 1}) : scalar(g_, DType::F32, 1.5);
            y = d_.chance(50) ? mul(g_, y, p) : d_.chance(50) ? add(g_, y, p) : sub(g_, p, y);
        }
        keep(unary(g_, ExprOp::Tanh, mul(g_, y, 0.2)));
    }

    void composites() {
        Value v = any_f32(2);
        if (!v.valid() || !dims_of(v).back().is_const()) {
            return;
        }
        int64_t size = dims_of(v).back().value();
        switch (d_.below(smooth_ ? 4 : 6)) {
        case 0:
            return keep(softmax(g_, v, axis_of(v)));
        case 1:
            return keep(gelu(g_, v, d_.chance(50)));
        case 2:
            return keep(
                layer_norm(g_, LayerNorm{-1, 1e-2, d_.chance(50)}, v, tensor(DType::F32, {size})));
        case 3:
            return keep(scan(g_, Scan{"sum", axis_of(v), true, false}, mul(g_, v, 0.1)));
        case 4: {
            Value scale = scalar(g_, DType::F32, 0.05);
            Value q = quantize(g_, Quantize{1, 0, DType::I8, true}, v, scale);
            return keep(dequantize(g_, Dequantize{1, 0, DType::F32}, q, scale));
        }
        default:
            return keep(topk(g_, TopK{Dim(std::min<int64_t>(size, 2)), -1, true}, v)[0]);
        }
    }

    // Composites as spelled by exporters that do not know them.
    void spelled() {
        Value v = any_f32(2);
        if (!v.valid() || !dims_of(v).back().is_const()) {
            return;
        }
        int64_t size = dims_of(v).back().value();
        switch (d_.below(5)) {
        case 4: {
            if (size % 2 != 0) {
                return;
            }
            Value table = tensor(DType::F32, {size / 2});
            table = concat(g_, std::array{table, table}, 0);
            Value half = slice(g_, v, -1, 0, size / 2);
            Value rest = unary(g_, ExprOp::Neg, slice(g_, v, -1, size / 2, size / 2));
            Value turned = concat(g_, std::array{rest, half}, -1);
            Value a = mul(g_, v, unary(g_, ExprOp::Cos, table));
            return keep(add(g_, a, mul(g_, turned, unary(g_, ExprOp::Sin, table))));
        }
        case 0: {
            Value e = unary(g_, ExprOp::Erf, div(g_, v, 1.41421354));
            return keep(mul(g_, mul(g_, v, add(g_, e, 1)), d_.chance(80) ? 0.5 : 0.4));
        }
        case 1: {
            Value c = sub(g_, v, reduce_mean(g_, v, {-1}, true));
            Value variance = reduce_mean(g_, mul(g_, c, c), {-1}, true);
            Value y = div(g_, c, sqrt(g_, add(g_, variance, 1e-2)));
            return keep(
                add(g_, mul(g_, y, tensor(DType::F32, {size})), tensor(DType::F32, {size})));
        }
        case 2: {
            Value e = exp(g_, sub(g_, v, reduce_max(g_, v, {-1}, true)));
            return keep(div(g_, e, reduce_sum(g_, e, {-1}, true)));
        }
        default: {
            Value scores = mul(g_, matmul(g_, v, transpose_last(g_, v)), 0.3);
            return keep(matmul(g_, softmax(g_, scores, -1), v));
        }
        }
    }

    void scatters() {
        Value v = any_that([](const Type& t) {
            return t.rank() > 0 && t.dims[0].is_const() && t.dims[0].value() >= 2 &&
                   t.dtype != DType::Bool;
        });
        if (!v.valid()) {
            return;
        }
        Value rows = slice(g_, v, 0, 0, 2);
        keep(scatter(g_, v, i64_list(g_, {1, 0}), rows, d_.chance(50) ? "none" : "max"));
    }

    void outputs() {
        std::vector<bool> used(g_.value_count(), false);
        for (const Node& n : g_.nodes()) {
            for (Value v : n.inputs) {
                used[v.id] = true;
            }
        }
        int count = 0;
        for (Value v : pool_) {
            if (!g_.is_input(v) && (!used[v.id] || d_.chance(15))) {
                g_.add_output(str("out", count++), v);
            }
        }
        if (count == 0) {
            g_.add_output("x", g_.inputs()[0]);
        }
    }

    Graph g_;
    Draw d_;
    bool smooth_;
    int steps_;
    Values pool_;
};

} // namespace

Graph random_graph(uint64_t seed, const RandomGraphOptions& options) {
    return Generator(seed, options).run();
}

std::vector<Tensor> random_inputs(const Graph& g, uint64_t seed, int64_t n) {
    Draw d(seed + 77);
    std::vector<Tensor> out;
    for (Value v : g.inputs()) {
        out.push_back(random_tensor(d, g.type(v).dtype, eval(g.type(v).dims, {{"N", n}})));
    }
    return out;
}

} // namespace ingot::test
