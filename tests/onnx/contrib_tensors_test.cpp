// SPDX-License-Identifier: Apache-2.0
// Refusals of operators of com.microsoft on tensors, images and weights. Results:
// tests/data/contrib.
#include "onnx/model_builder.h"

namespace ingot::onnx::test {

namespace {

std::string why_refused(const std::vector<std::string>& inputs, const std::string& type,
                        std::vector<Attribute> attributes = {}) {
    std::vector<std::string> names;
    for (const std::string& i : inputs) {
        names.push_back(i.substr(0, i.find(':')));
    }
    Node n = in_domain("com.microsoft", node(type, names, {"y"}, std::move(attributes)));
    return refusal(model(graph(inputs, {"y"}, {n})));
}

TEST(ContribTensors, SayWhatImagesAreNotSupported) {
    std::vector<std::string> norm = {"x:f32[2,4,4,8]", "s:f32[8]", "b:f32[8]"};
    EXPECT_EQ(why_refused(norm, "GroupNorm", {int_of("groups", 2), int_of("activation", 2)}),
              "attribute 'activation' is 2, expected 0 (none) or 1 (SiLU)");
    EXPECT_EQ(why_refused(norm, "GroupNorm", {int_of("groups", 3), int_of("activation", 0)}),
              "group_norm of f32[2,8,4,4]: 8 channels do not divide into 3 groups");
    EXPECT_EQ(why_refused({"x:f32[2,3,4,4]", "m:i32[2,1,4,4]"}, "MaxpoolWithMask",
                          {ints_of("kernel_shape", {2, 2})}),
              "the mask is i32[2,1,4,4]; only one mask for all planes, [1,1,spatial...], is "
              "supported");
    EXPECT_EQ(why_refused({"x:f32[1,2,4,4]", "r:f32[3,4]", "i:i32[3]", "s:i32[2]"}, "CropAndResize",
                          {string_of("mode", "cubic")}),
              "attribute 'mode' is 'cubic', expected bilinear or nearest");
}

TEST(ContribTensors, SayWhatTensorsAreNotSupported) {
    EXPECT_EQ(why_refused({"a:f32[2,3]", "b:f32[4,3]"}, "CDist", {string_of("metric", "cosine")}),
              "attribute 'metric' is 'cosine'; only euclidean and sqeuclidean are supported");
    EXPECT_EQ(why_refused({"x:f32[2,3]"}, "Rfft", {int_of("onesided", 0)}),
              "attributes 'onesided' and 'normalized' are 0 and 0; the operator is defined for 1 "
              "and 0 only");
    EXPECT_EQ(why_refused({"x:f32[2,3]"}, "Irfft", {int_of("signal_ndim", 2)}),
              "attribute 'signal_ndim' is 2 for f32[2,3]");
    EXPECT_EQ(why_refused({"x:f32[2,3]", "z:f32[2,2]"}, "ComplexMul"),
              "input 0 is f32[2,3], expected 2 parts on the last axis");
    EXPECT_EQ(why_refused({"x:f32[2,3]"}, "Inverse"),
              "input 0 is f32[2,3], expected square matrices");
    EXPECT_EQ(why_refused({"x:f32[2,3]"}, "Unique"), "input 0 is f32[2,3], expected rank 1");
    EXPECT_EQ(why_refused({"x:i8[2,3]"}, "MurmurHash3"),
              "input 0 is i8[2,3], expected elements of 32 or 64 bits");
}

TEST(ContribTensors, SayWhatWeightsAreNotSupported) {
    std::vector<std::string> bytes = {"a:f32[3,32]", "b:u8[5,1,16]", "s:f32[5,1]"};
    auto nbits = [&](const Attribute& more) {
        return why_refused(bytes, "MatMulNBits",
                           {int_of("K", 32), int_of("N", 5), int_of("block_size", 32), more});
    };
    EXPECT_EQ(nbits(int_of("bits", 4)), "");
    EXPECT_EQ(nbits(int_of("bits", 3)), "attribute 'bits' is 3; only 2, 4 and 8 are supported");
    EXPECT_EQ(nbits(int_of("weight_prepacked", 2)),
              "attribute 'weight_prepacked' is 2: the weights are in the layout of another "
              "provider's kernels; export them with weight_prepacked=0");
    EXPECT_EQ(why_refused({"a:f32[3,32]", "b:u8[105]", "s:i64[2]"}, "MatMulFpQ4",
                          {int_of("blk_quant_type", 2)}),
              "attribute 'blk_quant_type' is 2; only 0 and 1 are supported");
    std::vector<std::string> rows = {"d:u8[7,16]", "i:i64[2]", "s:f32[7,1]"};
    EXPECT_EQ(why_refused(rows, "GatherBlockQuantized", {int_of("bits", 3)}),
              "attribute 'bits' is 3, expected 2, 4 or 8");
    EXPECT_EQ(why_refused(rows, "GatherBlockQuantized",
                          {int_of("gather_axis", 1), int_of("quantize_axis", 0)}),
              "attribute 'gather_axis' is 1, expected 0 for u8[7,16]");
}

TEST(ContribTensors, SayWhatQuantisedOperandsAreNotSupported) {
    EXPECT_EQ(why_refused({"x:u8[1,2,4]", "w:u8[4,12]", "b:f32[12]", "xs:f32[]", "ws:f32[]"},
                          "QAttention", {int_of("num_heads", 2), int_of("do_rotary", 1)}),
              "attribute 'do_rotary' is set; only attention without rotation is supported");
    EXPECT_EQ(why_refused({"a:u8[2,3]", "as:f32[]", "az:u8[]", "b:u8[3,4]", "bs:f32[]", "bz:u8[]",
                           "c:i32[4]", "ys:f32[]"},
                          "QGemm"),
              "inputs 7 and 8, scale and zero point of the result, are given and missing, expected "
              "both or none");
    EXPECT_EQ(
        why_refused({"d:u8[3,66]", "i:i64[2]"}, "GatherPacked",
                    {int_of("packed_type", 16), int_of("K", 256)}),
        "attribute 'packed_type' is 16; only floats (0, 1, 30), Q4_0 (2), Q5_0 (6), Q8_0 (8), "
        "Q5_K (13), Q6_K (14), IQ4_NL (20) and IQ4_XS (23) of GGML are supported");
}

TEST(ContribTensors, SayWhatProgramsAreNotSupported) {
    const std::string searches =
        "searches for text are loops around a decoder that a program runs; export the decoder by "
        "itself and run the loop outside (onnxruntime-genai does), or run this node in ONNX "
        "Runtime's CPU provider";
    for (const char* type : {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}) {
        EXPECT_EQ(why_refused({"i:i32[1,4]", "m:i32[1]"}, type), searches);
    }
    EXPECT_EQ(why_refused({"a:f32[2,3]", "b:f32[3,4]"}, "SparseToDenseMatMul"),
              "sparse tensors are not supported; make input 0 dense and use MatMul");
    EXPECT_EQ(why_refused({"x:u8[2]"}, "Tokenizer"), "string tensors are not supported");
}

} // namespace

} // namespace ingot::onnx::test
