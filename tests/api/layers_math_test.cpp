// SPDX-License-Identifier: Apache-2.0
// Softmax, reductions, top-k, products, cumulative sums, quantisation, attention and related
// layers.
#include "api/network_fixture.h"

#include <algorithm>

namespace ingot::test {

namespace {

using Math = NetworkTest;

TEST_F(Math, softmax_along_an_axis) {
    nv::ITensor& x = input("x", {2, 3, 4});
    auto* s = network->addSoftMax(x);
    EXPECT_EQ(s->getAxes(), 1U);
    s->setAxes(1U << 1U);
    Tensor data = numbers({2, 3, 4});
    auto y = run(s, {data});
    expect_elements(y, 0, {2, 3, 4}, [&](int64_t i) {
        double sum = 0;
        for (int64_t k = 0; k < 3; ++k) {
            sum += std::exp(data.get_f64(i / 12 * 12 + k * 4 + i % 4));
        }
        return std::exp(data.get_f64(i)) / sum;
    });
}

TEST_F(Math, ragged_softmax) {
    nv::ITensor& x = input("x", {2, 4});
    Tensor data = numbers({2, 4});
    auto y =
        run(network->addRaggedSoftMax(x, constant(Tensor::i64({3, 1}).reshaped({2, 1}))), {data});
    expect_elements(y, 0, {2, 4}, [&](int64_t i) {
        int64_t bound = i < 4 ? 3 : 1;
        double sum = 0;
        for (int64_t k = 0; k < bound; ++k) {
            sum += std::exp(data.get_f64(i / 4 * 4 + k));
        }
        return i % 4 < bound ? std::exp(data.get_f64(i)) / sum : 0;
    });
}

TEST_F(Math, every_reduction) {
    nv::ITensor& x = input("x", {2, 3, 4});
    using Op = nv::ReduceOperation;
    for (Op op : {Op::kSUM, Op::kPROD, Op::kMAX, Op::kMIN, Op::kAVG}) {
        network->markOutput(*network->addReduce(x, op, 0b101, op == Op::kMAX)->getOutput(0));
    }
    Tensor data = numbers({2, 3, 4});
    auto y = run({data});
    auto over = [&](int64_t row, double start, double (*f)(double, double)) {
        double r = start;
        for (int64_t i = 0; i < 24; ++i) {
            r = i / 4 % 3 == row ? f(r, data.get_f64(i)) : r;
        }
        return r;
    };
    auto sum = [](double a, double b) { return a + b; };
    expect_elements(y, 0, {3}, [&](int64_t i) { return over(i, 0, sum); });
    expect_elements(
        y, 1, {3}, [&](int64_t i) { return over(i, 1, [](double a, double b) { return a * b; }); });
    expect_elements(y, 2, {1, 3, 1}, [&](int64_t i) {
        return over(i, -9, [](double a, double b) { return std::max(a, b); });
    });
    expect_elements(y, 3, {3}, [&](int64_t i) {
        return over(i, 9, [](double a, double b) { return std::min(a, b); });
    });
    expect_elements(y, 4, {3}, [&](int64_t i) { return over(i, 0, sum) / 8; });
}

TEST_F(Math, top_k_by_number_and_by_tensor) {
    nv::ITensor& x = input("x", {2, 5});
    auto* most = network->addTopK(x, nv::TopKOperation::kMAX, 2, 0b10, nv::DataType::kINT32);
    auto* least = network->addTopK(x, nv::TopKOperation::kMIN, 1, 0b10, nv::DataType::kINT64);
    least->setInput(1, scalar(3));
    EXPECT_EQ(least->getK(), -1);
    EXPECT_EQ(most->getOutput(1)->getType(), nv::DataType::kINT32);
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{most, least}) {
        network->markOutput(*l->getOutput(0));
        network->markOutput(*l->getOutput(1));
    }
    Tensor data = numbers({2, 5});
    auto y = run({data});
    auto sorted = [&](int64_t row, bool descending) {
        std::vector<int64_t> at = {0, 1, 2, 3, 4};
        std::stable_sort(at.begin(), at.end(), [&](int64_t a, int64_t b) {
            double l = data.get_f64(row * 5 + a);
            double r = data.get_f64(row * 5 + b);
            return descending ? l > r : l < r;
        });
        return at;
    };
    auto place = [&](int64_t i, int64_t k, bool descending) {
        return sorted(i / k, descending)[static_cast<size_t>(i % k)];
    };
    expect_elements(y, 0, {2, 2},
                    [&](int64_t i) { return data.get_f64(i / 2 * 5 + place(i, 2, true)); });
    expect_elements(y, 1, {2, 2},
                    [&](int64_t i) { return static_cast<double>(place(i, 2, true)); });
    expect_elements(y, 2, {2, 3},
                    [&](int64_t i) { return data.get_f64(i / 3 * 5 + place(i, 3, false)); });
    expect_elements(y, 3, {2, 3},
                    [&](int64_t i) { return static_cast<double>(place(i, 3, false)); });
}

TEST_F(Math, matrix_products_by_operation) {
    using Op = nv::MatrixOperation;
    nv::ITensor& a = input("a", {2, 3, 4});
    nv::ITensor& b = input("b", {1, 5, 4});
    nv::ITensor& v = input("v", {2, 4});
    network->markOutput(*network->addMatrixMultiply(a, Op::kNONE, b, Op::kTRANSPOSE)->getOutput(0));
    network->markOutput(*network->addMatrixMultiply(a, Op::kNONE, v, Op::kVECTOR)->getOutput(0));
    network->markOutput(*network->addMatrixMultiply(v, Op::kVECTOR, v, Op::kVECTOR)->getOutput(0));
    Tensor da = numbers({2, 3, 4});
    Tensor db = numbers({1, 5, 4});
    Tensor dv = numbers({2, 4});
    auto y = run({da, db, dv});
    auto dot = [](const Tensor& l, int64_t i, const Tensor& r, int64_t k) {
        double s = 0;
        for (int64_t j = 0; j < 4; ++j) {
            s += l.get_f64(i * 4 + j) * r.get_f64(k * 4 + j);
        }
        return s;
    };
    expect_elements(y, 0, {2, 3, 5}, [&](int64_t i) { return dot(da, i / 5, db, i % 5); });
    expect_elements(y, 1, {2, 3}, [&](int64_t i) { return dot(da, i, dv, i / 3); });
    expect_elements(y, 2, {2}, [&](int64_t i) { return dot(dv, i, dv, i); });
}

TEST_F(Math, einsum_and_running_sums) {
    nv::ITensor& a = input("a", {2, 3});
    nv::ITensor& b = input("b", {3, 4});
    nv::ITensor* both[] = {&a, &b};
    auto* e = network->addEinsum(both, 2, "ij,jk->ki");
    EXPECT_STREQ(e->getEquation(), "ij,jk->ki");
    auto* c = network->addCumulative(a, scalar(1), nv::CumulativeOperation::kSUM, true, true);
    network->markOutput(*e->getOutput(0));
    network->markOutput(*c->getOutput(0));
    Tensor da = numbers({2, 3});
    Tensor db = numbers({3, 4});
    auto y = run({da, db});
    expect_elements(y, 0, {4, 2}, [&](int64_t i) {
        double s = 0;
        for (int64_t j = 0; j < 3; ++j) {
            s += da.get_f64(i % 2 * 3 + j) * db.get_f64(j * 4 + i / 2);
        }
        return s;
    });
    expect_elements(y, 1, {2, 3}, [&](int64_t i) {
        double s = 0;
        for (int64_t j = i % 3 + 1; j < 3; ++j) {
            s += da.get_f64(i / 3 * 3 + j);
        }
        return s;
    });
}

// --- quantisation --------------------------------------------------------------------------------

double rounded(double x, double scale) {
    return std::min(127.0, std::max(-128.0, std::nearbyint(x / scale)));
}

TEST_F(Math, quantize_and_dequantize_by_tensor_axis_and_block) {
    nv::ITensor& x = input("x", {2, 4});
    Tensor axis = numbers({4}, 0.01, 0.1);
    Tensor block = numbers({2, 2}, 0.01, 0.1);
    nv::ITensor& scalar_scale = constant(Tensor::scalar(DType::F32, 0.02));
    auto add = [&](nv::ITensor& scale, int32_t along) {
        auto* q = network->addQuantize(x, scale, nv::DataType::kINT8);
        q->setAxis(along);
        auto* d = network->addDequantize(*q->getOutput(0), scale, nv::DataType::kFLOAT);
        d->setAxis(along);
        network->markOutput(*d->getOutput(0));
        return q;
    };
    network->markOutput(*add(scalar_scale, -1)->getOutput(0));
    add(constant(axis), 1);
    EXPECT_TRUE(add(constant(block), -1)->setBlockShape(dims({1, 2})));
    Tensor data = numbers({2, 4}, -3, 3);
    auto y = run({data});
    double s = static_cast<double>(0.02F);
    expect_elements(y, 0, {2, 4}, [&](int64_t i) { return rounded(data.get_f64(i), s) * s; });
    expect_elements(y, 1, {2, 4}, [&](int64_t i) { return rounded(data.get_f64(i), s); });
    expect_elements(y, 2, {2, 4}, [&](int64_t i) {
        double a = axis.get_f64(i % 4);
        return rounded(data.get_f64(i), a) * a;
    });
    expect_elements(y, 3, {2, 4}, [&](int64_t i) {
        double b = block.get_f64(i / 2);
        return rounded(data.get_f64(i), b) * b;
    });
}

TEST_F(Math, dynamic_quantization_keeps_blocks_within_a_step) {
    nv::ITensor& x = input("x", {2, 32});
    auto* q =
        network->addDynamicQuantizeV2(x, dims({1, 16}), nv::DataType::kFP8, nv::DataType::kFLOAT);
    ASSERT_NE(q, nullptr);
    auto* d = network->addDequantize(*q->getOutput(0), *q->getOutput(1), nv::DataType::kFLOAT);
    network->markOutput(*q->getOutput(1));
    Tensor data = numbers({2, 32}, -3, 3);
    auto y = run(d, {data});
    expect_elements(y, 0, {2, 2}, [&](int64_t i) {
        double most = 0;
        for (int64_t k = 0; k < 16; ++k) {
            most = std::max(most, std::abs(data.get_f64(i * 16 + k)));
        }
        return most / 448;
    });
    expect_elements(
        y, 1, {2, 32}, [&](int64_t i) { return data.get_f64(i); }, 0.07);
}

// --- transformers --------------------------------------------------------------------------------

// softmax(q k + visible) v for one query.
double attended(const Tensor& q, const Tensor& k, const Tensor& v, int64_t head, int64_t row,
                int64_t group, int64_t column, int64_t last) {
    const int64_t size = q.shape()[3];
    const int64_t keys = k.shape()[2];
    double sum = 0;
    double out = 0;
    for (int64_t t = 0; t <= std::min(last, keys - 1); ++t) {
        double score = 0;
        for (int64_t d = 0; d < size; ++d) {
            score += q.get_f64((head * q.shape()[2] + row) * size + d) *
                     k.get_f64((group * keys + t) * size + d);
        }
        sum += std::exp(score);
        out += std::exp(score) * v.get_f64((group * keys + t) * size + column);
    }
    return out / sum;
}

TEST_F(Math, attention_by_causal_kind_and_lengths) {
    Tensor q = numbers({1, 4, 2, 3});
    Tensor k = numbers({1, 2, 5, 3});
    Tensor v = numbers({1, 2, 5, 3}, 0, 1);
    auto at = [&](nv::CausalMaskKind kind, bool lengths, bool decomposed) {
        network.reset(builder->createNetworkV2(0));
        nv::ITensor& tq = input("q", {1, 4, 2, 3});
        nv::ITensor& tk = input("k", {1, 2, 5, 3});
        nv::ITensor& tv = input("v", {1, 2, 5, 3});
        nv::IAttention* a =
            network->addAttentionV2(tq, tk, tv, nv::AttentionNormalizationOp::kSOFTMAX, kind);
        EXPECT_EQ(network->getNbLayers(), 2);
        if (lengths) {
            std::vector<int32_t> three = {3};
            EXPECT_TRUE(
                a->setKeyValueLengths(&constant(Tensor::of<int32_t>(DType::I32, {1}, three))));
        }
        if (decomposed) {
            a->setNormalizationQuantizeScale(constant(Tensor::scalar(DType::F32, 1.0 / 127)));
            a->setNormalizationQuantizeToType(nv::DataType::kINT8);
        }
        network->markOutput(*a->getOutput(0));
        return run({q, k, v});
    };
    auto expected = [&](int64_t i, int64_t last) {
        int64_t head = i / 6;
        return attended(q, k, v, head, i / 3 % 2, head / 2, i % 3, last);
    };
    const Shape shape = {1, 4, 2, 3};
    using Kind = nv::CausalMaskKind;
    expect_elements(at(Kind::kNONE, false, false), 0, shape,
                    [&](int64_t i) { return expected(i, 4); });
    expect_elements(at(Kind::kUPPER_LEFT, false, false), 0, shape,
                    [&](int64_t i) { return expected(i, i / 3 % 2); });
    expect_elements(at(Kind::kLOWER_RIGHT, false, false), 0, shape,
                    [&](int64_t i) { return expected(i, i / 3 % 2 + 3); });
    expect_elements(at(Kind::kNONE, true, false), 0, shape,
                    [&](int64_t i) { return expected(i, 2); });
    expect_elements(
        at(Kind::kLOWER_RIGHT, false, true), 0, shape,
        [&](int64_t i) { return expected(i, i / 3 % 2 + 3); }, 0.03);
}

TEST_F(Math, attention_with_masks) {
    Tensor q = numbers({1, 1, 2, 3});
    Tensor k = numbers({1, 1, 3, 3});
    nv::ITensor& tq = input("q", {1, 1, 2, 3});
    nv::ITensor& tk = input("k", {1, 1, 3, 3});
    std::vector<int> visible = {1, 1, 0, 1, 1, 0};
    nv::IAttention* a = network->addAttentionV2(tq, tk, tk, nv::AttentionNormalizationOp::kSOFTMAX,
                                                nv::CausalMaskKind::kNONE);
    EXPECT_TRUE(a->setMask(constant(Tensor::of<int>(DType::Bool, {1, 1, 2, 3}, visible))));
    network->markOutput(*a->getOutput(0));
    expect_elements(run({q, k}), 0, {1, 1, 2, 3},
                    [&](int64_t i) { return attended(q, k, k, 0, i / 3, 0, i % 3, 1); });
}

TEST_F(Math, rotary_embedding) {
    nv::ITensor& x = input("x", {1, 1, 2, 4});
    Tensor cosines = numbers({1, 2, 2});
    Tensor sines = numbers({1, 2, 2}, 0, 1);
    auto* r = network->addRotaryEmbedding(x, constant(cosines), constant(sines), false, 0);
    Tensor data = numbers({1, 1, 2, 4});
    auto y = run(r, {data});
    expect_elements(y, 0, {1, 1, 2, 4}, [&](int64_t i) {
        int64_t row = i / 4;
        int64_t pair = i % 2;
        double a = data.get_f64(row * 4 + pair);
        double b = data.get_f64(row * 4 + pair + 2);
        double c = cosines.get_f64(row * 2 + pair);
        double s = sines.get_f64(row * 2 + pair);
        return i % 4 < 2 ? a * c - b * s : b * c + a * s;
    });
}

TEST_F(Math, key_value_cache) {
    nv::ITensor& cache = input("cache", {2, 1, 4, 2});
    nv::ITensor& update = input("update", {2, 1, 1, 2});
    auto* kv = network->addKVCacheUpdate(cache, update, indices({3, 1}), nv::KVCacheMode::kLINEAR);
    Tensor old = numbers({2, 1, 4, 2});
    Tensor fresh = numbers({2, 1, 1, 2}, 5, 6);
    auto y = run(kv, {old, fresh});
    expect_elements(y, 0, {2, 1, 4, 2}, [&](int64_t i) {
        bool written = i / 2 == 3 || i / 2 == 5;
        return written ? fresh.get_f64(i / 8 * 2 + i % 2) : old.get_f64(i);
    });
}

TEST_F(Math, mixture_of_experts) {
    nv::ITensor& x = input("x", {1, 2, 3});
    Tensor gate = numbers({2, 3, 4}, -1, 1);
    Tensor up = numbers({2, 3, 4}, 0, 1);
    Tensor down = numbers({2, 4, 3}, -1, 1);
    Tensor scores = numbers({1, 2, 1}, 0.5, 1);
    auto* moe =
        network->addMoE(x, constant(Tensor::i64({1, 0}).reshaped({1, 2, 1})), constant(scores));
    moe->setGatedWeights(constant(gate), constant(up), constant(down), nv::MoEActType::kSILU);
    Tensor data = numbers({1, 2, 3});
    auto y = run(moe, {data});
    expect_elements(y, 0, {1, 2, 3}, [&](int64_t i) {
        int64_t token = i / 3;
        int64_t e = 1 - token;
        double out = 0;
        for (int64_t k = 0; k < 4; ++k) {
            double g = 0;
            double u = 0;
            for (int64_t c = 0; c < 3; ++c) {
                g += data.get_f64(token * 3 + c) * gate.get_f64((e * 3 + c) * 4 + k);
                u += data.get_f64(token * 3 + c) * up.get_f64((e * 3 + c) * 4 + k);
            }
            out += g / (1 + std::exp(-g)) * u * down.get_f64((e * 4 + k) * 3 + i % 3);
        }
        return out * scores.get_f64(token);
    });
}

TEST_F(Math, a_collective_of_one_gives_what_it_gets) {
    nv::ITensor& x = input("x", {2});
    auto* c = network->addDistCollective(x, nv::CollectiveOperation::kALL_REDUCE,
                                         nv::ReduceOperation::kSUM, -1, nullptr, 0);
    Tensor data = numbers({2});
    expect_elements(run(c, {data}), 0, {2}, [&](int64_t i) { return data.get_f64(i); });
}

} // namespace

} // namespace ingot::test
