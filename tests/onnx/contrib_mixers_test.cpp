// SPDX-License-Identifier: Apache-2.0
// The texts of refusals of com.microsoft's gates, mixers, linear attention and joined projections.
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

std::string why_refused(std::vector<std::string> inputs, Node n,
                        std::vector<Tensor> constants = {}) {
    n.domain = "com.microsoft";
    return refusal(model(graph(std::move(inputs), n.outputs, {n}, std::move(constants))));
}

TEST(ContribMixers, GatesRefuseWhatDoesNotFit) {
    EXPECT_EQ(why_refused({"x:f32[2,8]", "s:f32[3]", "g:f32[2,8]"},
                          node("GatedRMSNorm", {"x", "s", "g"}, {"y"})),
              "X is f32[2,8] and scale f32[3], expected a multiple of 3 elements along the last "
              "axis");
    EXPECT_EQ(why_refused(
                  {"x:f32[2,8]", "s:f32[8]", "g:f32[2,8]"},
                  node("GatedRMSNorm", {"x", "s", "g"}, {"y"}, {string_of("activation", "relu")})),
              "attribute 'activation' is 'relu', expected 'silu', 'swish' or 'sigmoid'");
    EXPECT_EQ(why_refused({"a:f32[2,4]", "d:f32[3]", "s:f32[4]"},
                          node("LinearAttentionGate", {"a", "d", "s"}, {"y"})),
              "input 1 is f32[3], expected 4 elements");
    EXPECT_EQ(why_refused({"a:f32[2,4]", "d:f32[4]", "s:f32[4]"},
                          node("LinearAttentionGate", {"a", "d", "s"}, {"y", "beta"})),
              "output 1 (beta) is used without input 3 (b)");
    EXPECT_EQ(why_refused({"x:f32[2,5]"}, node("SwiGLU", {"x"}, {"y"})),
              "got f32[2,5], expected two halves of the last axis");
}

std::vector<std::string> tokens(std::string q) {
    return {std::move(q), "k:f32[6,2,3]", "v:f32[6,4,5]",
            "d:f32[6,4]", "b:f32[6,4]",   "s:f32[2,4,5,3]"};
}

TEST(ContribMixers, GatedDeltaNetRefusesWhatDoesNotFit) {
    std::vector<std::string> in = {"q", "k", "v", "", "d", "b", "s"};
    EXPECT_EQ(why_refused(tokens("q:f32[6,H,3]"), node("GatedDeltaNet", in, {"y", "z"})),
              "input 0 is f32[6,H,3]; its number of heads must be known");
    EXPECT_EQ(why_refused(tokens("q:f32[6,2,3]"), node("GatedDeltaNet", in, {"y", "z"},
                                                       {string_of("update_rule", "linear")})),
              "attribute 'update_rule' is 'linear', expected decay for the gated rules alone and "
              "beta for the delta rules alone");
    EXPECT_EQ(why_refused(tokens("q:f32[6,2,3]"), node("GatedDeltaNet", in, {"y", "z"},
                                                       {string_of("gate_activation", "softplus")})),
              "gate_activation is 'softplus'; expected a_log and dt_bias");
    EXPECT_EQ(why_refused(tokens("q:f32[6,2,3]"),
                          node("GatedDeltaNet", {"q", "k", "v", "", "d", "b"}, {"y", "z"})),
              "cu_seqlens and initial_state are left out; one of them must say how many sequences "
              "there are");
    EXPECT_EQ(why_refused(tokens("q:f32[6,2,3]"), node("GatedDeltaNet", in, {"y", "z"},
                                                       {int_of("state_update_capacity", 9)})),
              "attribute 'state_update_capacity' is 9, expected 0 to 8");
}

TEST(ContribMixers, StreamsRefuseWhatTheyCannotTellApart) {
    Attribute two = int_of("num_branches", 2);
    EXPECT_EQ(why_refused({"x:f32[3,8]", "g:f32[3,G]"},
                          node("HyperConnectionPreMix", {"x", "g"}, {"y"}, {two})),
              "input 1 is f32[3,G]; the size of its last axis must be known");
    EXPECT_EQ(why_refused({"x:f32[3,D]", "s:f32[8]"},
                          node("BranchwiseRMSNorm", {"x", "s"}, {"y"}, {two})),
              "scale is f32[8] and X f32[3,D]; whether it is for one branch or for all must be "
              "known");
    EXPECT_EQ(why_refused({"x:f32[3,7]"}, node("BranchwiseRMSNorm", {"x"}, {"y"}, {two})),
              "input 0 is f32[3,7], expected a multiple of 2 elements along the last axis");
}

TEST(ContribMixers, ProjectionsRefuseOtherActivations) {
    std::vector<Attribute> sizes = {int_of("K", 32), int_of("N", 4), int_of("block_size", 32),
                                    string_of("activation", "gelu")};
    std::vector<std::string> in = {"a:f32[1,32]", "w:u8[4,1,16]", "s:f32[4,1]"};
    std::vector<std::string> names = {"a", "", "", "w", "s", "", "w", "s"};
    EXPECT_EQ(why_refused(in, node("MatMulNBitsMlp", names, {"y"}, sizes)),
              "attribute 'activation' is 'gelu'; only 'silu' is supported");
    sizes.back() = string_of("activation", "silu");
    EXPECT_EQ(why_refused(in, node("MatMulNBitsMlp", names, {"y", "sum"}, sizes)),
              "output 1 (input_skip_bias_sum) is used without input 1 (skip)");
    sizes.push_back(int_of("bits", 3));
    EXPECT_EQ(why_refused(in, node("MatMulNBitsMlp", names, {"y"}, sizes)),
              "attribute 'bits' is 3; only 2, 4 and 8 are supported");
    EXPECT_EQ(why_refused({"a:f32[2,3]", "b:f32[3,2]"},
                          node("FusedMatMulActivation", {"a", "b"}, {"y"},
                               {string_of("activation", "Relu"), float_of("activation_gamma", 1)})),
              "attribute 'activation_gamma' is given for 'Relu', expected 'Selu'");
}

TEST(ContribMixers, DropoutsRefuseTraining) {
    EXPECT_EQ(why_refused({"x:f32[2]"}, node("BitmaskDropout", {"x", "", "t"}, {"y"}),
                          {initializer("t", boolean(true))}),
              "training_mode is set; only inference is supported");
    EXPECT_EQ(why_refused({"x:f32[2]", "b:f32[2]", "t:bool[]"},
                          node("BiasDropout", {"x", "b", "", "", "t"}, {"y"})),
              "input 4 ('t') must be a constant; it is computed at run time");
}

} // namespace

} // namespace ingot::onnx::test
