// SPDX-License-Identifier: Apache-2.0
#include "passes/random_generator.h"

namespace ingot::test {

using namespace ops;

void GraphGenerator::dynamic() {
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

GraphRef GraphGenerator::body_of(Value v, bool grows) {
    Graph b = g_.sibling("branch");
    Value x = b.add_input("x", g_.type(v));
    Value c = b.add_input("c", {DType::I64, {}});
    Value y = grows ? concat(b, std::array{x, x}, 0) : add(b, x, cast(b, c, g_.type(v).dtype));
    b.add_output("", y);
    return std::make_shared<const Graph>(std::move(b));
}

void GraphGenerator::branches() {
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

void GraphGenerator::loops() {
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

} // namespace ingot::test
