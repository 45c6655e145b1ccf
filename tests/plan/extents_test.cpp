// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets beyond 64 bits, or beyond memory: refused wherever a graph learns of them, and
// no step uses a wrapped value.
#include "backends/backends.h"
#include "base/checked.h"
#include "base/error.h"
#include "engine/engine.h"
#include "error_of.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/memory_planner.h"
#include "plan/view.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {
namespace {

using test::error_of;

constexpr int64_t big = int64_t{1} << 62;

TEST(Extents, EverySizeOfEveryType) {
    for (int i = 0; i < dtype_count; ++i) {
        auto t = static_cast<DType>(i);
        int64_t most = (int64_t{1} << 48) / bit_width(t) * 8;
        EXPECT_EQ(byte_size(t, most), int64_t{1} << 48) << name(t);
        EXPECT_NE(error_of([&] { static_cast<void>(byte_size(t, most + 8)); }), "") << name(t);
        for (int bit = 57; bit <= 63; ++bit) {
            for (int64_t more : {int64_t{-16}, int64_t{0}, int64_t{1}, int64_t{16}}) {
                auto count =
                    static_cast<int64_t>((uint64_t{1} << bit) + static_cast<uint64_t>(more));
                EXPECT_EQ(error_of([&] { static_cast<void>(byte_size(t, count)); }),
                          count < 0 ? str(count, " elements of ", t, " have no size in bytes")
                                    : str(count, " elements of ", t,
                                          " have more than the 2^48 bytes that memory can have"));
                if (count < 0) {
                    continue;
                }
                for (const Shape& s : {Shape{count}, Shape{0, count}, Shape{count, 0, 1}}) {
                    EXPECT_EQ(error_of([&] { Tensor::empty(t, s); }),
                              str("shape ", s,
                                  " has more than the 2^49 elements that are possible, "
                                  "sizes of 0 not counted"));
                    Graph g;
                    EXPECT_NE(error_of([&] { g.add_input("x", {t, to_dims(s)}); }), "");
                }
            }
        }
    }
}

TEST(Extents, SizesBesideAZeroCount) {
    EXPECT_EQ(count_of({0, 5, 1 << 20}), 0);
    EXPECT_NE(error_of([] { count_of({0, big, big}); }), "");
    EXPECT_NE(error_of([] { count_of({big, 0, 4}); }), "");
    EXPECT_NE(error_of([] { count_of({-1, 0}); }), "");
    // Known only when it runs.
    Graph g;
    Value x = g.add_input("x", parse_type("f32[n,m,k]"));
    g.add_output("y", ops::reduce(g, "sum", x, {0}));
    auto engine = Engine::create(std::move(g), {}, {});
    Context c(engine, cpu_backend());
    std::string e = error_of([&] { c.prepare(std::array{Shape{0, big, big}}); });
    EXPECT_NE(e.find("has more than the 2^49 elements that are possible"), std::string::npos) << e;
    EXPECT_EQ(error_of([&] { c.prepare(std::array{Shape{0, 3, 4}}); }), "");
}

TEST(Extents, ResultsThatDoNotFitAreRefusedWhileCompilingAndRunning) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[n]"));
    EXPECT_NE(error_of([&] {
                  ops::broadcast_to(g, x, {Dim(big), g.type(x).dims[0]});
              }).find("broadcast is f32["),
              std::string::npos);
    Value wide = ops::broadcast_to(g, x, {Dim(1 << 30), g.type(x).dims[0]});
    g.add_output("y", ops::add(g, wide, 1.0));
    Context c(Engine::create(std::move(g), {}, {}), cpu_backend());
    EXPECT_NE(error_of([&] { c.prepare(std::array{Shape{int64_t{1} << 30}}); }), "");
}

TEST(Extents, AnArenaHasALimit) {
    int64_t most = int64_t{1} << 48;
    EXPECT_EQ(plan::plan_arena(std::array{plan::Block{most, 0, 1}}).bytes, most);
    EXPECT_NE(error_of([&] {
                  plan::plan_arena(std::array{plan::Block{most, 0, 1}, plan::Block{64, 0, 1}});
              }),
              "");
    EXPECT_NE(error_of([&] { plan::plan_arena(std::array{plan::Block{most + 64, 0, 1}}); }), "");
}

TEST(Extents, TheLeastNumberDividedByMinusOne) {
    Dim n = Dim::symbol("n") * Dim(INT64_MIN);
    EXPECT_NE(error_of([&] { static_cast<void>(floor_div(n, -1)); }), ""); // no SIGFPE
    EXPECT_NE(error_of([&] { static_cast<void>(floor_div(Dim(INT64_MIN), -1)); }), "");
    EXPECT_EQ(floor_div(Dim::symbol("n") * Dim(6), -1), Dim::symbol("n") * Dim(-6));
}

