// SPDX-License-Identifier: Apache-2.0
// Maps fused into maps: which ones, and that results stay.
#include "ir/text.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace ingot::plan {
namespace {

size_t maps_of(const Graph& g) {
    return static_cast<size_t>(std::count_if(g.nodes().begin(), g.nodes().end(),
                                             [](const Node& n) { return n.is(map_def); }));
}

Graph fused(const std::string& text, MakePass pass) {
    Graph g = parse_graph(text, {&find_op, {}});
    Graph out = after(pass, g);
    verify(out);
    std::vector<Tensor> in;
    for (Value v : g.inputs()) {
        Tensor t = Tensor::empty(DType::F32, eval(g.type(v).dims, {}));
        std::iota(t.as_mutable<float>().begin(), t.as_mutable<float>().end(), 1.0F);
        in.push_back(std::move(t));
    }
    std::vector<Tensor> before = evaluate(g, in);
    std::vector<Tensor> after = evaluate(out, in);
    for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(before[i] == after[i]) << "output " << i;
    }
    return out;
}

TEST(FuseMaps, OneReader) {
    Graph g = fused(R"(graph main(%x: f32[2,3], %y: f32[2,3]) {
  %1 = map(%x) {body="0=in(0):f32; 1=exp(0):f32"} : f32[2,3]
  %2 = map(%1, %y) {body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32"} : f32[2,3]
  return %2 as z
})",
                    fuse_maps);
    EXPECT_EQ(maps_of(g), 1U);
}

TEST(FuseMaps, CheapOnesAreRepeatedForEachReader) {
    // A timestep's embedding: the product is broadcast and read twice.
    Graph g = fused(R"(graph main(%t: f32[2,1], %f: f32[5]) {
  %1 = map(%t) {body="0=in(0):f32; 1=neg(0):f32"} : f32[2,1]
  %2 = map(%1, %f) {body="0=in(0):f32; 1=in(1):f32; 2=mul(0,1):f32"} : f32[2,5]
  %3 = map(%2) {body="0=in(0):f32; 1=cos(0):f32"} : f32[2,5]
  %4 = map(%2) {body="0=in(0):f32; 1=sin(0):f32"} : f32[2,5]
  return %3 as c, %4 as s
})",
                    fuse_maps);
    EXPECT_EQ(maps_of(g), 2U);
}

TEST(FuseMaps, OthersAreStoredOnce) {
    const char* const bodies[] = {
        // costly
        R"(  %1 = map(%x) {body="0=in(0):f32; 1=exp(0):f32"} : f32[2,3])",
        // an output too
        R"(  %1 = map(%x) {body="0=in(0):f32; 1=neg(0):f32"} : f32[2,3])",
        // more to read again than to store
        R"(  %1 = map(%x, %y, %z, %w) {body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32; 3=in(2):f32; 4=add(2,3):f32; 5=in(3):f32; 6=add(4,5):f32"} : f32[2,3])"};
    for (const char* body : bodies) {
        bool shown = body == bodies[1];
        Graph g = fused(
            str("graph main(%x: f32[2,3], %y: f32[2,3], %z: f32[2,3], %w: f32[2,3]) {\n", body, R"(
  %2 = map(%1) {body="0=in(0):f32; 1=cos(0):f32"} : f32[2,3]
  %3 = map(%1) {body="0=in(0):f32; 1=sin(0):f32"} : f32[2,3]
  return %2 as c, %3 as s)",
                shown ? ", %1 as n" : "", "\n}"),
            fuse_maps);
        EXPECT_EQ(maps_of(g), 3U) << body;
    }
}

TEST(FuseMaps, WhatMayBecomeAnEpilogueIsNotRepeated) {
    Graph g = fused(R"(graph main(%x: f32[2,3], %y: f32[3,4]) {
  %1 = dot(%x, %y) {a_contract=[1], b_contract=[0], dtype=f32} : f32[2,4]
  %2 = reshape(%1) {dims=[4,2]} : f32[4,2]
  %3 = map(%2) {body="0=in(0):f32; 1=neg(0):f32"} : f32[4,2]
  %4 = map(%3) {body="0=in(0):f32; 1=cos(0):f32"} : f32[4,2]
  %5 = map(%3) {body="0=in(0):f32; 1=sin(0):f32"} : f32[4,2]
  return %4 as c, %5 as s
})",
                    fuse_maps);
    EXPECT_EQ(maps_of(g), 3U);
}

TEST(LiftMaps, OverAConcatOfMaps) {
    const std::string text = R"(graph main(%x: f32[2,3], %y: f32[2,2]) {
  %1 = map(%x) {body="0=in(0):f32; 1=cos(0):f32"} : f32[2,3]
  %2 = concat(%1, %y) {axis=1} : f32[2,5]
  %3 = map(%2) {body="0=in(0):f32", dtype=f16} : f16[2,5]
  return %3 as z
})";
    Graph g = fused(text, lift_maps);
    EXPECT_TRUE(g.producer(g.outputs()[0])->is(concat_def));
    EXPECT_EQ(maps_of(after(fuse_maps, g)), 2U);
}

TEST(LiftMaps, NotOverAConcatOfKernels) {
    Graph g = fused(R"(graph main(%x: f32[2,3], %y: f32[3,4]) {
  %1 = dot(%x, %y) {a_contract=[1], b_contract=[0], dtype=f32} : f32[2,4]
  %2 = concat(%1, %x) {axis=1} : f32[2,7]
  %3 = map(%2) {body="0=in(0):f32; 1=cos(0):f32"} : f32[2,7]
  return %3 as z
})",
                    lift_maps);
    EXPECT_TRUE(g.producer(g.outputs()[0])->is(map_def));
}

} // namespace
} // namespace ingot::plan
