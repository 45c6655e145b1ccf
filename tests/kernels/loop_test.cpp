// SPDX-License-Identifier: Apache-2.0
// Loops on the emulated GPU: those with a known trip count are recorded as a whole; others read
// their condition after each iteration.
#include "kernels/harness.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot::test {
namespace {

/// carried = carried * 0.5 + rows[step], scanned: the sum. `stop` adds a condition on the data: of
/// ones, the squares' sums are 11.25, 15.3, 17.6, so that the third iteration is the last.
GraphRef recurrence(const Graph& outer, bool stop) {
    auto body = std::make_shared<Graph>(outer.sibling("recurrence"));
    Graph& g = *body;
    Value step = g.add_input("step", {DType::I64, {}});
    Value go = g.add_input("go", {DType::Bool, {}});
    Value state = g.add_input("state", {DType::F32, {Dim(5)}});
    Value rows = g.add_input("rows", {DType::F32, {Dim(6), Dim(5)}});
    Value x = ops::add(g, ops::mul(g, state, 0.5), ops::gather(g, rows, step, 0));
    if (stop) {
        Value sum = ops::reduce_sum(g, ops::mul(g, x, x), {0});
        go = ops::less(g, sum, ops::scalar(g, DType::F32, 16));
    }
    g.add_output("go", go);
    g.add_output("state", x);
    g.add_output("sum", ops::reduce_sum(g, x, {0}));
    return body;
}

Graph loop_graph(Value (*trips)(Graph&), bool stop) {
    Graph g;
    Value rows = g.add_input("rows", {DType::F32, {Dim(6), Dim(5)}});
    Value state = g.add_input("state", {DType::F32, {Dim(5)}});
    Loop loop;
    loop.body = recurrence(g, stop);
    loop.carried = 1;
    loop.count = stop ? g.fresh_symbol() : Dim(6);
    std::vector<Value> in{trips(g), ops::scalar_i64(g, DType::Bool, 1), state, rows};
    Values out = g.add(loop_def, std::move(loop), in);
    g.add_output("state", ops::mul(g, out[0], 2.0));
    g.add_output("sums", out[1]);
    return g;
}

Value six(Graph& g) {
    return ops::scalar_i64(g, DType::I64, 6);
}

TEST(Loops, KnownTripsAreRecorded) {
    BackendRun run = expect_backend(loop_graph(six, false), {.runs = 4});
    if (run.replays >= 0) {
        EXPECT_EQ(run.replays, 1) << "all iterations are in one recording";
    }
}

TEST(Loops, ConditionsOnDataAreLookedAt) {
    Tensor rows = random_elements(DType::F32, {6, 5}, 1, 1, 1);
    Tensor state = random_elements(DType::F32, {5}, 1, 1, 1);
    Graph g = loop_graph(six, true);
    EXPECT_EQ(evaluate(g, std::array{rows, state})[1].shape(), Shape{3})
        << "the condition ends the loop";
    // Three iterations swap the carried buffers, so that every second run begins alike.
    BackendRun run = expect_backend(g, {.inputs = {rows, state}, .runs = 6});
    if (run.replays >= 0) {
        EXPECT_EQ(run.replays, 3 + 1) << "one of each iteration, one of what follows";
    }
}

TEST(Loops, TripsMayBeASize) {
    Graph g;
    Value rows = g.add_input("rows", {DType::F32, {Dim::symbol("N"), Dim(5)}});
    Value state = g.add_input("state", {DType::F32, {Dim(5)}});
    auto body = std::make_shared<Graph>(g.sibling("recurrence"));
    Value step = body->add_input("step", {DType::I64, {}});
    Value go = body->add_input("go", {DType::Bool, {}});
    Value before = body->add_input("state", {DType::F32, {Dim(5)}});
    Value all = body->add_input("rows", {DType::F32, {Dim::symbol("N"), Dim(5)}});
    body->add_output("go", go);
    body->add_output("state", ops::add(*body, before, ops::gather(*body, all, step, 0)));
    Loop loop;
    loop.body = body;
    loop.carried = 1;
    loop.count = Dim::symbol("N");
    std::vector<Value> in{ops::dim_scalar(g, Dim::symbol("N")), ops::scalar_i64(g, DType::Bool, 1),
                          state, rows};
    g.add_output("state", g.add(loop_def, std::move(loop), in)[0]);
    expect_backend(g, {.symbols = {{"N", 7}}});
    expect_backend(g, {.symbols = {{"N", 1}}});
}

} // namespace
} // namespace ingot::test