/// Found by fuzz_run: counted from the end, it read in front of the strides.
TEST(Extents, AnAxisThatCountsFromTheEnd) {
    Graph g;
    for (int64_t axis : {int64_t{-1}, int64_t{2}, int64_t{INT64_MIN}}) {
        EXPECT_EQ(error_of([&] {
                      g.add1(iota_def, Iota{DType::I32, {Dim(3), Dim(2)}, axis}, {});
                  }),
                  str("iota counts along axis ", axis,
                      " of 2, expected 0 or more and less than "
                      "that"));
    }
}

struct Cut {
    int64_t start;
    int64_t size;
    int64_t step;
};
/// On an axis of 10, each one ends inside it where sums and products wrap.
const Cut wrapping[] = {
    {1, 5, big},
    {0, 3, int64_t{1} << 63},
    {9, 9, -(int64_t{1} << 61)},
    {3, (int64_t{1} << 61) + 1, 8},
    {INT64_MAX, 2, 1},
    {-5, 3, 1},
    {2, INT64_MAX, 2},
    {2, -1, 1},
};

TEST(Extents, SlicesThatWrapLeaveTheAxis) {
    for (const Cut& cut : wrapping) {
        EXPECT_FALSE(lies_within(cut.start, cut.size, cut.step, 10));
        Graph g;
        Value x = g.add_input("x", parse_type("f32[10]"));
        Slice a{{Dim(cut.start)}, {Dim(cut.size)}, {cut.step}};
        EXPECT_NE(error_of([&] { g.add1(slice_def, a, {x}); }), "") << cut.start;
    }
    EXPECT_TRUE(lies_within(0, 10, 1, 10));
    EXPECT_TRUE(lies_within(9, 10, -1, 10));
    EXPECT_TRUE(lies_within(4, 1, INT64_MIN, 10));
    EXPECT_TRUE(lies_within(INT64_MIN, 0, INT64_MAX, 0));
    EXPECT_FALSE(lies_within(0, 11, 1, 10));
    EXPECT_FALSE(lies_within(10, 1, 1, 10));
}

/// The same where start and axis are known only when it runs.
TEST(Extents, SlicesThatWrapWhenTheyRun) {
    for (const Cut& cut : wrapping) {
        if (cut.size < 1 || cut.size > 100) {
            continue; // refused for the size of the result
        }
        Graph g;
        Value x = g.add_input("x", parse_type("f32[n]"));
        Value y = g.add_input("y", parse_type("f32[s]"));
        Dim s = g.type(y).dims[0]; // the start is a size
        Slice a{{s + Dim(cut.start - 1)}, {Dim(cut.size)}, {cut.step}};
        Value out = g.add1(slice_def, a, {x});
        g.add_output("z", ops::add(g, out, 1.0));
        std::array in = {Tensor::zeros(DType::F32, {10}), Tensor::zeros(DType::F32, {1})};
        EXPECT_NE(error_of([&] { evaluate(g, in); }), "") << cut.start;
        Context c(Engine::create(std::move(g), {}, {}), cpu_backend());
        std::string e = error_of([&] { c.run(in); });
        EXPECT_NE(e, "") << cut.start << ' ' << cut.size << ' ' << cut.step;
    }
}

TEST(Extents, StepsThatAreNeverTakenMayBeAnything) {
    plan::View v = plan::dense({4, 1 << 20});
    plan::View s =
        plan::sliced(v, {2, 0}, {1, 1}, std::array{int64_t{INT64_MAX}, int64_t{INT64_MIN}});
    EXPECT_EQ(s.offset, 2 << 20);
    EXPECT_EQ(s.strides, v.strides);
    std::array<int64_t, 1> axis = {0};
    std::array<int64_t, 1> one = {4};
    std::array<int64_t, 1> huge = {INT64_MAX};
    plan::View w = plan::windowed(v, axis, one, huge, std::array{int64_t{1}});
    EXPECT_EQ(w.shape, (Shape{1, 1 << 20, 4}));
    Graph g;
    Value x = g.add_input("x", parse_type("f32[10]"));
    g.add_output("y", ops::add(g, g.add1(slice_def, Slice{{Dim(7)}, {Dim(1)}, {big}}, {x}), 1.0));
    std::array in = {
        Tensor::of<double>(DType::F32, {10}, std::array<double, 10>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})};
    EXPECT_EQ(evaluate(g, in)[0].get_f64(0), 8);
    Context c(Engine::create(std::move(g), {}, {}), cpu_backend());
    EXPECT_EQ(c.run(in)[0].get_f64(0), 8);
}

} // namespace
} // namespace ingot
