// SPDX-License-Identifier: Apache-2.0
// Convolution, deconvolution, pooling, normalisation, resizing and sampling against plain loops.
#include "api/network_fixture.h"

namespace ingot::test {

namespace {

using Windows = NetworkTest;

double at4(const Tensor& t, int64_t n, int64_t c, int64_t h, int64_t w) {
    const Shape& s = t.shape();
    if (h < 0 || h >= s[2] || w < 0 || w >= s[3]) {
        return 0;
    }
    return t.get_f64(((n * s[1] + c) * s[2] + h) * s[3] + w);
}

TEST_F(Windows, convolution_with_groups_strides_and_padding) {
    nv::ITensor& x = input("x", {-1, 4, 7, 6});
    Tensor w = numbers({6, 2, 3, 2}, -1, 1);
    Tensor b = numbers({6}, -1, 1);
    auto* conv = network->addConvolutionNd(x, 6, nv::DimsHW(3, 2), weights(w), weights(b));
    conv->setNbGroups(2);
    conv->setStrideNd(nv::DimsHW(2, 1));
    conv->setPrePadding(nv::DimsHW(1, 0));
    conv->setPostPadding(nv::DimsHW(0, 2));
    conv->setDilationNd(nv::DimsHW(1, 2));
    EXPECT_EQ(list(conv->getOutput(0)->getDimensions()), (std::vector<int64_t>{-1, 6, 3, 6}));
    Tensor data = numbers({2, 4, 7, 6});
    auto y = run(conv, {data});
    expect_elements(y, 0, {2, 6, 3, 6}, [&](int64_t i) {
        int64_t ow = i % 6;
        int64_t oh = i / 6 % 3;
        int64_t o = i / 18 % 6;
        int64_t n = i / 108;
        double sum = b.get_f64(o);
        for (int64_t c = 0; c < 2; ++c) {
            for (int64_t kh = 0; kh < 3; ++kh) {
                for (int64_t kw = 0; kw < 2; ++kw) {
                    sum += at4(data, n, o / 3 * 2 + c, oh * 2 + kh - 1, ow + 2 * kw) *
                           at4(w, o, c, kh, kw);
                }
            }
        }
        return sum;
    });
}

TEST_F(Windows, convolution_with_kernel_and_bias_as_tensors) {
    nv::ITensor& x = input("x", {1, 2, 4, 4});
    nv::ITensor& w = input("w", {3, 2, 1, 1});
    nv::ITensor& b = input("b", {3});
    const nv::Weights none{nv::DataType::kFLOAT, nullptr, 0};
    auto* conv = network->addConvolutionNd(x, 3, nv::DimsHW(1, 1), none, none);
    conv->setInput(1, w);
    conv->setInput(2, b);
    Tensor data = numbers({1, 2, 4, 4});
    Tensor kernel = numbers({3, 2, 1, 1});
    Tensor bias = numbers({3});
    auto y = run(conv, {data, kernel, bias});
    expect_elements(y, 0, {1, 3, 4, 4}, [&](int64_t i) {
        int64_t o = i / 16;
        int64_t p = i % 16;
        return bias.get_f64(o) + data.get_f64(p) * kernel.get_f64(o * 2) +
               data.get_f64(16 + p) * kernel.get_f64(o * 2 + 1);
    });
}

TEST_F(Windows, padding_modes_give_their_sizes) {
    nv::ITensor& x = input("x", {1, 1, 7, 7});
    Tensor w = numbers({1, 1, 3, 3});
    const nv::Weights none{nv::DataType::kFLOAT, nullptr, 0};
    auto size = [&](nv::PaddingMode mode, int64_t stride) {
        auto* conv = network->addConvolutionNd(x, 1, nv::DimsHW(3, 3), weights(w), none);
        conv->setStrideNd(nv::DimsHW(stride, stride));
        conv->setPaddingMode(mode);
        return conv->getOutput(0)->getDimensions().d[2];
    };
    EXPECT_EQ(size(nv::PaddingMode::kEXPLICIT_ROUND_DOWN, 3), 2);
    EXPECT_EQ(size(nv::PaddingMode::kEXPLICIT_ROUND_UP, 3), 3);
    EXPECT_EQ(size(nv::PaddingMode::kSAME_UPPER, 2), 4);
    EXPECT_EQ(size(nv::PaddingMode::kSAME_LOWER, 2), 4);
}

TEST_F(Windows, three_dimensions) {
    nv::ITensor& x = input("x", {1, 1, 3, 3, 3});
    Tensor w = numbers({1, 1, 3, 3, 3});
    const nv::Weights none{nv::DataType::kFLOAT, nullptr, 0};
    auto* conv = network->addConvolutionNd(x, 1, dims({3, 3, 3}), weights(w), none);
    Tensor data = numbers({1, 1, 3, 3, 3}, -1, 1);
    auto y = run(conv, {data});
    expect_elements(y, 0, {1, 1, 1, 1, 1}, [&](int64_t) {
        double sum = 0;
        for (int64_t i = 0; i < 27; ++i) {
            sum += data.get_f64(i) * w.get_f64(i);
        }
        return sum;
    });
}

TEST_F(Windows, deconvolution_spreads_and_crops) {
    nv::ITensor& x = input("x", {1, 2, 3, 3});
    Tensor w = numbers({2, 3, 3, 3});
    Tensor b = numbers({3});
    auto* layer = network->addDeconvolutionNd(x, 3, nv::DimsHW(3, 3), weights(w), weights(b));
    layer->setStrideNd(nv::DimsHW(2, 2));
    layer->setPrePadding(nv::DimsHW(1, 1));
    layer->setPostPadding(nv::DimsHW(0, 0));
    Tensor data = numbers({1, 2, 3, 3});
    auto y = run(layer, {data});
    expect_elements(y, 0, {1, 3, 6, 6}, [&](int64_t i) {
        int64_t ow = i % 6 + 1;
        int64_t oh = i / 6 % 6 + 1;
        int64_t o = i / 36;
        double sum = b.get_f64(o);
        for (int64_t c = 0; c < 2; ++c) {
            for (int64_t h = 0; h < 3; ++h) {
                for (int64_t v = 0; v < 3; ++v) {
                    int64_t kh = oh - 2 * h;
                    int64_t kw = ow - 2 * v;
                    sum += kh < 3 && kw < 3 ? at4(data, 0, c, h, v) * at4(w, c, o, kh, kw) : 0;
                }
            }
        }
        return sum;
    });
}

TEST_F(Windows, pooling_by_type) {
    Tensor data = numbers({1, 2, 4, 4});
    auto pooled = [&](nv::PoolingType type, bool exclusive) {
        network.reset(builder->createNetworkV2(0));
        auto* pool = network->addPoolingNd(input("x", {1, 2, 4, 4}), type, nv::DimsHW(2, 2));
        pool->setStrideNd(nv::DimsHW(2, 2));
        pool->setPaddingNd(nv::DimsHW(1, 1));
        pool->setAverageCountExcludesPadding(exclusive);
        pool->setBlendFactor(0.25F);
        return run(pool, {data});
    };
    auto window = [&](int64_t i, bool average, bool all) {
        int64_t w0 = i % 3 * 2 - 1;
        int64_t h0 = i / 3 % 3 * 2 - 1;
        double most = -1e30;
        double sum = 0;
        double count = 0;
        for (int64_t h = h0; h < h0 + 2; ++h) {
            for (int64_t w = w0; w < w0 + 2; ++w) {
                bool inside = h >= 0 && h < 4 && w >= 0 && w < 4;
                most = inside ? std::max(most, at4(data, 0, i / 9, h, w)) : most;
                sum += at4(data, 0, i / 9, h, w);
                count += inside || all ? 1 : 0;
            }
        }
        return average ? sum / count : most;
    };
    const Shape shape = {1, 2, 3, 3};
    using Type = nv::PoolingType;
    expect_elements(pooled(Type::kMAX, true), 0, shape,
                    [&](int64_t i) { return window(i, false, false); });
    expect_elements(pooled(Type::kAVERAGE, true), 0, shape,
                    [&](int64_t i) { return window(i, true, false); });
    expect_elements(pooled(Type::kAVERAGE, false), 0, shape,
                    [&](int64_t i) { return window(i, true, true); });
    expect_elements(pooled(Type::kMAX_AVERAGE_BLEND, true), 0, shape, [&](int64_t i) {
        return 0.75 * window(i, false, false) + 0.25 * window(i, true, false);
    });
}

TEST_F(Windows, local_response_normalisation) {
    nv::ITensor& x = input("x", {1, 5, 2, 2});
    Tensor data = numbers({1, 5, 2, 2});
    auto y = run(network->addLRN(x, 3, 0.5F, 0.75F, 2), {data});
    expect_elements(y, 0, {1, 5, 2, 2}, [&](int64_t i) {
        double sum = 0;
        for (int64_t c = std::max<int64_t>(0, i / 4 - 1); c <= std::min<int64_t>(4, i / 4 + 1);
             ++c) {
            sum += std::pow(data.get_f64(c * 4 + i % 4), 2);
        }
        return data.get_f64(i) / std::pow(2 + 0.5 / 3 * sum, 0.75);
    });
}

struct Moments {
    double mean = 0;
    double deviation = 1;
};

Moments moments(const Tensor& t, const std::function<bool(int64_t)>& belongs) {
    double n = 0;
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < t.count(); ++i) {
        if (belongs(i)) {
            n += 1;
            sum += t.get_f64(i);
            squares += t.get_f64(i) * t.get_f64(i);
        }
    }
    double mean = sum / n;
    return {mean, std::sqrt(squares / n - mean * mean + 1e-5)};
}

TEST_F(Windows, normalisation_over_layer_instance_group_and_batch) {
    nv::ITensor& x = input("x", {2, 4, 3, 3});
    Tensor tail = numbers({1, 1, 3, 3});
    Tensor channel = numbers({1, 4, 1, 1});
    Tensor group = numbers({1, 2, 1, 1});
    auto add = [&](const Tensor& scale, uint32_t axes) {
        nv::ITensor& s = constant(scale);
        auto* n = network->addNormalization(x, s, s, axes);
        network->markOutput(*n->getOutput(0));
        return n;
    };
    add(tail, 0b1100);
    add(channel, 0b1100);
    add(group, 0b1100)->setNbGroups(2);
    add(channel, 0b1101);
    Tensor data = numbers({2, 4, 3, 3});
    auto y = run({data});
    const Shape shape = {2, 4, 3, 3};
    auto check = [&](size_t which, const std::function<bool(int64_t, int64_t)>& same,
                     const std::function<double(int64_t)>& scale) {
        expect_elements(y, which, shape, [&](int64_t i) {
            Moments m = moments(data, [&](int64_t k) { return same(i, k); });
            return (data.get_f64(i) - m.mean) / m.deviation * scale(i) + scale(i);
        });
    };
    auto instance = [](int64_t i, int64_t k) { return i / 9 == k / 9; };
    check(0, instance, [&](int64_t i) { return tail.get_f64(i % 9); });
    check(1, instance, [&](int64_t i) { return channel.get_f64(i / 9 % 4); });
    check(
        2, [](int64_t i, int64_t k) { return i / 18 == k / 18; },
        [&](int64_t i) { return group.get_f64(i / 18 % 2); });
    check(
        3, [](int64_t i, int64_t k) { return i / 9 % 4 == k / 9 % 4; },
        [&](int64_t i) { return channel.get_f64(i / 9 % 4); });
}

TEST_F(Windows, group_normalisation_v2_scales_channels) {
    nv::ITensor& x = input("x", {1, 4, 2, 2});
    Tensor scale = numbers({1, 4, 1, 1});
    Tensor bias = numbers({1, 4, 1, 1}, 0, 1);
    auto* n = network->addNormalizationV2(x, constant(scale), constant(bias), 0b1100);
    n->setNbGroups(2);
    EXPECT_TRUE(n->isV2());
    Tensor data = numbers({1, 4, 2, 2});
    auto y = run(n, {data});
    expect_elements(y, 0, {1, 4, 2, 2}, [&](int64_t i) {
        Moments m = moments(data, [&](int64_t k) { return k / 8 == i / 8; });
        return (data.get_f64(i) - m.mean) / m.deviation * scale.get_f64(i / 4) +
               bias.get_f64(i / 4);
    });
}

TEST_F(Windows, resize_by_scales_sizes_and_tensor) {
    nv::ITensor& x = input("x", {1, 1, 2, 3});
    auto* by_scale = network->addResize(x);
    const float scales[] = {1, 1, 2, 2};
    by_scale->setScales(scales, 4);
    auto* by_size = network->addResize(x);
    by_size->setOutputDimensions(dims({1, 1, 3, 5}));
    by_size->setResizeMode(nv::InterpolationMode::kLINEAR);
    by_size->setCoordinateTransformation(nv::ResizeCoordinateTransformation::kALIGN_CORNERS);
    auto* by_tensor = network->addResize(x);
    by_tensor->setInput(1, indices({1, 1, 4, 6}));
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{by_scale, by_size, by_tensor}) {
        network->markOutput(*l->getOutput(0));
    }
    Tensor data = numbers({1, 1, 2, 3});
    auto y = run({data});
    auto nearest = [&](int64_t i) { return at4(data, 0, 0, i / 6 / 2, i % 6 / 2); };
    expect_elements(y, 0, {1, 1, 4, 6}, nearest);
    expect_elements(y, 1, {1, 1, 3, 5}, [&](int64_t i) {
        double h = static_cast<double>(i / 5) * 0.5;
        double w = static_cast<double>(i % 5) * 0.5;
        auto h0 = static_cast<int64_t>(h);
        auto w0 = static_cast<int64_t>(w);
        auto row = [&](int64_t r) {
            double f = w - static_cast<double>(w0);
            return at4(data, 0, 0, r, w0) * (1 - f) + (f > 0 ? at4(data, 0, 0, r, w0 + 1) * f : 0);
        };
        double f = h - static_cast<double>(h0);
        return row(h0) * (1 - f) + (f > 0 ? row(h0 + 1) * f : 0);
    });
    expect_elements(y, 2, {1, 1, 4, 6}, nearest);
}

TEST_F(Windows, grid_sample_of_pixel_centres_and_beyond) {
    nv::ITensor& x = input("x", {1, 1, 2, 2});
    nv::ITensor& grid = input("grid", {1, 1, 3, 2});
    auto* sample = network->addGridSample(x, grid);
    EXPECT_EQ(sample->getSampleMode(), nv::SampleMode::kFILL);
    Tensor data = numbers({1, 1, 2, 2});
    std::vector<float> places = {-0.5F, -0.5F, 0.5F, 0.5F, 0, 0};
    auto y = run(sample, {data, Tensor::of<float>(DType::F32, {1, 1, 3, 2}, places)});
    expect_elements(y, 0, {1, 1, 1, 3}, [&](int64_t i) {
        double mean = 0;
        for (int64_t k = 0; k < 4; ++k) {
            mean += data.get_f64(k) / 4;
        }
        return i == 0 ? data.get_f64(0) : i == 1 ? data.get_f64(3) : mean;
    });
}

} // namespace

} // namespace ingot::test
