// SPDX-License-Identifier: Apache-2.0
// Attention and the key/value cache over packed sequences, and every option of the mixture of
// experts, against plain loops.
#include "api/network_fixture.h"

#include <limits>

namespace ingot::test {

namespace {

using Packed = NetworkTest;
using Form = nv::AttentionIOForm;
using Kind = nv::CausalMaskKind;

const std::vector<int64_t> query_starts = {0, 2, 3};
const std::vector<int64_t> key_starts = {0, 3, 5};
constexpr int64_t heads = 4;
constexpr int64_t groups = 2;
constexpr int64_t width = 3;

/// For token `row` of sequence b, which has `queries` tokens; keys are packed.
double attended(const Tensor& q, int64_t q_offset, int64_t row, int64_t queries, const Tensor& k,
                const Tensor& v, size_t b, int64_t head, int64_t column, Kind kind) {
    int64_t begin = key_starts[b];
    int64_t keys = key_starts[b + 1] - begin;
    int64_t last = kind == Kind::kNONE ? keys - 1 : row;
    if (kind == Kind::kLOWER_RIGHT) {
        last += keys - queries;
    }
    double sum = 0;
    double out = 0;
    for (int64_t t = 0; t <= std::min(last, keys - 1); ++t) {
        int64_t at = ((begin + t) * groups + head * groups / heads) * width;
        double score = 0;
        for (int64_t d = 0; d < width; ++d) {
            score += q.get_f64(q_offset + d) * k.get_f64(at + d);
        }
        sum += std::exp(score);
        out += std::exp(score) * v.get_f64(at + column);
    }
    return out / sum;
}

TEST_F(Packed, attention_keeps_sequences_apart) {
    Tensor q = numbers({3, heads, width});
    Tensor k = numbers({5, groups, width});
    Tensor v = numbers({5, groups, width}, 0, 1);
    for (Kind kind : {Kind::kNONE, Kind::kUPPER_LEFT, Kind::kLOWER_RIGHT}) {
        network.reset(builder->createNetworkV2(0));
        nv::ITensor& tq = input("q", {-1, heads, width});
        nv::ITensor& tk = input("k", {-1, groups, width});
        nv::ITensor& tv = input("v", {-1, groups, width});
        nv::IAttention* a =
            network->addAttentionV2(tq, tk, tv, nv::AttentionNormalizationOp::kSOFTMAX, kind);
        ASSERT_NE(a, nullptr);
        EXPECT_TRUE(a->setQueryForm(Form::kPACKED_NHD));
        EXPECT_TRUE(a->setKeyValueForm(Form::kPACKED_NHD));
        EXPECT_TRUE(a->setQueryLengths(&indices(query_starts)));
        EXPECT_TRUE(a->setKeyValueLengths(&indices(key_starts)));
        EXPECT_EQ(list(a->getOutput(0)->getDimensions()), (std::vector<int64_t>{-1, heads, width}));
        network->markOutput(*a->getOutput(0));
        expect_elements(run({q, k, v}), 0, {3, heads, width}, [&](int64_t i) {
            int64_t token = i / (heads * width);
            size_t b = token < query_starts[1] ? 0 : 1;
            return attended(q, i / width * width, token - query_starts[b],
                            query_starts[b + 1] - query_starts[b], k, v, b, i / width % heads,
                            i % width, kind);
        });
    }
}

TEST_F(Packed, padded_queries_see_packed_keys) {
    Tensor q = numbers({2, heads, 2, width});
    Tensor k = numbers({5, groups, width});
    nv::ITensor& tq = input("q", {2, heads, 2, width});
    nv::ITensor& tk = input("k", {5, groups, width});
    nv::IAttention* a = network->addAttentionV2(tq, tk, tk, nv::AttentionNormalizationOp::kSOFTMAX,
                                                Kind::kLOWER_RIGHT);
    EXPECT_TRUE(a->setKeyValueForm(Form::kPACKED_NHD));
    EXPECT_TRUE(a->setKeyValueLengths(&indices(key_starts)));
    network->markOutput(*a->getOutput(0));
    expect_elements(run({q, k}), 0, {2, heads, 2, width}, [&](int64_t i) {
        auto b = static_cast<size_t>(i / (heads * 2 * width));
        return attended(q, i / width * width, i / width % 2, 2, k, k, b, i / (2 * width) % heads,
                        i % width, Kind::kLOWER_RIGHT);
    });
}

TEST_F(Packed, what_is_missing_is_named) {
    nv::ITensor& x = input("x", {5, groups, width});
    nv::IAttention* a =
        network->addAttentionV2(x, x, x, nv::AttentionNormalizationOp::kSOFTMAX, Kind::kNONE);
    network->markOutput(*a->getOutput(0));
    auto error = [&] {
        logger.errors.clear();
        EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
        return logger.errors.empty() ? "" : logger.errors.back();
    };
    EXPECT_NE(error().find("expected rank 4 for the form kPADDED_BHND"), std::string::npos);
    EXPECT_TRUE(a->setQueryForm(Form::kPACKED_NHD));
    EXPECT_TRUE(a->setKeyValueForm(Form::kPACKED_NHD));
    EXPECT_NE(error().find("set it with setQueryLengths()"), std::string::npos);
    EXPECT_TRUE(a->setQueryLengths(&indices(key_starts)));
    EXPECT_NE(error().find("set it with setKeyValueLengths()"), std::string::npos);
    EXPECT_TRUE(a->setKeyValueLengths(&indices(key_starts)));
    EXPECT_TRUE(
        a->setMask(constant(Tensor::of<int>(DType::Bool, {1, 1, 5, 5}, std::vector<int>(25, 1)))));
    EXPECT_NE(error().find("a mask goes with the form kPADDED_BHND only"), std::string::npos);
}

TEST_F(Packed, key_value_caches_take_packed_updates) {
    nv::ITensor& cache = input("cache", {2, groups, 4, width});
    nv::ITensor& update = input("update", {-1, groups, width});
    auto* kv = network->addKVCacheUpdate(cache, update, indices({1, 3}), nv::KVCacheMode::kLINEAR);
    EXPECT_TRUE(kv->setUpdateForm(Form::kPACKED_NHD));
    EXPECT_TRUE(
        kv->setUpdateLengths(&indices(key_starts))); // the last token falls beyond the cache
    Tensor old = numbers({2, groups, 4, width});
    Tensor fresh = numbers({5, groups, width}, 5, 6);
    expect_elements(run(kv, {old, fresh}), 0, {2, groups, 4, width}, [&](int64_t i) {
        int64_t place = i / width % 4;
        int64_t head = i / (4 * width) % groups;
        bool first = i < groups * 4 * width;
        int64_t token = first ? place - 1 : 3 + place - 3;
        bool written = place >= (first ? 1 : 3);
        return written ? fresh.get_f64((token * groups + head) * width + i % width)
                       : old.get_f64(i);
    });
}

/// One expert of four hidden values for each of two tokens.
struct Experts {
    Tensor x = numbers({1, 2, 3});
    Tensor gate = numbers({2, 3, 4}, -1, 1);
    Tensor up = numbers({2, 3, 4}, 0, 1);
    Tensor down = numbers({2, 4, 3}, -1, 1);
    Tensor gate_bias = numbers({2, 4}, -1, 1);
    Tensor up_bias = numbers({2, 4}, 0, 1);
    Tensor down_bias = numbers({2, 3}, -1, 1);

