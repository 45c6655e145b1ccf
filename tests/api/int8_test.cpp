// SPDX-License-Identifier: Apache-2.0
// INT8 in networks without quantise layers: calibrators, caches, dynamic ranges.
#include "api/network_fixture.h"
#include "backends/backends.h"
#include "ingot.h"
#include "ir/rewrite.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>

namespace ingot::test {

namespace {

constexpr int64_t picture = 3 * 8 * 8;

/// Feeds pictures from host memory, one batch at a time.
template <class Base>
class Feeder : public Base {
public:
    Feeder(int64_t batch, int64_t batches)
        : data_(numbers({std::abs(batch) * batches, 3, 8, 8}, -1, 1)), batch_(batch),
          batches_(batches) {}

    int32_t getBatchSize() const noexcept override { return static_cast<int32_t>(batch_); }
    bool getBatch(void* bindings[], const char* names[], int32_t count) noexcept override {
        asked.assign(names, names + count);
        if (done == batches_) {
            return false;
        }
        auto* first = reinterpret_cast<float*>(data_.mutable_bytes().data());
        bindings[0] = blind ? nullptr : first + done * batch_ * picture;
        ++done;
        return true;
    }
    const void* readCalibrationCache(size_t& length) noexcept override {
        length = cache.size();
        return cache.empty() ? nullptr : cache.data();
    }
    void writeCalibrationCache(const void* ptr, size_t length) noexcept override {
        cache.assign(static_cast<const char*>(ptr), length);
    }

