// SPDX-License-Identifier: Apache-2.0
// Matrix products whose depth the blocks of a cluster split (kernels/contraction/store_early.cuh).
#include "base/error.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace ingot::test {
namespace {

struct SplitCase {
    int64_t rows, columns, depth;
    const char* tile;
};

Graph product(int64_t rows, int64_t columns, int64_t depth) {
    Graph g;
    Value a = g.add_input("a", {DType::F16, {rows, depth}});
    Value b = g.add_input("b", {DType::F16, {columns, depth}});
    Dot d;
    d.dtype = DType::F32;
    d.a_contract = {1};
    d.b_contract = {1};
    g.add_output("y", ops::dot(g, d, a, b));
    return g;
}

/// The elements [begin, end) of a matrix's rows.
Tensor columns_of(const Tensor& t, int64_t begin, int64_t end) {
    Tensor part = Tensor::empty(t.dtype(), {t.shape()[0], end - begin});
    auto to = part.as_mutable<uint16_t>();
    auto from = t.as<uint16_t>();
    auto width = static_cast<size_t>(end - begin);
    for (size_t r = 0; r < static_cast<size_t>(t.shape()[0]); ++r) {
        auto row = from.subspan(r * static_cast<size_t>(t.shape()[1]) + static_cast<size_t>(begin));
        std::copy_n(row.begin(), width, to.subspan(r * width).begin());
    }
    return part;
}

FamilyRun run(const SplitCase& c, int splits, const std::vector<Tensor>& inputs) {
    FamilyOptions o;
    o.tactic = str("wgmma_", c.tile, "_s", splits);
    o.inputs = inputs;
    FamilyRun r = expect_family(product(c.rows, c.columns, inputs[0].shape()[1]), o);
    EXPECT_EQ(r.tactic, o.tactic);
    return r;
}

/// The products of the parts of the depth, added one after the other.
std::vector<float> sum_of_parts(const SplitCase& c, int splits, const std::vector<Tensor>& inputs) {
    constexpr int64_t step = 64;
    int64_t steps = (c.depth + step - 1) / step;
    std::vector<float> sum;
    for (int64_t s = 0; s < splits; ++s) {
        int64_t begin = steps * s / splits * step;
        int64_t end = std::min(c.depth, steps * (s + 1) / splits * step);
        FamilyRun part =
            run(c, 1, {columns_of(inputs[0], begin, end), columns_of(inputs[1], begin, end)});
        auto x = part.results.at(0).as<float>();
        sum.resize(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            sum[i] = s == 0 ? x[i] : sum[i] + x[i];
        }
    }
    return sum;
}

void expect_order_of_ranks(const SplitCase& c, std::initializer_list<int> all_splits) {
    std::vector<Tensor> inputs = {random_elements(DType::F16, {c.rows, c.depth}, 5),
                                  random_elements(DType::F16, {c.columns, c.depth}, 6)};
    for (int splits : all_splits) {
        SCOPED_TRACE(
            str(c.tile, " in ", splits, " parts: ", c.rows, " x ", c.columns, " x ", c.depth));
        FamilyRun whole = run(c, splits, inputs);
        std::vector<float> sum = sum_of_parts(c, splits, inputs);
        auto got = whole.results.at(0).as<float>();
        ASSERT_EQ(got.size(), sum.size());
        EXPECT_EQ(std::memcmp(got.data(), sum.data(), got.size_bytes()), 0);
    }
}

/// Fewer rows than blocks, a last tile of three rows, and columns that end within a tile.
TEST(GemmSplit, SumsAreAddedInTheOrderOfRanks) {
    expect_order_of_ranks({1, 24, 1024, "64x32"}, {2, 3, 4, 8});
    expect_order_of_ranks({5, 72, 1100 + 4, "64x64"}, {2, 3, 4, 8});
    expect_order_of_ranks({67, 40, 1144, "64x64"}, {2, 3, 4, 8});
    expect_order_of_ranks({61, 104, 1024, "64x96"}, {3, 8});
    expect_order_of_ranks({131, 136, 1032, "128x128"}, {3, 4});
}

/// More blocks than SMs: sums are sent to where the pipeline was.
TEST(GemmSplit, SumsTakeThePlaceOfThePipeline) {
    expect_order_of_ranks({9, 2176, 512, "64x64"}, {4});
    expect_order_of_ranks({70, 1440, 384, "64x64"}, {3});
}

/// Slots of 22 rows, for three blocks, leave room for a stage less than a tile of 64 rows does.
TEST(GemmSplit, DeepRingsLeaveRoomForTheSlots) {
    SplitCase c{64, 200, 1600, "64x128"};
    std::vector<Tensor> inputs = {random_elements(DType::F16, {c.rows, c.depth}, 5),
                                  random_elements(DType::F16, {c.columns, c.depth}, 6)};
    auto has = [&](int splits, const char* define) {
        return run(c, splits, inputs).texts.at(0).find(define) != std::string::npos;
    };
    EXPECT_TRUE(has(2, "#define ST 8\n"));
    EXPECT_TRUE(has(3, "#define ST 7\n"));
    expect_order_of_ranks(c, {3});
}

} // namespace
} // namespace ingot::test
