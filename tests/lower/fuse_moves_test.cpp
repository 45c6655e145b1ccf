// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/op_table.h"
#include "ops/roll.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ingot::plan {
namespace {

/// One kernel, which takes every group.
KernelSet kernels() {
    static const Kernel rolls[] = {
        {.name = "roll",
         .refuse = [](const Group&) -> std::optional<std::string> { return std::nullopt; },
         .prepare = nullptr,
         .takes_groups = true}};
    static const KernelTable table = rolls;
    static const KernelTable* const tables[] = {&table};
    return {"test", [] { return std::span<const KernelTable* const>(tables); }, nullptr};
}

Graph parsed(const char* body) {
    return parse_graph(body, {&find_op, {}});
}

/// Nodes of the graph by op, groups by kernel.
size_t count(const Graph& g, std::string_view name) {
    size_t n = 0;
    for (const Node& node : g.nodes()) {
        std::string_view is = node.is(fused_def) ? node.as<Fused>().kernel : node.def->name;
        n += is == name ? 1 : 0;
    }
    return n;
}

Graph fused(const Graph& g) {
    Graph out = after(fuse_moves, g, kernels());
    verify(out);
    EXPECT_EQ(print(after(fuse_moves, out, kernels())), print(out)) << "not idempotent";
    std::vector<Tensor> in;
    for (Value v : g.inputs()) {
        Tensor t = Tensor::empty(DType::F32, eval(g.type(v).dims, {}));
        std::iota(t.as_mutable<float>().begin(), t.as_mutable<float>().end(), 1.0F);
        in.push_back(std::move(t));
    }
    EXPECT_TRUE(evaluate(g, in)[0] == evaluate(out, in)[0]);
    return out;
}

TEST(FuseMoves, WindowsBehindARoll) {
    Graph g = fused(parsed(R"(graph main(%x: f32[1,4,6,3]) {
  %1 = roll(%x) {axes=[1,2], shifts=[3,4]} : f32[1,4,6,3]
  %2 = reshape(%1) {dims=[1,2,2,3,2,3]} : f32[1,2,2,3,2,3]
  %3 = permute(%2) {perm=[0,1,3,2,4,5]} : f32[1,2,3,2,2,3]
  %4 = reshape(%3) {dims=[6,4,3]} : f32[6,4,3]
  return %4 as y
})"));
    EXPECT_EQ(g.nodes().size(), 1U);
    EXPECT_EQ(count(g, "roll"), 1U);
}

TEST(FuseMoves, WindowsBeforeARollAndItsMap) {
    Graph g = fused(parsed(R"(graph main(%x: f32[6,4,3], %z: f32[1,4,6,3]) {
  %2 = reshape(%x) {dims=[1,2,3,2,2,3]} : f32[1,2,3,2,2,3]
  %3 = permute(%2) {perm=[0,1,3,2,4,5]} : f32[1,2,2,3,2,3]
  %4 = reshape(%3) {dims=[1,4,6,3]} : f32[1,4,6,3]
  %5 = roll(%4) {axes=[1,2], shifts=[1,2]} : f32[1,4,6,3]
  %6 = map(%5, %z) {body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32"} : f32[1,4,6,3]
  return %6 as y
})"));
    EXPECT_EQ(count(g, "roll"), 1U);
    EXPECT_EQ(count(g, "map"), 1U); // nothing fuses maps here
    EXPECT_EQ(g.nodes().size(), 2U);
}

TEST(FuseMoves, AMapThatReadsWindowsBackInPlace) {
    Graph g = fused(parsed(R"(graph main(%x: f32[6,4,3], %z: f32[1,4,6,3]) {
  %2 = reshape(%x) {dims=[1,2,3,2,2,3]} : f32[1,2,3,2,2,3]
  %3 = permute(%2) {perm=[0,1,3,2,4,5]} : f32[1,2,2,3,2,3]
  %4 = reshape(%3) {dims=[1,4,6,3]} : f32[1,4,6,3]
  %5 = map(%z, %4, %4) {body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32; 3=in(2):f32; 4=mul(2,3):f32"} : f32[1,4,6,3]
  return %5 as y
})"));
    EXPECT_EQ(g.nodes().size(), 1U);
    EXPECT_EQ(count(g, "roll"), 1U);
}

TEST(FuseMoves, ViewsStay) {
    // A permute alone; rows that do not stay rows; a roll whose result is needed as it is.
    Graph permuted = fused(parsed(R"(graph main(%x: f32[4,6]) {
  %1 = permute(%x) {perm=[1,0]} : f32[6,4]
  %2 = map(%1) {body="0=in(0):f32; 1=neg(0):f32"} : f32[6,4]
  return %2 as y
})"));
    EXPECT_EQ(count(permuted, "map"), 1U);
    Graph columns = fused(parsed(R"(graph main(%x: f32[2,4,6]) {
  %1 = permute(%x) {perm=[0,2,1]} : f32[2,6,4]
  %2 = reshape(%1) {dims=[12,4]} : f32[12,4]
  %3 = map(%2) {body="0=in(0):f32; 1=neg(0):f32"} : f32[12,4]
  return %3 as y
})"));
    EXPECT_EQ(count(columns, "map"), 1U);
    Graph twice = fused(parsed(R"(graph main(%x: f32[4,6]) {
  %1 = roll(%x) {axes=[0], shifts=[1]} : f32[4,6]
  %2 = permute(%1) {perm=[1,0]} : f32[6,4]
  %3 = reshape(%2) {dims=[24]} : f32[24]
  return %3 as y, %1 as z
})"));
    EXPECT_EQ(count(twice, "reshape"), 1U);
}

} // namespace
} // namespace ingot::plan
