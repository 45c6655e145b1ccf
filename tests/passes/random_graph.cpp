// SPDX-License-Identifier: Apache-2.0
#include "passes/random_graph.h"

#include "base/error.h"
#include "passes/random_generator.h"

#include <algorithm>

namespace ingot::test {

using namespace ops;

Tensor random_tensor(Draw& d, DType t, const Shape& shape) {
    Tensor out = Tensor::zeros(t, shape);
    for (int64_t i = 0; i < out.count(); ++i) {
        is_float(t) ? out.set_f64(i, d.real()) : out.set_i64(i, d.below(t == DType::Bool ? 2 : 7));
    }
    return out;
}

namespace {

int64_t product_at(const Dims& dims, int64_t n) {
    Symbols s{{"N", n}};
    int64_t p = 1;
    for (const Dim& d : dims) {
        p *= d.try_eval(s).value_or(4);
    }
    return p;
}

} // namespace

Graph GraphGenerator::run() {
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

void GraphGenerator::step() {
    static constexpr std::array steps = {
        &GraphGenerator::pointwise,  &GraphGenerator::pointwise,  &GraphGenerator::pointwise,
        &GraphGenerator::binary_map, &GraphGenerator::binary_map, &GraphGenerator::casts,
        &GraphGenerator::views,      &GraphGenerator::views,      &GraphGenerator::views,
        &GraphGenerator::slices,     &GraphGenerator::slices,     &GraphGenerator::pads,
        &GraphGenerator::concats,    &GraphGenerator::gathers,    &GraphGenerator::reductions,
        &GraphGenerator::orders,     &GraphGenerator::contracts,  &GraphGenerator::shapes,
        &GraphGenerator::dynamic,    &GraphGenerator::branches,   &GraphGenerator::loops,
        &GraphGenerator::images,     &GraphGenerator::images,     &GraphGenerator::composites,
        &GraphGenerator::spelled,    &GraphGenerator::scatters,
    };
    (this->*steps[static_cast<size_t>(d_.below(steps.size()))])();
}

void GraphGenerator::keep(Value v) {
    if (product_at(g_.type(v).dims, 3) <= 6000) {
        pool_.push_back(v);
    }
}

Value GraphGenerator::any() {
    auto n = static_cast<int64_t>(pool_.size());
    int64_t recent = std::min<int64_t>(n, 4); // chains grow from what is new
    int64_t at = d_.chance(60) ? n - 1 - d_.below(recent) : d_.below(n);
    return pool_[static_cast<size_t>(at)];
}

Value GraphGenerator::any_float() {
    Value v = any_that([](const Type& t) { return is_float(t.dtype); });
    return v.valid() ? v : g_.inputs()[0];
}

Value GraphGenerator::any_f32(int rank_at_least) {
    return any_that(
        [&](const Type& t) { return t.dtype == DType::F32 && t.rank() >= rank_at_least; });
}

// A constant or a part of `v` that broadcasts against it.
Value GraphGenerator::partner(Value v) {
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

void GraphGenerator::pointwise() {
    Value v = any();
    DType t = g_.type(v).dtype;
    if (is_float(t)) {
        static constexpr std::array all = {ExprOp::Tanh,  ExprOp::Neg, ExprOp::Sin, ExprOp::Sigmoid,
                                           ExprOp::Erf,   ExprOp::Abs, ExprOp::Cos, ExprOp::Floor,
                                           ExprOp::Round, ExprOp::Abs, ExprOp::Sign};
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

void GraphGenerator::binary_map() {
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

void GraphGenerator::casts() {
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

void GraphGenerator::reductions() {
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

void GraphGenerator::orders() {
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

void GraphGenerator::outputs() {
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

Graph random_graph(uint64_t seed, const RandomGraphOptions& options) {
    return GraphGenerator(seed, options).run();
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
