// SPDX-License-Identifier: Apache-2.0
// Copies between layouts, and the ops of the family copy: pad, iota, random, concat of packed
// types.
#include "kernels/copy/copy.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

TEST(Copy, PermutesEveryWidth) {
    for (DType t : {DType::Bool, DType::F16, DType::F32, DType::I64, DType::U4}) {
        SCOPED_TRACE(name(t));
        Graph g;
        Value x = g.add_input("x", {t, {Dim(2), Dim(40), Dim(6), Dim(10)}});
        g.add_output("y", ops::permute(g, x, {0, 2, 3, 1}));
        expect_backend(g, {.tolerance = 0});
        Graph small;
        Value s = small.add_input("x", {t, {Dim(3), Dim(4), Dim(5)}});
        small.add_output("y", ops::permute(small, s, {2, 1, 0}));
        expect_backend(small, {.tolerance = 0});
    }
}

TEST(Copy, SlicesAndRepeats) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[9,33]"));
    g.add_output("rows", ops::slice(g, x, 0, 1, 4, 2));
    g.add_output("columns", ops::slice(g, x, 1, 3, 16));
    g.add_output("backwards", ops::reverse(g, x, 1));
    g.add_output("repeated", ops::broadcast_to(g, ops::slice(g, x, 0, 0, 1), {Dim(5), Dim(33)}));
    g.add_output("parts", ops::concat(g, std::vector<Value>{x, x}, 1));
    expect_backend(g, {.tolerance = 0});
}

/// emit_copy's kernel for a view of shape {size, size} and strides `from`.
std::string copy_entry(DType t, int64_t size, const Shape& from, const Shape& to) {
    plan::Operand a{t, 0, {{size, size}, from, 0}};
    plan::Operand b{t, 1, {{size, size}, to, 0}};
    kernels::Emitted e = kernels::emit_copy(a, b, kernels::arch_of(90));
    return e.launches.empty() ? "" : e.launches.front().entry;
}

TEST(Copy, ChoosesTiles) {
    EXPECT_EQ(copy_entry(DType::F16, 256, {1, 256}, {256, 1}), "copy_tile");
    EXPECT_EQ(copy_entry(DType::F16, 256, {256, 1}, {512, 1}), "copy");
    EXPECT_EQ(copy_entry(DType::F16, 16, {1, 16}, {16, 1}), "copy");
    EXPECT_EQ(copy_entry(DType::I4, 16, {16, 1}, {16, 1}), "copy");
    EXPECT_EQ(copy_entry(DType::I4, 16, {1, 16}, {16, 1}), "copy_packed");
    EXPECT_EQ(copy_entry(DType::F32, 0, {0, 1}, {0, 1}), "");
}

TEST(Pad, EveryMode) {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
        SCOPED_TRACE(mode);
        for (const char* type : {"f16[2,5,6,8]", "f32[3,4]"}) {
            Graph g;
            Value x = g.add_input("x", parse_type(type));
            int rank = g.type(x).rank();
            Dims low(static_cast<size_t>(rank), Dim(0));
            Dims high = low;
            low[1] = 1;
            high[1] = 9;
            high[0] = rank == 2 ? 1 : 0;
            low[static_cast<size_t>(rank) - 1] = rank == 2 ? 2 : 0;
            Value v = ops::scalar(g, g.type(x).dtype, 7);
            g.add_output("y", ops::pad(g, x, low, high, v, mode));
            sweep(g, {.tolerance = 0});
            sweep(g, {.tolerance = 0, .strided = true});
        }
    }
}

TEST(Pad, KeepsVectorsWhereSizesAllow) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,16,16]"));
    g.add_output("y", ops::pad(g, x, {0, 1, 8}, {0, 0, 16}, 0.0));
    sweep(g, {.tolerance = 0});
    EXPECT_NE(expect_family(g, {.tolerance = 0}).texts.at(0).find(" r[8];"), std::string::npos);
    Graph odd;
    Value v = odd.add_input("x", parse_type("f16[2,16,16]"));
    odd.add_output("y", ops::pad(odd, v, {0, 1, 4}, {0, 0, 16}, 0.0));
    EXPECT_NE(expect_family(odd, {.tolerance = 0}).texts.at(0).find(" r[4];"), std::string::npos);
}

TEST(Pad, ScalarAndEmpty) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[0,3]"));
    g.add_output("y", ops::pad(g, x, {1, 1}, {1, 0}, 2.5));
    sweep(g, {.tolerance = 0});
}

TEST(Iota, EveryAxis) {
    for (DType t : {DType::I64, DType::I32, DType::F32, DType::F16, DType::U8, DType::F64}) {
        for (int64_t axis = 0; axis < 3; ++axis) {
            Graph g;
            g.add_output("y", ops::iota(g, t, {Dim(4), Dim(5), Dim(300)}, axis));
            sweep(g, {.tolerance = 0});
        }
    }
}

TEST(Random, IsPhilox) {
    for (const char* kind : {"uniform", "normal"}) {
        for (DType t : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
            SCOPED_TRACE(str(kind, " ", t));
            Graph g;
            Random a;
            a.kind = kind;
            a.a = -1;
            a.b = 3;
            a.dtype = t;
            a.dims = {Dim(7), Dim(100)};
            a.seed = 0x123456789abLL;
            g.add_output("y", g.add1(random_def, a, {}));
            // Those of f64 differ in the last place where products and sums are joined.
            sweep(g, {.tolerance = t == DType::F64 ? 1e-14 : 1e-6, .f64 = false});
        }
    }
}

TEST(Concat, PacksParts) {
    for (int64_t axis = 0; axis < 2; ++axis) {
        Graph g;
        Value a = g.add_input("a", parse_type(axis == 0 ? "i4[3,7]" : "i4[3,3]"));
        Value b = g.add_input("b", parse_type(axis == 0 ? "i4[2,7]" : "i4[3,8]"));
        g.add_output("y", ops::concat(g, std::vector<Value>{a, b, a}, axis));
        sweep(g, {.tolerance = 0});
    }
}

} // namespace
} // namespace ingot::test
