// SPDX-License-Identifier: Apache-2.0
// Bounds of sizes that are known only at run time.
#include "ir/text.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "ops/size_bounds.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// The bound of dimension `axis` of a value; -1 when there is none.
int64_t bound(const Graph& g, Value v, size_t axis, Bounds known = {}) {
    Interval all = g.type(v).dims[axis].bounds(size_bounds(g, std::move(known)));
    return all.high == INT64_MAX ? -1 : all.high;
}

Value nonzero(Graph& g, Value x) {
    return g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {x});
}

TEST(SizeBounds, NonZeroFindsAtMostAllElements) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,4]"));
    Value v = nonzero(g, x);
    EXPECT_EQ(bound(g, v, 0), 2);
    EXPECT_EQ(bound(g, v, 1), -1);
    EXPECT_EQ(bound(g, v, 1, {{"N", {3, 3}}}), 12);
    EXPECT_EQ(bound(g, v, 1, {{"N", {1, 5}}}), 20);
    EXPECT_EQ(bound(g, v, 1, {{"N", {0, INT64_MAX / 2}}}), -1); // beyond the range of a number
    Value again = nonzero(g, v); // from a size that is itself bounded
    EXPECT_EQ(bound(g, again, 1, {{"N", {3, 3}}}), 24);
}

TEST(SizeBounds, NmsTakesTheSmallerOfBoxesAndLimit) {
    for (int64_t limit : {int64_t{3}, int64_t{100}, INT64_MAX}) {
        Graph g;
        Value boxes = g.add_input("boxes", parse_type("f32[2,S,4]"));
        Value scores = g.add_input("scores", parse_type("f32[2,5,S]"));
        Value most = ops::scalar_i64(g, DType::I64, limit);
        Value half = ops::scalar(g, DType::F32, 0.5);
        Value v = g.add1(nms_def, Nms{false, g.fresh_symbol()}, {boxes, scores, most, half, half});
        EXPECT_EQ(bound(g, v, 0, {{"S", {1, 7}}}), 2 * 5 * std::min<int64_t>(limit, 7));
    }
}

TEST(SizeBounds, AnIfHasTheLargerOfItsBranches) {
    for (bool bounded : {true, false}) {
        Graph g;
        Value condition = g.add_input("c", parse_type("bool[]"));
        Value x = g.add_input("x", parse_type("f32[N]"));
        auto branch = [&](bool first) {
            Graph b = g.sibling("b");
            Value in = b.add_input("x", parse_type("f32[N]"));
            Value found = nonzero(b, in);
            if (first) {
                b.add_output("y", found);
            } else if (bounded) { // twice as many
                b.add_output("y", ops::concat(b, std::array{found, found}, 1));
            } else {
                Value one = ops::slice(b, ops::slice(b, found, 0, 0, 1), 1, 0, 1);
                Dims any = ops::dims_from(b, ops::reshape(b, one, {Dim(1)}));
                b.add_output("y", b.add1(iota_def, Iota{DType::I64, {Dim(1), any[0]}, 1}, {}));
            }
            return std::make_shared<const Graph>(std::move(b));
        };
        If a;
        a.then_body = branch(true);
        a.else_body = branch(false);
        a.symbols = {g.fresh_symbol()};
        Value v = g.add1(if_def, std::move(a), {condition, x});
        EXPECT_EQ(bound(g, v, 1, {{"N", {4, 4}}}), bounded ? 8 : -1);
    }
}

} // namespace
} // namespace ingot::test
