// SPDX-License-Identifier: Apache-2.0
// Refusals of mixtures of experts. Results: tests/data/contrib.
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

std::vector<std::string> inputs_of(const std::string& bytes, const std::string& scales) {
    return {"x:f32[3,64]",  "r:f32[3,4]",     "w1:" + bytes,
            "s1:" + scales, "w2:u8[4,64,32]", "s2:f32[4,64]"};
}

std::string why_refused(const std::vector<Attribute>& attributes,
                        const std::string& bytes = "u8[4,64,32]",
                        const std::string& scales = "f32[4,64]") {
    Node n = in_domain("com.microsoft",
                       node("QMoE", {"x", "r", "w1", "s1", "", "w2", "s2"}, {"y"}, attributes));
    return refusal(model(graph(inputs_of(bytes, scales), {"y"}, {n})));
}

TEST(Experts, SayWhatIsNotSupported) {
    EXPECT_EQ(why_refused({}), "");
    EXPECT_EQ(why_refused({int_of("k", 5)}), "attribute 'k' is 5, and there are 4 experts");
    EXPECT_EQ(why_refused({int_of("expert_weight_bits", 3)}),
              "experts have weights of 3 bits; only 2, 4 and 8 are supported");
    EXPECT_EQ(why_refused({string_of("quant_type", "nvfp4")}),
              "attribute 'quant_type' is 'nvfp4'; only 'int' is supported");
    const std::string layout =
        "weights in the layout of one execution provider's kernels are not supported; export them "
        "with weights_prepacked=0, or for the CPU or WebGPU";
    EXPECT_EQ(why_refused({int_of("weights_prepacked", 1)}),
              "attribute 'weights_prepacked' is 1: " + layout);
    EXPECT_EQ(
        why_refused({}, "u8[4,64,32]", "f32[4,96]"),
        "inputs 2 and 3 are u8[4,64,32] and f32[4,96], expected a scale for each of 64 rows: " +
            layout);
    EXPECT_EQ(
        why_refused({int_of("block_size", 32)}, "u8[4,64,32]", "f32[4,64,3]"),
        "inputs 2 and 3 are u8[4,64,32] and f32[4,64,3], expected a scale for each of 64 rows, "
        "and for each 32 of their 64 elements: " +
            layout);
    EXPECT_EQ(why_refused({string_of("activation_type", "tanh")}),
              "attribute 'activation_type' is 'tanh'; only relu, relu2, gelu, silu, identity, "
              "swiglu and geglu are supported");
    EXPECT_EQ(why_refused({string_of("activation_type", "swiglu")}),
              "activation_type swiglu with swiglu_fusion 0: gate and up are in no input, expected "
              "in fc1 (swiglu_fusion 1 or 2) or in fc1 and fc3 (0)");
    EXPECT_EQ(why_refused({int_of("use_sparse_mixer", 1)}),
              "attribute 'k' is 1; use_sparse_mixer chooses 2");
    EXPECT_EQ(why_refused({}, "u8[4,64]", "f32[4,64]"),
              "inputs 2 and 3 are u8[4,64] and f32[4,64], expected bytes [E,N,K*bits/8] and scales "
              "[E,N] or [E,N,K/block_size]");
}

} // namespace

} // namespace ingot::onnx::test