    std::string cache;
    std::vector<std::string> asked;
    int64_t done = 0;
    bool blind = false;

private:
    Tensor data_;
    int64_t batch_;
    int64_t batches_;
};

class Legacy final : public Feeder<nv::IInt8LegacyCalibrator> {
public:
    using Feeder::Feeder;
    double getQuantile() const noexcept override { return quantile; }
    double getRegressionCutoff() const noexcept override { return 0.5; }
    const void* readHistogramCache(size_t& length) noexcept override {
        length = histograms.size();
        return histograms.empty() ? nullptr : histograms.data();
    }
    void writeHistogramCache(const void* ptr, size_t length) noexcept override {
        histograms.assign(static_cast<const char*>(ptr), length);
    }
    std::string histograms;
    double quantile = 0.99;
};

using Entropy2 = Feeder<nv::IInt8EntropyCalibrator2>;
using MinMax = Feeder<nv::IInt8MinMaxCalibrator>;

class Int8Test : public NetworkTest {
protected:
    // y = conv2(relu(conv1(x))) of [batch, 3, 8, 8].
    void convolutions(int64_t batch) {
        nv::ITensor& x = input("x", {batch, 3, 8, 8});
        first = conv(x, 8, 3);
        first->setName("conv1");
        nv::ITensor& r =
            *network->addActivation(*first->getOutput(0), nv::ActivationType::kRELU)->getOutput(0);
        r.setName("between");
        second = conv(r, 4, 8);
        second->setName("conv2");
        network->markOutput(*second->getOutput(0));
        second->getOutput(0)->setName("y");
        config->setFlag(nv::BuilderFlag::kINT8);
    }
    nv::ILayer* conv(nv::ITensor& x, int64_t to, int64_t from) {
        auto* layer = network->addConvolutionNd(x, to, dims({3, 3}),
                                                weights(numbers({to, from, 3, 3}, -0.3, 0.3)), {});
        layer->setPaddingNd(dims({1, 1}));
        return layer;
    }
    static size_t count(const Engine& engine, const OpDef& def) {
        size_t n = 0;
        visit_nodes(engine.graph(), [&](const Graph&, const Node& node) { n += node.is(def); });
        return n;
    }
    /// The engine's results against float results; the largest difference relative to the largest
    /// value.
    double error_of(const Engine& narrow) {
        Tensor x = numbers({4, 3, 8, 8}, -1, 1);
        config->setFlags(0);
        std::vector<Tensor> wide = run({x});
        std::vector<Tensor> got =
            Context(std::shared_ptr<const Engine>(&narrow, [](auto*) {}), cpu_backend()).run({{x}});
        double difference = 0;
        double largest = 0;
        for (int64_t i = 0; i < wide[0].count(); ++i) {
            double off = std::abs(wide[0].get_f64(i) - got[0].get_f64(i));
            difference = std::isnan(off) ? HUGE_VAL : std::max(difference, off);
            largest = std::max(largest, std::abs(wide[0].get_f64(i)));
        }
        return difference / largest;
    }
    std::string refusal() {
        logger.errors.clear();
        std::unique_ptr<nv::IHostMemory> none(builder->buildSerializedNetwork(*network, *config));
        EXPECT_EQ(none, nullptr);
        return logger.errors.empty() ? "" : logger.errors.back();
    }
    nv::ILayer* first = nullptr;
    nv::ILayer* second = nullptr;
};

TEST_F(Int8Test, a_calibrator_is_fed_batch_by_batch_and_gets_a_cache) {
    convolutions(4);
    Entropy2 c(4, 5);
    config->setInt8Calibrator(&c);
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(c.done, 5);
    EXPECT_EQ(c.asked, (std::vector<std::string>{"x"}));
    EXPECT_EQ(c.cache.rfind("TRT-8601-EntropyCalibration2\nx: 3c", 0), 0U) << c.cache;
    EXPECT_NE(c.cache.find("\nbetween: 3"), std::string::npos) << c.cache;
    EXPECT_EQ(count(*engine, ops::quantize_def), 2U);
    EXPECT_EQ(count(*engine, ops::dequantize_def), 4U); // two of weights
    MinMax whole(4, 5);                                 // noise has no tails to cut off
    config->setInt8Calibrator(&whole);
    engine = build();
    EXPECT_LT(error_of(*engine), 0.05);
    EXPECT_GT(error_of(*engine), 1e-5);
}

TEST_F(Int8Test, a_cache_takes_the_place_of_batches) {
    convolutions(4);
    Entropy2 c(4, 3);
    config->setInt8Calibrator(&c);
    std::unique_ptr<nv::IHostMemory> one(builder->buildSerializedNetwork(*network, *config));
    Entropy2 again(4, 3);
    again.cache = c.cache;
    config->setInt8Calibrator(&again);
    std::unique_ptr<nv::IHostMemory> two(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(two, nullptr);
    EXPECT_EQ(again.done, 0);
    ASSERT_EQ(one->size(), two->size());
    EXPECT_EQ(std::memcmp(one->data(), two->data(), one->size()), 0);
}

TEST_F(Int8Test, each_calibrator_has_its_algorithm) {
    convolutions(4);
    auto header = [&](auto& c) {
        config->setInt8Calibrator(&c);
        EXPECT_NE(build(), nullptr);
        return c.cache.substr(0, c.cache.find('\n'));
    };
    Feeder<nv::IInt8EntropyCalibrator> entropy(4, 2);
    EXPECT_EQ(header(entropy), "TRT-8601-EntropyCalibration");
    MinMax most(4, 2);
    EXPECT_EQ(header(most), "TRT-8601-MinMaxCalibration");
    Feeder<IInt8MseCalibrator> mse(4, 2);
    EXPECT_EQ(header(mse), "TRT-8601-MseCalibration");
    Legacy legacy(4, 2);
    EXPECT_EQ(header(legacy), "TRT-8601-LegacyCalibration");
}

TEST_F(Int8Test, histograms_of_a_legacy_calibrator_serve_again) {
    convolutions(4);
    Legacy c(4, 2);
    config->setInt8Calibrator(&c);
    ASSERT_NE(build(), nullptr);
    Legacy again(4, 2);
    again.histograms = c.histograms;
    config->setInt8Calibrator(&again);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(again.done, 0);
    EXPECT_EQ(again.cache, c.cache);
    again.cache.clear();
    again.quantile = 0.5; // other scales from the same histograms
    ASSERT_NE(build(), nullptr);
    EXPECT_NE(again.cache, c.cache);
    again.cache.clear();
    again.histograms.resize(100);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(again.done, 2);
}

TEST_F(Int8Test, open_batches_have_the_calibrators_size_or_the_shapes_of_its_profile) {
    convolutions(-1);
    Entropy2 c(2, 2);
    config->setInt8Calibrator(&c);
    EXPECT_EQ(refusal(), "IBuilder::buildSerializedNetwork: calibration: input 'x' is "
                         "f32[x_0,3,8,8]: set its shape in a profile, with "
                         "setCalibrationProfile()");
    auto profile = [&](int64_t opt) {
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1, 3, 8, 8}));
        p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({opt, 3, 8, 8}));
        p->setDimensions("x", nv::OptProfileSelector::kMAX, dims({9, 3, 8, 8}));
        return p;
    };
    config->addOptimizationProfile(profile(7)); // exceeds the feeder's memory
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(c.done, 2);
    Entropy2 whole(6, 2); // says nothing of the size: the profile does
    Entropy2 parts(2, 6);
    EXPECT_TRUE(config->setCalibrationProfile(profile(2)));
    config->setInt8Calibrator(&parts);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(parts.done, 6);
    EXPECT_TRUE(config->setCalibrationProfile(profile(6)));
    config->setInt8Calibrator(&whole);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(whole.cache, parts.cache); // the same pictures, in other batches
}

