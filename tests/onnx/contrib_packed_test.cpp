// SPDX-License-Identifier: Apache-2.0
// Attention operators of com.microsoft: what is refused, and results that ONNX Runtime leaves open
// in part. All others are cases of tests/data/contrib.
#include "onnx/model_builder.h"

#include <cmath>
#include <utility>

namespace ingot::onnx::test {

namespace {

using Inputs = std::vector<std::string>;

// The names of "x:f32[2]" and the like; "" is an input left out.
std::string refused(const char* op, const Inputs& inputs, std::vector<Attribute> attributes,
                    std::vector<Tensor> constants = {}, size_t results = 1) {
    std::vector<std::string> names;
    std::vector<std::string> given;
    for (const std::string& i : inputs) {
        names.push_back(i.substr(0, i.find(':')));
        if (i.find(':') != std::string::npos) {
            given.push_back(i);
        }
    }
    std::vector<std::string> out;
    for (size_t i = 0; i < results; ++i) {
        out.push_back(str("y", i));
    }
    Node n = in_domain("com.microsoft", node(op, names, out, std::move(attributes)));
    return refusal(model(graph(given, out, {n}, std::move(constants))));
}

TEST(ContribPositions, RefusesBucketsThatDoNotFit) {
    Tensor length = i64_initializer("n", {3});
    EXPECT_EQ(refused("RelativePositionBias", {"t:f32[1,2]", "n", "n"}, {int_of("max_distance", 9)},
                      {length}),
              "bias_table has 1 buckets and attribute 'max_distance' is 9, expected at least 2 "
              "buckets and a distance above 0");
    EXPECT_EQ(refused("RelativePositionBias", {"t:f32[8,2]", "n", "n"},
                      {int_of("max_distance", 2'000'000)}, {length}),
              "attribute 'max_distance' is 2000000; only distances up to 1048576 are supported");
    EXPECT_EQ(refused("RelativePositionBias", {"t:f32[N,2]", "n", "n"}, {int_of("max_distance", 9)},
                      {length}),
              "bias_table is f32[N,2]; the number of buckets must be known");
    EXPECT_EQ(refused("MRotaryEmbedding",
                      {"x:f32[1,2,3,8]", "p:i64[3,1,3]", "c:f32[9,4]", "s:f32[9,4]"},
                      {ints_of("mrope_section", {1, 1, 1})}),
              "attribute 'mrope_section' is [1,1,1], 3 together, but cos_cache is f32[9,4]");
}

// y and the normalised values of x of ones, in bf16: the first is rotated by a half turn.
TEST(ContribPositions, RoundsToBfloat16BeforeTheRotation) {
    Node n = in_domain("com.microsoft", node("RMSNormRotary", {"x", "s", "p", "c", "d"}, {"y", "z"},
                                             {int_of("rotary_embedding_dim", 2)}));
    ingot::Graph g = import_verified(
        model(graph({"x:bf16[1,1,1,2]", "s:f32[2]", "p:i64[1]", "c:bf16[4,1]", "d:bf16[4,1]"},
                    n.outputs, {n})));
    auto small = [](Shape shape, std::vector<double> v) {
        return ingot::Tensor::of<double>(DType::BF16, std::move(shape), v);
    };
    std::vector<ingot::Tensor> values = {small({1, 1, 1, 2}, {1, 1}), floats({2}, {1.001, 2}),
                                         integers({1}, {3}), small({4, 1}, {1, 1, 1, -1}),
                                         small({4, 1}, {0, 0, 0, 0})};
    std::vector<ingot::Tensor> all = evaluate(g, values);
    EXPECT_EQ(type_of(g), "bf16[1,1,2]");
    EXPECT_EQ(elements(all[0]), (std::vector<double>{-1, -2}));
    EXPECT_EQ(elements(all[1]), (std::vector<double>{1, 2}));
}

TEST(ContribPositions, RefusesOnePositionOfAFlatBatch) {
    EXPECT_EQ(refused("RMSNormRotary",
                      {"x:f16[2,3,1,2]", "s:f32[2]", "p:i64[1]", "c:f32[4,1]", "d:f32[4,1]"},
                      {int_of("rotary_embedding_dim", 2), int_of("flatten_batch", 1)}),
              "position_ids is i64[1] and attribute 'flatten_batch' is 1 for f16[2,3,1,2]; give "
              "the positions of all tokens");
}

TEST(ContribPacked, RefusesInputsThatContradict) {
    EXPECT_EQ(refused("PackedMultiHeadAttention",
                      {"q:f32[7,2,3,4]", "k:f32[7,8]", "v:f32[7,8]", "", "o:i32[3,4]", "c:i32[4]"},
                      {int_of("num_heads", 2)}),
              "query is f32[7,2,3,4], which holds keys and values too; expected no inputs key and "
              "value");
    EXPECT_EQ(refused("RestorePadding", {"x:f32[7,4]", "o:i32[12]"}, {}),
              "token_offset is i32[12], expected [batch,sequence]");
}

TEST(ContribDecoder, RefusesWhatItCannotDecode) {
    Attribute heads = int_of("num_heads", 2);
    Attribute shared = int_of("past_present_share_buffer", 1);
    Inputs step = {"q:f32[4,1,8]",   "k:f32[4,1,8]",  "v:f32[4,1,8]", "", "",
                   "p:f32[4,2,6,4]", "r:f32[4,2,6,4]"};
    auto decoded = [&](const Inputs& more, std::vector<Attribute> attributes,
                       std::vector<Tensor> constants = {}) {
        Inputs all = step;
        all.insert(all.end(), more.begin(), more.end());
        return refused("DecoderMaskedMultiHeadAttention", all, std::move(attributes),
                       std::move(constants));
    };
    EXPECT_EQ(decoded({}, {heads, shared}),
              "attribute 'past_present_share_buffer' is 1, expected input past_sequence_length");
    EXPECT_EQ(decoded({"n:i32[1]", "b:i32[1]"}, {heads, shared}),
              "input beam_width is not known before the run and cache_indirection is not given; "
              "leave beam_width out");
    EXPECT_EQ(decoded({"n:i32[1]", "b"}, {heads, shared}, {i64_initializer("b", {2})}),
              "input beam_width is [2], expected input cache_indirection too");
    EXPECT_EQ(decoded({"n:i32[1]", "", "i:i32[2,2,6]"}, {heads}),
              "input cache_indirection is given, but attribute 'past_present_share_buffer' is 0; "
              "only beams of one buffer are supported");
    step[0] = "q:f32[4,2,8]";
    EXPECT_EQ(decoded({}, {heads}), "query has 2 positions a sequence, expected 1");
    EXPECT_EQ(refused("DecoderMaskedSelfAttention",
                      {"x:f32[4,1,8]", "w:f32[8,24]", "b:f32[24]", "", "p:f32[2,4,2,6,4]", "",
                       "n:i32[1]"},
                      {heads, shared, int_of("do_rotary", 1)}, {}, 2),
              "attribute 'do_rotary' is 1; only 0 is supported");
    EXPECT_EQ(refused("DecoderAttention",
                      {"q:f32[1,2,8]", "k:f32[3,2,8]", "w:f32[8,8]", "u:f32[8,16]", "b:f32[24]", "",
                       "", "", "s:bool[1]", "p:bool[1]", "l:bool[1]", "m:bool[1]"},
                      {heads}, {}, 3),
              "input 8 ('s') must be a constant; it is computed at run time");
}

TEST(ContribAttention, RefusesInputsThatContradict) {
    std::vector<Attribute> heads = {int_of("num_heads", 2), int_of("kv_num_heads", 2)};
    Inputs group = {"q:f32[1,3,8]", "k:f32[1,3,8]", "v:f32[1,3,8]", "", "", "l:i32[1]", "t:i32[]"};
    auto grouped = [&](const Inputs& more) {
        Inputs all = group;
        all.insert(all.end(), more.begin(), more.end());
        return refused("GroupQueryAttention", all, heads, {}, 3);
    };
    EXPECT_EQ(grouped({"", "", "", "", "", "", "", "n:f32[4]"}),
              "q_norm_weight and k_norm_weight must come together");
    EXPECT_EQ(grouped({"", "", "", "", "", "", "", "", "", "c:i32[1]"}),
              "query_seqlens is given, expected a past and causal attention too");
    group[1] = "k:f32[1,2,8]";
    EXPECT_EQ(grouped({}), "query and key are f32[1,3,8] and f32[1,2,8], expected sequences of one "
                           "length, or no new keys");
    EXPECT_EQ(refused("MultiHeadAttention",
                      {"q:f32[1,1,8]", "k:f32[1,1,8]", "v:f32[1,1,8]", "", "m:i32[1,1]", "",
                       "p:f32[1,2,3,4]", "r:f32[1,2,3,4]"},
                      {int_of("num_heads", 2)}, {}, 3),
              "the key mask is i32[1,1], expected one entry for each of 4 keys");
}

TEST(ContribAttention, RefusesAttributesByName) {
    Inputs inputs = {"x:f32[1,4,6]", "w:f32[4,1,3]"};
    EXPECT_EQ(refused("CausalConvWithState", inputs, {int_of("state_length", 5)}, {}, 2),
              "attribute 'state_length' is 5; only 0 is supported");
    EXPECT_EQ(refused("CausalConvWithState", inputs, {int_of("ndim", 2)}, {}, 2),
              "attribute 'ndim' is 2; only 1 is supported");
}

// Rows of q, k and v, or of a cache: numbers that differ everywhere.
ingot::Tensor numbers(Shape shape, double from) {
    ingot::Tensor t = ingot::Tensor::empty(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.count(); ++i) {
        double x = from + 0.37 * static_cast<double>(i);
        t.set_f64(i, x - std::floor(x) - 0.5);
    }
    return t;
}

// The first elements of results 0 and 1 of one step of `rows` positions, two of which are valid.
std::vector<double> chunk(int64_t rows, bool counted) {
    Inputs inputs = {"q", "k", "v", "p", "r", "l", "t"};
    std::vector<Tensor> constants = {initializer("p", numbers({1, 1, 8, 2}, 0.1)),
                                     initializer("r", numbers({1, 1, 8, 2}, 0.2)),
                                     i64_initializer("l", {4}), i64_initializer("t", {8})};
    if (counted) {
        inputs.insert(inputs.end(), 9, "");
        inputs.push_back("c");
        constants.push_back(i64_initializer("c", {2}));
    }
    Node n = in_domain("com.microsoft", node("GroupQueryAttention", inputs, {"y", "pk", "pv"},
                                             {int_of("num_heads", 1), int_of("kv_num_heads", 1)}));
    std::string type = str(":f32[1,", rows, ",2]");
    ingot::Graph g = import_verified(
        model(graph({"q" + type, "k" + type, "v" + type}, n.outputs, {n}, std::move(constants))));
    std::vector<ingot::Tensor> values = {numbers({1, rows, 2}, 0.3), numbers({1, rows, 2}, 0.4),
                                         numbers({1, rows, 2}, 0.5)};
    std::vector<ingot::Tensor> all = evaluate(g, values);
    std::vector<double> out = elements(all[0]);
    out.resize(4); // two rows
    std::vector<double> keys = elements(all[1]);
    out.insert(out.end(), keys.begin(), keys.begin() + 10); // five of eight
    return out;
}

TEST(ContribAttention, CountsTheQueriesOfAPaddedChunk) {
    EXPECT_EQ(chunk(3, true), chunk(2, false));
    EXPECT_EQ(chunk(2, true), chunk(2, false));
    EXPECT_NE(chunk(3, false), chunk(2, false));
}

} // namespace

} // namespace ingot::onnx::test
