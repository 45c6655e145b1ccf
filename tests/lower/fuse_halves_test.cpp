// SPDX-License-Identifier: Apache-2.0
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::plan {
namespace {

/// One kernel, which takes every group.
KernelSet kernels() {
    static const Kernel dots[] = {
        {.name = "dot",
         .refuse = [](const Group&) -> std::optional<std::string> { return std::nullopt; },
         .prepare = nullptr,
         .takes_groups = true}};
    static const KernelTable table = dots;
    static const KernelTable* const tables[] = {&table};
    return {"test", [] { return std::span<const KernelTable* const>(tables); }, nullptr};
}

Tensor random_tensor(std::mt19937& rng, Shape shape) {
    std::normal_distribution<float> normal;
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (float& x : t.as_mutable<float>()) {
        x = normal(rng);
    }
    return t;
}

/// x [B, 3, 8] times [8, 12].
struct Product {
    std::mt19937 rng{1};
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("B"), 3, 8}});
    Value y = ops::matmul(g, x, ops::constant(g, random_tensor(rng, {8, 12})));

    Value half(Value v, int64_t which) {
        return ops::slice(g, v, g.type(v).rank() - 1, 6 * which, 6);
    }
    Value row(int64_t n) { return ops::constant(g, random_tensor(rng, {n})); }
};

/// The graph behind the passes before this one, and this one.
Graph fused(const Graph& g) {
    Graph maps = after(fuse_maps, after(expand, g, kernels()));
    return after(fuse_halves, after(lift_maps, maps), kernels());
}

int64_t groups_of_four(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(), [](const Node& n) {
        return n.is(fused_def) && n.as<Fused>().kernel == "dot" &&
               n.as<Fused>().body->nodes().size() == 4;
    });
}

int64_t maps_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return n.is(map_def); });
}

void expect_fused(Product& p, bool expected = true) {
    Graph out = fused(p.g);
    EXPECT_EQ(groups_of_four(out), expected ? 1 : 0);
    EXPECT_EQ(maps_of(out) == 0, expected);
    std::vector<Tensor> in{random_tensor(p.rng, {2, 3, 8})};
    std::vector<Tensor> want = evaluate(p.g, in);
    std::vector<Tensor> got = evaluate(out, in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].shape(), want[i].shape());
        for (int64_t k = 0; k < got[i].count(); ++k) {
            EXPECT_NEAR(got[i].get_f64(k), want[i].get_f64(k), 1e-5);
        }
    }
}

TEST(FuseHalves, EitherHalfMayBeTheGate) {
    for (int64_t gate : {0, 1}) {
        Product p;
        Value a = ops::unary(p.g, ExprOp::Sigmoid, p.half(p.y, gate));
        p.g.add_output("z", ops::mul(p.g, a, p.half(p.y, 1 - gate)));
        expect_fused(p);
    }
}

TEST(FuseHalves, TheBiasOfTheWholeIsSplit) {
    Product p;
    Value y = ops::add(p.g, p.y, p.row(12));
    y = ops::mul(p.g, y, p.row(1));
    Value z = ops::mul(p.g, p.half(y, 0), ops::gelu(p.g, p.half(y, 1)));
    p.g.add_output("z", ops::add(p.g, z, p.row(6)));
    expect_fused(p);
}

TEST(FuseHalves, AResidualOfTheWholeIsSplit) {
    Product p;
    Value other = p.g.add_input("other", {DType::F32, {Dim::symbol("B"), 3, 12}});
    Value y = ops::add(p.g, p.y, other);
    p.g.add_output("z", ops::mul(p.g, p.half(y, 0), ops::unary(p.g, ExprOp::Tanh, p.half(y, 1))));
    EXPECT_EQ(groups_of_four(fused(p.g)), 1);
}

TEST(FuseHalves, BehindAReshape) {
    Product p;
    Value y = ops::add(p.g, p.y, p.row(12));
    y = ops::reshape(p.g, y, {Dim::symbol("B") * 3, 12});
    Value z = ops::mul(p.g, p.half(y, 0), ops::unary(p.g, ExprOp::Sigmoid, p.half(y, 1)));
    p.g.add_output("z", ops::mul(p.g, z, p.row(6)));
    expect_fused(p);
}

TEST(FuseHalves, TwoProductsOfOneOperand) {
    Product p;
    Value up = ops::matmul(p.g, p.x, ops::constant(p.g, random_tensor(p.rng, {8, 12})));
    p.g.add_output("z", ops::mul(p.g, ops::unary(p.g, ExprOp::Sigmoid, p.y), up));
    Graph merged = after(merge_dots, p.g);
    EXPECT_EQ(groups_of_four(fused(merged)), 1);
    EXPECT_EQ(maps_of(fused(merged)), 0);
}

TEST(FuseHalves, NearMisses) {
    { // the whole is read elsewhere
        Product p;
        p.g.add_output("y", p.y);
        p.g.add_output("z", ops::mul(p.g, p.half(p.y, 0), p.half(p.y, 1)));
        expect_fused(p, false);
    }
    { // a half is
        Product p;
        Value a = p.half(p.y, 0);
        p.g.add_output("a", a);
        p.g.add_output("z", ops::mul(p.g, a, p.half(p.y, 1)));
        expect_fused(p, false);
    }
    { // other parts
        Product p;
        Value a = ops::slice(p.g, p.y, 2, 1, 6);
        p.g.add_output("z", ops::mul(p.g, a, p.half(p.y, 1)));
        expect_fused(p, false);
    }
}

} // namespace
} // namespace ingot::plan
