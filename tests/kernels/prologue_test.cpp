// SPDX-License-Identifier: Apache-2.0
// Casts that kernels read through, in the whole backend.
#include "backends/cuda/lower.h"
#include "harness.h"
#include "ir/text.h"
#include "kernels/family.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph sum_of_halves(const std::string& type, std::vector<int64_t> axes, bool other_reader) {
    Graph g;
    Value x = g.add_input("x", parse_type(type));
    Value wide = ops::cast(g, x, DType::F32);
    g.add_output("sum", ops::cast(g, ops::reduce_sum(g, wide, axes), DType::F16));
    if (other_reader) {
        g.add_output("wide", wide);
    }
    return g;
}

int64_t maps_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return n.is(map_def); });
}

TEST(Prologue, SumsReadSixteenBits) {
    for (const char* type : {"f16[2,24,7,9]", "bf16[3,130,5]", "f16[5,1]"}) {
        SCOPED_TRACE(type);
        int rank = parse_type(type).rank();
        for (bool other_reader : {false, true}) {
            Graph g = sum_of_halves(type, {rank - 1}, other_reader);
            Graph lowered = cuda::lower(g, {});
            EXPECT_EQ(maps_of(lowered), other_reader ? 1 : 0) << print(lowered);
            expect_backend(g, {.tolerance = 2e-2});
        }
    }
    expect_backend(sum_of_halves("f16[2,24,7,9]", {2, 3}, false), {.tolerance = 2e-3});
    expect_backend(sum_of_halves("f16[3,5000]", {1}, false), {.tolerance = 2e-3});
}

TEST(Prologue, OtherMapsStay) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[4,32]"));
    Value square = ops::cast(g, x, DType::F32);
    g.add_output("y", ops::reduce_sum(g, ops::mul(g, square, square), {1}));
    EXPECT_EQ(maps_of(cuda::lower(g, {})), 1);
    expect_backend(g, {.tolerance = 1e-4});
}

} // namespace
} // namespace ingot::test
