// SPDX-License-Identifier: Apache-2.0
// Family gather: rows read and written by index, against the evaluator.
#include "backends/cuda/backend.h"
#include "base/error.h"
#include "kernels/harness.h"
#include "kernels/test_device.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <limits>

namespace ingot::test {
namespace {

Tensor indices_below(int64_t limit, const Shape& shape, DType t, unsigned seed = 3) {
    return random_elements(t, shape, seed, 0, static_cast<double>(limit - 1));
}

TEST(Gather, EveryAxisAndDtype) {
    for (const char* type :
         {"f16[6,8,16]", "f32[6,8,3]", "bool[6,8,5]", "f64[6,8,2]", "i4[6,8,4]", "i4[3,7,3]"}) {
        for (int64_t axis = 0; axis < 3; ++axis) {
            SCOPED_TRACE(str(type, " axis ", axis));
            Graph g;
            Value x = g.add_input("x", parse_type(type));
            Value i = g.add_input("i", parse_type("i64[5,3]"));
            g.add_output("y", ops::gather(g, x, i, axis));
            int64_t size = g.type(x).dims[static_cast<size_t>(axis)].value();
            FamilyOptions o{.tolerance = 0,
                            .inputs = {Tensor{}, indices_below(size, {5, 3}, DType::I64)}};
            sweep(g, o);
            if (axis == 0) {
                o.strided = true;
                sweep(g, o);
            }
        }
    }
}

TEST(Gather, ScalarIndexAndTable) {
    Graph g;
    Value x = g.add_input("x", parse_type("bf16[40,64]"));
    Value i = g.add_input("i", parse_type("i32[]"));
    g.add_output("y", ops::gather(g, x, i, 0));
    sweep(g, {.tolerance = 0, .inputs = {Tensor{}, indices_below(40, {}, DType::I32)}});
}

/// The error of a run on the device.
std::string error_of(const Graph& g, const std::vector<Tensor>& inputs) {
    TestDevice device(kernels::arch_of(90));
    auto backend = cuda::make_backend(device.gpu());
    auto execution =
        backend->compile(std::make_shared<const Graph>(g), CompileOptions{})->create_execution();
    std::vector<Tensor> results(1);
    Status status = execution->run(inputs, results);
    return status.ok() ? "" : std::string(execution->error());
}

TEST(Gather, ReportsAnIndexOutOfRange) {
    for (int64_t bad : {-1, 2, 4}) {
        SCOPED_TRACE(bad);
        Tensor rows = random_elements(DType::F32, {4, 2}, 1);
        Tensor update = random_elements(DType::F32, {1, 2}, 2);
        Tensor index = Tensor::empty(DType::I64, {1});
        index.set_i64(0, bad);
        Graph g;
        Value x = g.add_input("x", parse_type("f32[4,2]"));
        g.add_output("y", ops::gather(g, x, g.add_input("i", parse_type("i64[1]")), 0));
        Graph s;
        Value to = s.add_input("x", parse_type("f32[4,2]"));
        Value i = s.add_input("i", parse_type("i64[1]"));
        Value u = s.add_input("u", parse_type("f32[1,2]"));
        s.add_output("y", ops::scatter(s, to, i, u, "add"));
        for (const std::string& error :
             {error_of(g, {rows, index}), error_of(s, {rows, index, update})}) {
            EXPECT_EQ(error.find("an index is outside its axis") != std::string::npos, bad != 2)
                << error;
        }
    }
}

Graph scatter_of(const std::string& x, const std::string& updates, int64_t m, const char* fn) {
    Graph g;
    Value a = g.add_input("x", parse_type(x));
    Value i = g.add_input("i", {DType::I64, {Dim(m)}});
    Value u = g.add_input("u", parse_type(updates));
    g.add_output("y", ops::scatter(g, a, i, u, fn));
    return g;
}

TEST(Scatter, EveryFunctionInOrder) {
    for (const char* fn : {"none", "add", "mul", "min", "max"}) {
        for (const char* t : {"f32", "f16", "i32", "f64", "i8"}) {
            SCOPED_TRACE(str(fn, " ", t));
            Graph g = scatter_of(str(t, "[7,5]"), str(t, "[30,5]"), 30, fn);
            FamilyOptions o{.inputs = {Tensor{}, indices_below(7, {30}, DType::I64)}};
            o.tolerance = std::string(t) == "f16" ? 1e-3 : 1e-6;
            sweep(g, o);
        }
    }
}

TEST(Scatter, ManyRowsAndLongOnes) {
    Graph many = scatter_of("f32[300]", "f32[2500]", 2500, "add");
    expect_family(
        many, {.tolerance = 1e-6, .inputs = {Tensor{}, indices_below(300, {2500}, DType::I64)}});
    Graph longer = scatter_of("f16[5,3,200]", "f16[3,3,200]", 3, "none");
    FamilyOptions o{.tolerance = 0, .inputs = {Tensor{}, indices_below(5, {3}, DType::I64)}};
    expect_family(longer, o);
    o.strided = true;
    expect_family(longer, o);
}

// Rows of whole vectors, some named twice, for each width of elements and up to the most rows.
TEST(Scatter, FewRowsInOneLaunch) {
    for (const char* t : {"u8", "f16", "f32", "i64"}) {
        for (int64_t m : {1, 7, 128}) {
            SCOPED_TRACE(str(t, " ", m));
            Graph g = scatter_of(str(t, "[50,48]"), str(t, "[", m, ",48]"), m, "none");
            FamilyOptions o{.tolerance = 0,
                            .inputs = {Tensor{}, indices_below(50, {m}, DType::I64)}};
            EXPECT_EQ(expect_family(g, o).entries.back(), "scatter_placed");
        }
    }
    FamilyOptions o{.tolerance = 0, .inputs = {Tensor{}, indices_below(50, {129}, DType::I64)}};
    Graph more = scatter_of("f16[50,48]", "f16[129,48]", 129, "none");
    EXPECT_EQ(expect_family(more, o).entries.back(), "scatter");
    Graph odd = scatter_of("f16[50,44]", "f16[9,44]", 9, "none");
    o.inputs = {Tensor{}, indices_below(50, {9}, DType::I64)};
    EXPECT_EQ(expect_family(odd, o).entries.back(), "scatter");
}

TEST(Scatter, ManyIndices) {
    for (auto [fn, t] : {std::pair{"none", "f16"},
                         {"none", "u8"},
                         {"none", "i64"},
                         {"add", "f16"},
                         {"add", "i64"},
                         {"min", "i32"},
                         {"max", "u64"},
                         {"max", "f32"}}) {
        SCOPED_TRACE(str(fn, " ", t));
        FamilyOptions o{.inputs = {Tensor{}, indices_below(300, {2500}, DType::I64)}};
        o.tolerance = std::string(t) == "f16" && std::string(fn) == "add" ? 1e-3 : 0;
        expect_family(scatter_of(str(t, "[300]"), str(t, "[2500]"), 2500, fn), o);
    }
    // Rows of several axes, with gaps.
    FamilyOptions o{.inputs = {Tensor{}, indices_below(40, {2100}, DType::I64)}};
    o.strided = true;
    o.tolerance = 1e-6;
    Graph rows = scatter_of("f32[40,3,2]", "f32[2100,3,2]", 2100, "add");
    FamilyRun r = expect_family(rows, o);
    EXPECT_EQ(r.entries.back(), "scatter_finish_flagged");
    expect_family(scatter_of("f32[40,3,2]", "f32[2100,3,2]", 2100, "none"), o);
    expect_family(scatter_of("i32[40,3,2]", "i32[2100,3,2]", 2100, "max"), o);
}

TEST(Scatter, ManyFloatsOfAnySize) {
    float inf = std::numeric_limits<float>::infinity();
    float nan = std::numeric_limits<float>::quiet_NaN();
    Tensor x = Tensor::of<float>(DType::F32, {8},
                                 std::vector<float>{1, 2, inf, 3, -inf, 1e38F, nan, 1e-40F});
    Tensor u = random_elements(DType::F32, {2400}, 5);
    Tensor at = Tensor::empty(DType::I64, {2400});
    for (int64_t i = 0; i < at.count(); ++i) {
        at.set_i64(i, i % 7); // none of the last one
        u.set_f64(i, u.get_f64(i) * (i % 7 == 0 ? 1e-30 : i % 7 == 1 ? 1e30 : 1));
    }
    u.set_f64(3, inf);   // to 3: +inf
    u.set_f64(4, inf);   // to -inf: NaN
    u.set_f64(5, -1e38); // cancels
    Graph g = scatter_of("f32[8]", "f32[2400]", 2400, "add");
    expect_family(g, {.tolerance = 1e-6, .inputs = {x, at, u}});
    u.set_f64(0, 1e30); // far larger than the rest of its row
    for (int64_t i : {2, 3, 4, 5, 6}) {
        u.set_f64(i, 0);
    }
    x = random_elements(DType::F32, {8}, 6);
    expect_family(g, {.tolerance = 1e-6, .inputs = {x, at, u}});
}

TEST(Scatter, ManyIndicesOutOfRange) {
    for (const char* fn : {"none", "add"}) {
        for (int64_t bad : {-1, 7, 8}) {
            Graph g = scatter_of("f32[8]", "f32[2100]", 2100, fn);
            Tensor at = indices_below(8, {2100}, DType::I64);
            at.set_i64(2099, bad);
            std::string error = error_of(g, {random_elements(DType::F32, {8}, 1), at,
                                             random_elements(DType::F32, {2100}, 2)});
            EXPECT_EQ(error.find("an index is outside its axis") != std::string::npos, bad != 7)
                << error;
        }
    }
}

TEST(Scatter, SmallSumsBesideLargeOnes) {
    Tensor x = random_elements(DType::F32, {3}, 1, 0, 0);
    Tensor u = random_elements(DType::F32, {2100}, 2, 0.5, 1);
    Tensor at = Tensor::empty(DType::I64, {2100});
    double sums[3] = {};
    for (int64_t i = 0; i < at.count(); ++i) {
        at.set_i64(i, i % 3);
        u.set_f64(i, u.get_f64(i) * (i % 3 == 0 ? 1e30 : i % 3 == 1 ? 1e-30 : 1e-42));
        sums[i % 3] += u.get_f64(i);
    }
    FamilyRun r = expect_family(scatter_of("f32[3]", "f32[2100]", 2100, "add"),
                                {.tolerance = 1e-6, .inputs = {x, at, u}});
    for (int64_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(r.results[0].get_f64(i) / sums[i], 1, 1e-7) << i;
    }
}

TEST(Scatter, BooleansAndNothing) {
    Graph g = scatter_of("bool[6]", "bool[9]", 9, "max");
    sweep(g, {.inputs = {Tensor{}, indices_below(6, {9}, DType::I64)}});
    sweep(scatter_of("f32[6,2]", "f32[0,2]", 0, "add"), {.tolerance = 0});
}

TEST(Scatter, WritesInPlace) {
    Graph g;
    Value a = g.add_input("x", parse_type("f32[6,4]"));
    Value i = g.add_input("i", parse_type("i64[6]"));
    Value x = ops::exp(g, a);
    Value u = ops::mul(g, a, 2.0);
    g.add_output("y", ops::scatter(g, x, i, u, "add"));
    BackendRun run = expect_backend(
        g, {.tolerance = 1e-6, .inputs = {Tensor{}, indices_below(6, {6}, DType::I64)}});
    if (run.launches >= 0) {
        EXPECT_EQ(run.launches, 3) << "the maps, the check of indices, the sums: no copy of x";
    }
    // In memory of the plan, where x is not read again.
    Graph inner;
    Value c = inner.add_input("x", parse_type("f32[6,4]"));
    Value j = inner.add_input("i", parse_type("i64[6]"));
    Value sums = ops::scatter(inner, ops::exp(inner, c), j, ops::mul(inner, c, 2.0), "add");
    inner.add_output("y", ops::softmax(inner, sums, 1));
    BackendRun inside = expect_backend(
        inner, {.tolerance = 1e-6, .inputs = {Tensor{}, indices_below(6, {6}, DType::I64)}});
    if (inside.launches >= 0) {
        EXPECT_EQ(inside.launches, 3)
            << "no copy of x before the sums: " << join(inside.kernels, ", ");
    }
    // Many indices, and rows that are many more.
    for (const char* fn : {"none", "add"}) {
        for (int64_t rows : {900, 9000}) {
            Graph many;
            Value b = many.add_input("x", {DType::F32, {rows}});
            Value at = many.add_input("i", parse_type("i64[2100]"));
            Value v = many.add_input("u", parse_type("f32[2100]"));
            many.add_output("y", ops::scatter(many, ops::exp(many, b), at, v, fn));
            Tensor indices = indices_below(rows, {2100}, DType::I64);
            expect_backend(many, {.tolerance = 1e-6, .inputs = {Tensor{}, indices, Tensor{}}});
        }
    }
}

} // namespace
} // namespace ingot::test