TEST_F(Int8Test, ranges_of_tensors_do_without_a_calibrator) {
    convolutions(4);
    nv::ITensor& x = *network->getInput(0);
    nv::ITensor& between = *second->getInput(0);
    EXPECT_FALSE(x.dynamicRangeIsSet());
    EXPECT_TRUE(std::isnan(x.getDynamicRangeMin()));
    EXPECT_TRUE(x.setDynamicRange(-1, 0.5F));
    EXPECT_TRUE(between.setDynamicRange(-1.27F, 1.27F));
    EXPECT_EQ(x.getDynamicRangeMin(), -1);
    EXPECT_EQ(x.getDynamicRangeMax(), 0.5F);
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    std::vector<float> scales;
    for (const Node& n : engine->graph().nodes()) {
        if (n.is(ops::quantize_def)) {
            scales.push_back(engine->graph().constant(n.inputs[1])->as<float>()[0]);
        }
    }
    EXPECT_EQ(scales, (std::vector<float>{1.0F / 127, 1.27F / 127})); // -max to max
    between.resetDynamicRange();
    EXPECT_FALSE(between.dynamicRangeIsSet());
    engine = build();
    EXPECT_EQ(count(*engine, ops::quantize_def), 1U); // conv2 stays in floats
    x.resetDynamicRange();
    EXPECT_NE(refusal(), "");
}

TEST_F(Int8Test, ranges_go_before_those_of_the_calibrator) {
    convolutions(4);
    MinMax c(4, 2);
    config->setInt8Calibrator(&c);
    network->getInput(0)->setDynamicRange(-2.54F, 2.54F);
    std::shared_ptr<const Engine> engine = build();
    bool found = false;
    for (const Node& n : engine->graph().nodes()) {
        found = found || (n.is(ops::quantize_def) &&
                          engine->graph().constant(n.inputs[1])->as<float>()[0] == 2.54F / 127);
    }
    EXPECT_TRUE(found);
}

TEST_F(Int8Test, without_ranges_it_is_refused_unless_asked_for_by_name) {
    convolutions(4);
    EXPECT_EQ(refusal(),
              "IBuilder::buildSerializedNetwork: kINT8 is set, but the ranges of tensors are not "
              "known: give a calibrator (setInt8Calibrator), dynamic ranges "
              "(ITensor::setDynamicRange) or a network with quantise layers, or ask for ranges "
              "guessed from random inputs, which make results poor, with "
              "setBuildRoute(\"-int8_without_calibration=on\")");
    EXPECT_FALSE(config->setBuildRoute("-int8_without_calibration=maybe"));
    EXPECT_TRUE(config->setBuildRoute("-int8_without_calibration=on"));
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(count(*engine, ops::quantize_def), 2U);
}

TEST_F(Int8Test, a_layer_that_is_to_compute_in_float_does) {
    convolutions(4);
    MinMax c(4, 2);
    config->setInt8Calibrator(&c);
    second->setPrecision(nv::DataType::kFLOAT);
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(count(*engine, ops::quantize_def), 1U);
}

TEST_F(Int8Test, int8_goes_with_halves) {
    convolutions(4);
    MinMax c(4, 2);
    config->setInt8Calibrator(&c);
    config->setFlag(nv::BuilderFlag::kFP16);
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(count(*engine, ops::quantize_def), 2U);
    EXPECT_LT(error_of(*engine), 0.05);
}

TEST_F(Int8Test, wrong_answers_of_a_calibrator_are_named) {
    convolutions(4);
    const std::string start = "IBuilder::buildSerializedNetwork: ";
    Entropy2 c(4, 2);
    config->setInt8Calibrator(&c);
    c.blind = true;
    EXPECT_EQ(refusal(), start + "calibrator: getBatch() gave no address for input 'x'");
    Entropy2 none(4, 0);
    config->setInt8Calibrator(&none);
    EXPECT_EQ(refusal(), start + "calibrator: getBatch() gave no batch; give at least one, or a "
                                 "cache by readCalibrationCache()");
    none.cache = "TRT-8601-EntropyCalibration2\nx: bf800000\n";
    EXPECT_EQ(refusal(), start + "readCalibrationCache(), line 2: scale of tensor \"x\": expected "
                                 "a number, 0 or more, got -1 (bf800000)");
    none.cache = "TRT-8601-EntropyCalibration2\nelsewhere: 3c010a14\n";
    EXPECT_EQ(refusal(), start + "none of the 1 tensors of the calibration cache is in the "
                                 "network: it belongs to another one");
    Entropy2 negative(-1, 2);
    config->setInt8Calibrator(&negative);
    EXPECT_EQ(refusal(), start + "calibrator: getBatchSize() is -1, expected 0 or more");
    Legacy legacy(4, 2);
    legacy.quantile = 2;
    config->setInt8Calibrator(&legacy);
    EXPECT_EQ(refusal(), start + "calibrator: calibration: quantile is 2, expected 0 to 1");
}

} // namespace

} // namespace ingot::test