    double inner(int64_t token, int64_t k, double limit, double alpha, double beta) const {
        int64_t e = 1 - token;
        double g = gate_bias.get_f64(e * 4 + k);
        double u = up_bias.get_f64(e * 4 + k);
        for (int64_t c = 0; c < 3; ++c) {
            g += x.get_f64(token * 3 + c) * gate.get_f64((e * 3 + c) * 4 + k);
            u += x.get_f64(token * 3 + c) * up.get_f64((e * 3 + c) * 4 + k);
        }
        g = std::min(g, limit);
        u = std::clamp(u, -limit, limit) + beta;
        return g / (1 + std::exp(-alpha * g)) * u;
    }
    double out(int64_t i, double limit, double alpha, double beta) const {
        int64_t e = 1 - i / 3;
        double sum = down_bias.get_f64(e * 3 + i % 3);
        for (int64_t k = 0; k < 4; ++k) {
            sum += inner(i / 3, k, limit, alpha, beta) * down.get_f64((e * 4 + k) * 3 + i % 3);
        }
        return sum;
    }
};

TEST_F(Packed, experts_with_biases_limits_and_quantisation) {
    const Experts m;
    auto run_with = [&](const std::function<void(nv::IMoELayer&)>& set) {
        network.reset(builder->createNetworkV2(0));
        auto* moe = network->addMoE(
            input("x", {1, 2, 3}), constant(Tensor::i64({1, 0}).reshaped({1, 2, 1})),
            constant(Tensor::of<float>(DType::F32, {1, 2, 1}, std::vector<float>{1, 1})));
        moe->setGatedWeights(constant(m.gate), constant(m.up), constant(m.down),
                             nv::MoEActType::kSILU);
        moe->setGatedBiases(constant(m.gate_bias), constant(m.up_bias), constant(m.down_bias));
        set(*moe);
        return run(moe, {m.x});
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    expect_elements(run_with([](nv::IMoELayer&) {}), 0, {1, 2, 3},
                    [&](int64_t i) { return m.out(i, infinity, 1, 0); });
    expect_elements(run_with([](nv::IMoELayer& l) { l.setSwigluParams(0.5F, 1.75F, 1); }), 0,
                    {1, 2, 3}, [&](int64_t i) { return m.out(i, 0.5, 1.75, 1); });
    auto by_scale = [&](nv::IMoELayer& l) {
        l.setQuantizationStatic(constant(Tensor::scalar(DType::F32, 1.0 / 64)), nv::DataType::kFP8);
    };
    expect_elements(
        run_with(by_scale), 0, {1, 2, 3}, [&](int64_t i) { return m.out(i, infinity, 1, 0); },
        0.07);
    for (nv::DataType type : {nv::DataType::kFP8, nv::DataType::kFP4}) {
        auto by_block = [&](nv::IMoELayer& l) {
            l.setQuantizationDynamicDblQ(constant(Tensor::scalar(DType::F32, 1.0 / 8)), type,
                                         nv::Dims4(1, 1, 1, 2), nv::DataType::kFP8);
        };
        double limit = type == nv::DataType::kFP8 ? 0.1 : 0.4;
        auto got = run_with(by_block);
        expect_elements(
            got, 0, {1, 2, 3}, [&](int64_t i) { return m.out(i, infinity, 1, 0); }, limit);
        double off = 0;
        for (int64_t i = 0; i < 6; ++i) {
            off = std::max(off, std::abs(got.at(0).get_f64(i) - m.out(i, infinity, 1, 0)));
        }
        EXPECT_GT(off, 1e-4) << "nothing was quantised";
    }
}

} // namespace

} // namespace ingot::test
