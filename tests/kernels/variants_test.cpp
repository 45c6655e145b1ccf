// SPDX-License-Identifier: Apache-2.0
// Programs that serve several problems: missing addends, an axis of rows more; and the choice of
// few programs for a whole plan.
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::test {
namespace {

/// y + bias + residual, as many of them as `addends`; a sigmoid follows where `curved`.
Value finished(Graph& g, Value y, int addends, bool curved, const std::string& name) {
    const Type& t = g.type(y);
    Expr e;
    int at = e.in(0, t.dtype);
    std::vector<Value> inputs = {y};
    for (int i = 0; i < addends; ++i) {
        Dims dims = i == 0 ? Dims{t.dims.back()} : t.dims;
        inputs.push_back(g.add_input(name + std::to_string(i), {t.dtype, dims}));
        at = e.op(ExprOp::Add, at, e.in(i + 1, t.dtype));
    }
    if (curved) {
        e.op(ExprOp::Mul, e.op(ExprOp::Sigmoid, at), at);
    }
    return addends == 0 && !curved ? y : ops::map(g, e, t.dtype, inputs);
}

Value product(Graph& g, Dim rows, int64_t columns, int64_t depth, const std::string& name) {
    Value a = g.add_input("a" + name, {DType::F16, {std::move(rows), depth}});
    Value b = g.add_input("b" + name, {DType::F16, {columns, depth}});
    return ops::dot(g, Dot{{}, {}, {1}, {1}, DType::F16}, a, b);
}

std::string difference_of(const FamilyRun& a, const FamilyRun& b) {
    bool same = a.results.size() == 1 && b.results.size() == 1 && a.results[0] == b.results[0];
    return same ? "" : "the results differ";
}

FamilyRun run_product(int addends, bool curved, const std::string& tactic, int variant) {
    Graph g;
    g.add_output("y", finished(g, product(g, 150, 72, 400, ""), addends, curved, "x"));
    FamilyOptions o;
    o.tactic = tactic;
    o.variant = variant;
    return expect_family(g, o);
}

TEST(Variants, SumsWithMissingAddendsShareAProgram) {
    for (const char* tactic : {"wgmma_64x64_s1", "wgmma_128x128_s3", "wgmma_256x160_s1"}) {
        for (bool curved : {false, true}) {
            SCOPED_TRACE(tactic);
            FamilyRun whole = run_product(2, curved, tactic, 0);
            for (int addends : {0, 1}) {
                FamilyRun plain = run_product(addends, curved, tactic, 0);
                FamilyRun general = run_product(addends, curved, tactic, 1);
                EXPECT_NE(plain.texts, whole.texts);
                EXPECT_EQ(general.texts, whole.texts);
                EXPECT_EQ(difference_of(general, plain), "");
            }
            EXPECT_EQ(run_product(2, curved, tactic, 1).texts, whole.texts);
            EXPECT_NE(run_product(2, curved, tactic, 3).texts, whole.texts);
        }
    }
}

TEST(Variants, AnAddendThatIsNoVectorHasNoMissingOneBeside) {
    for (const char* tactic : {"wgmma_64x64_s1", "wgmma_64x64_s3", "wgmma_256x160_s1"}) {
        SCOPED_TRACE(tactic);
        Graph g;
        Value y = product(g, 150, 72, 400, "");
        Value x = g.add_input("x", {DType::F16, {150, 1}});
        Expr e;
        e.op(ExprOp::Add, e.in(0, DType::F16), e.in(1, DType::F16));
        g.add_output("y", ops::map(g, e, DType::F16, std::vector<Value>{y, x}));
        FamilyOptions o;
        o.tactic = tactic;
        o.variant = 1;
        expect_family(g, o);
    }
}

/// conv + bias + an addend of each image or of each position.
FamilyRun run_conv(bool by_image, const std::string& tactic, int variant) {
    Graph g;
    Value x = g.add_input("x", {DType::F16, {2, 24, 9, 7}});
    Value w = g.add_input("w", {DType::F16, {40, 24, 3, 3}});
    Value y = ops::conv(g, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, DType::F16}, x, w);
    Value bias = g.add_input("bias", {DType::F16, {40, 1, 1}});
    Value other =
        g.add_input("other", {DType::F16, by_image ? Dims{2, 40, 1, 1} : Dims{2, 40, 9, 7}});
    Expr e;
    int at = e.op(ExprOp::Add, e.in(0, DType::F16), e.in(1, DType::F16));
    e.op(ExprOp::Add, at, e.in(2, DType::F16));
    g.add_output("y", ops::map(g, e, DType::F16, std::vector<Value>{y, bias, other}));
    FamilyOptions o;
    o.tactic = tactic;
    o.variant = variant;
    o.orders = {{0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
    return expect_family(g, o);
}

TEST(Variants, RowsOfOneAxisRunAsRowsOfTwo) {
    for (const char* tactic : {"conv_wgmma_64x64_s1", "conv_wgmma_128x128_s2"}) {
        SCOPED_TRACE(tactic);
        FamilyRun two = run_conv(true, tactic, 0);
        FamilyRun one = run_conv(false, tactic, 0);
        EXPECT_NE(one.texts, two.texts);
        FamilyRun general = run_conv(false, tactic, 2);
        EXPECT_EQ(general.texts, two.texts);
        EXPECT_EQ(difference_of(general, one), "");
    }
}

size_t kernels_of(const Graph& g) {
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(eval(g.type(v).dims, {}));
    }
    std::vector<std::vector<Shape>> all = {shapes};
    return list_kernels_ahead(std::make_shared<const Graph>(g), all, 90, {}).size();
}

TEST(Variants, APlanHasFewPrograms) {
    // Products with none, one and two addends, of sizes whose best tiles lie close together.
    Graph g;
    int next = 0;
    for (int64_t rows : {64, 100, 128}) {
        for (int addends : {0, 1, 2}) {
            std::string name = std::to_string(next++);
            g.add_output("y" + name, finished(g, product(g, rows, 64 + 8 * addends, 256, name),
                                              addends, false, "x" + name + "_"));
        }
    }
    EXPECT_EQ(kernels_of(g), 1U);
    expect_backend(g, {.tolerance = 4e-3});
}

TEST(Variants, AProgramThatIsMuchFasterStays) {
    Graph g;
    g.add_output("small", product(g, 64, 64, 256, "s"));
    g.add_output("large", product(g, 4096, 4096, 4096, "l"));
    EXPECT_EQ(kernels_of(g), 2U);
}

} // namespace
} // namespace ingot::test
