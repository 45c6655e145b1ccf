// SPDX-License-Identifier: Apache-2.0
// Calibration: histograms, thresholds, the cache's text, statistics over batches. Thresholds are
// compared with a NumPy port of the formulas by tests/python/test_calibrate.py.
#include "backends/backends.h"
#include "base/file.h"
#include "error_message.h"
#include "ops/ops.h"
#include "workflow/inputs/inputs.h"
#include "workflow/quantization/calibrate.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace ingot {
namespace {

Tensor floats(const std::vector<float>& v) {
    return Tensor::of<float>(DType::F32, {static_cast<int64_t>(v.size())}, v);
}

// --- histograms

TEST(CalibrationHistogram, CountsMagnitudesUpToTheLargest) {
    CalibrationHistogram h;
    h.add(floats({0, -1, 1.5F, 0.0005F}));
    EXPECT_EQ(h.largest(), 1.5);
    EXPECT_EQ(h.bin_width(), 2.0 / 2048);
    ASSERT_EQ(h.counts().size(), 1537U);
    EXPECT_EQ(h.counts()[0], 2U);
    EXPECT_EQ(h.counts()[1024], 1U);
    EXPECT_EQ(h.counts()[1536], 1U);
}

TEST(CalibrationHistogram, DoesNotDependOnTheOrder) {
    std::vector<Tensor> parts;
    for (uint64_t i = 0; i < 6; ++i) {
        Tensor t = random_tensor(DType::F32, {997}, i, "x").clone();
        for (float& x : t.as_mutable<float>()) {
            x = std::ldexp(x, static_cast<int>(i * 3) - 7);
        }
        parts.push_back(t);
    }
    CalibrationHistogram forward;
    CalibrationHistogram backward;
    for (size_t i = 0; i < parts.size(); ++i) {
        forward.add(parts[i]);
        backward.add(parts[parts.size() - 1 - i]);
    }
    EXPECT_EQ(forward.bin_width(), backward.bin_width());
    ASSERT_EQ(forward.counts().size(), backward.counts().size());
    EXPECT_TRUE(
        std::equal(forward.counts().begin(), forward.counts().end(), backward.counts().begin()));
}

TEST(CalibrationHistogram, LeavesOutWhatIsNotANumber) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CalibrationHistogram h;
    h.add(floats({1, std::nanf(""), infinity, -infinity, 2}));
    EXPECT_EQ(h.skipped(), 3U);
    EXPECT_EQ(h.largest(), 2);
}

TEST(CalibrationHistogram, HoldsTheSmallestAndTheLargestFloats) {
    CalibrationHistogram h;
    h.add(floats({std::numeric_limits<float>::denorm_min()}));
    EXPECT_EQ(h.counts().size(), 1025U);
    h.add(floats({std::numeric_limits<float>::max()}));
    EXPECT_EQ(h.counts().size(), 2048U);
    EXPECT_EQ(h.counts()[0], 1U);
    EXPECT_EQ(h.counts()[2047], 1U);
}

TEST(CalibrationHistogram, TakesHalvesAndDoubles) {
    for (DType t : {DType::F16, DType::BF16, DType::F64}) {
        CalibrationHistogram h;
        h.add(Tensor::of<double>(t, {3}, std::vector<double>{1, -4, 0.25}));
        EXPECT_EQ(h.largest(), 4) << str(t);
    }
    CalibrationHistogram h;
    EXPECT_EQ(message([&] { h.add(Tensor::i64({1})); }),
              "calibration observes float tensors, got i64");
}

// --- thresholds

TEST(CalibrationThreshold, OfFewBinsIsTheirRange) {
    std::vector<uint64_t> counts(128, 1);
    for (CalibrationMethod m : {CalibrationMethod::Entropy2, CalibrationMethod::Entropy,
                                CalibrationMethod::MinMax, CalibrationMethod::Mse}) {
        CalibrationOptions o;
        o.method = m;
        EXPECT_EQ(calibration_threshold(counts, 0.5, o), 64) << name(m);
    }
}

// Values that 128 levels hold exactly lose nothing: the divergence is 0 from the whole range on.
// Entropy2 discards bin 0, so that its level holds one bin less, still evenly.
TEST(CalibrationThreshold, EntropyKeepsWhatLevelsHold) {
    std::vector<uint64_t> counts(1024, 3);
    CalibrationOptions o;
    EXPECT_EQ(calibration_threshold(counts, 1, o), 1024);
    o.method = CalibrationMethod::Entropy;
    EXPECT_EQ(calibration_threshold(counts, 1, o), 1024);
}

// For any number of zeros from a ReLU, the threshold is that of the other values.
TEST(CalibrationThreshold, EntropyDoesNotSeeZeros) {
    std::vector<uint64_t> counts(1500);
    for (size_t i = 0; i < counts.size(); ++i) {
        double x = static_cast<double>(i) / 400;
        counts[i] = static_cast<uint64_t>(20000 * std::exp(-x * x / 2));
    }
    for (CalibrationMethod m : {CalibrationMethod::Entropy2, CalibrationMethod::Entropy}) {
        CalibrationOptions o;
        o.method = m;
        double without = calibration_threshold(counts, 1, o);
        std::vector<uint64_t> rectified = counts;
        rectified[0] = 100000000;
        EXPECT_EQ(calibration_threshold(rectified, 1, o), without) << name(m);
        EXPECT_GT(without, 900) << name(m);
    }
}

TEST(CalibrationThreshold, RareLargeValuesAreNotClippedAtAnyCost) {
    std::vector<uint64_t> counts(2048, 0);
    for (size_t i = 0; i < 400; ++i) {
        counts[i] = 10000;
    }
    for (size_t i = 1500; i < 2048; ++i) {
        counts[i] = 3; // what a face is in a picture
    }
    EXPECT_EQ(without_costly_clipping(counts, 1, 2048), 2048);
    double raised = without_costly_clipping(counts, 1, 410);
    EXPECT_GT(raised, 1500);
    CalibrationOptions o;
    EXPECT_GE(calibration_threshold(counts, 1, o), raised);
}

TEST(CalibrationThreshold, EntropyClipsAFarTail) {
    std::vector<uint64_t> counts(2048, 0);
    for (size_t i = 0; i < 512; ++i) {
        counts[i] = 100000 - 190 * i;
    }
    counts[2047] = 1;
    CalibrationOptions o;
    EXPECT_LT(calibration_threshold(counts, 1, o), 600);
    o.method = CalibrationMethod::Mse;
    EXPECT_LT(calibration_threshold(counts, 1, o), 600);
}

TEST(CalibrationThreshold, PercentileIsAnEdge) {
    std::vector<uint64_t> counts(100, 1);
    CalibrationOptions o;
    o.method = CalibrationMethod::Percentile;
    o.percentile = 49.5;
    EXPECT_EQ(calibration_threshold(counts, 2, o), 98);
    o.method = CalibrationMethod::Legacy;
    o.quantile = 0.495;
    EXPECT_EQ(calibration_threshold(counts, 2, o), 98);
    o.cutoff = 0.75;
    EXPECT_EQ(calibration_threshold(counts, 2, o), 150);
}

TEST(CalibrationThreshold, RefusesOptionsOutOfRange) {
    CalibrationOptions o;
    o.percentile = 101;
    EXPECT_EQ(message([&] { check_options(o); }),
              "calibration: percentile is 101, expected 0 to 100");
    o = {};
    o.cutoff = -1;
    EXPECT_EQ(message([&] { check_options(o); }),
              "calibration: regression cutoff is -1, expected 0 to 1");
    EXPECT_EQ(message([] { calibration_method("entropy3"); }),
              "there is no calibration algorithm 'entropy3': expected entropy2, entropy, minmax, "
              "percentile, legacy, mse");
}

// --- the cache

TEST(CalibrationCache, ReadsWhatTensorRtWrites) {
    CalibrationCache c =
        parse_calibration_cache("TRT-7000-EntropyCalibration2\nprob: 3c010a14\nconv1: 3c88edfc\n"
                                "(Unnamed Layer* 48) [Constant]_output: 3f800000\na: b: 40000000\n",
                                "cache");
    EXPECT_EQ(c.version, "7000");
    EXPECT_EQ(c.algorithm, "EntropyCalibration2");
    ASSERT_EQ(c.scales.size(), 4U);
    EXPECT_NEAR(*c.find("prob") * 127, 1.00024, 1e-5);
    EXPECT_NEAR(*c.find("conv1") * 127, 2.1228, 1e-4);
    EXPECT_EQ(*c.find("(Unnamed Layer* 48) [Constant]_output"), 1);
    EXPECT_EQ(*c.find("a: b"), 2);
    EXPECT_EQ(c.find("conv2"), nullptr);
}

TEST(CalibrationCache, PrintsTheSameBytes) {
    std::string text = "TRT-8601-MinMaxCalibration\n";
    for (int i = 0; i < 300; ++i) {
        auto scale = std::bit_cast<float>(0x00000001U + static_cast<uint32_t>(i) * 6000011U);
        char line[64];
        std::snprintf(line, sizeof line, "tensor %d: x: %08x\n", i, std::bit_cast<uint32_t>(scale));
        text += line;
    }
    EXPECT_EQ(print_calibration_cache(parse_calibration_cache(text, "cache")), text);
    std::string path = testing::TempDir() + "calibration_test.cache";
    write_file(path, text);
    CalibrationCache c = read_calibration_cache(path);
    write_calibration_cache(c, path);
    EXPECT_EQ(read_text_file(path), text);
}

struct Malformed {
    const char* text;
    const char* message;
};

TEST(CalibrationCache, RefusesWhatIsMalformed) {
    const Malformed cases[] = {
        {"", "c, line 1: expected TRT-<version>-<algorithm>, such as "
             "TRT-8601-EntropyCalibration2, got nothing"},
        {"prob: 3c010a14\n", "c, line 1: expected TRT-<version>-<algorithm>, such as "
                             "TRT-8601-EntropyCalibration2, got \"prob: 3c010a14\""},
        {"TRT-EntropyCalibration2\n",
         "c, line 1: expected TRT-<version>-<algorithm>, such as TRT-8601-EntropyCalibration2, "
         "got \"TRT-EntropyCalibration2\""},
        {"TRT-8601-\n", "c, line 1: expected TRT-<version>-<algorithm>, such as "
                        "TRT-8601-EntropyCalibration2, got \"TRT-8601-\""},
        {"TRT-1-A\nprob 3c010a14\n",
         "c, line 2: expected 'tensor name: 8 hex digits', got \"prob 3c010a14\""},
        {"TRT-1-A\n: 3c010a14\n", "c, line 2: the tensor has no name: \": 3c010a14\""},
        {"TRT-1-A\nx: 3c010a140\n",
         "c, line 2: scale of tensor \"x\": expected up to 8 hex digits, "
         "got \"3c010a140\""},
        {"TRT-1-A\nx: 3c010a1g\n", "c, line 2: scale of tensor \"x\": expected up to 8 hex digits, "
                                   "got \"3c010a1g\""},
        {"TRT-1-A\nx: -1\n",
         "c, line 2: scale of tensor \"x\": expected up to 8 hex digits, got \"-1\""},
        {"TRT-1-A\ny: 3f800000\nx: bf800000\n",
         "c, line 3: scale of tensor \"x\": expected a number, 0 or more, got -1 (bf800000)"},
        {"TRT-1-A\nx: 7fc00000\n",
         "c, line 2: scale of tensor \"x\": expected a number, 0 or more, got nan (7fc00000)"},
        {"TRT-1-A\nx: 7f800000\n",
         "c, line 2: scale of tensor \"x\": expected a number, 0 or more, got inf (7f800000)"},
        {"TRT-1-A\nx: 3f800000\nx: 40000000\n",
         "c, line 3: tensor \"x\" has scale 1 in line 2, here it has 2"},
    };
    for (const Malformed& m : cases) {
        EXPECT_EQ(message([&] { parse_calibration_cache(m.text, "c"); }), m.message) << m.text;
    }
}

TEST(CalibrationCache, ReadsWhatOtherSystemsAndHandsMakeOfIt) {
    CalibrationCache c = parse_calibration_cache(
        "TRT-8XXX-EntropyCalibration2\r\nprob: 3C010A14\r\n\r\nzero: 0\nsmall: 123  \n\n", "c");
    EXPECT_EQ(c.version, "8XXX");
    EXPECT_EQ(c.algorithm, "EntropyCalibration2");
    ASSERT_EQ(c.scales.size(), 3U);
    EXPECT_EQ(*c.find("prob"), std::bit_cast<float>(0x3c010a14U));
    EXPECT_EQ(*c.find("zero"), 0);
    EXPECT_EQ(*c.find("small"), std::bit_cast<float>(0x123U));
    EXPECT_EQ(print_calibration_cache(c), "TRT-8XXX-EntropyCalibration2\nprob: 3c010a14\n"
                                          "zero: 00000000\nsmall: 00000123\n");
}

TEST(CalibrationCache, SaysHowOneIsMade) {
    std::string path = testing::TempDir() + "no_such.cache";
    EXPECT_EQ(message([&] { read_calibration_cache(path); }),
              path +
                  ": there is no such calibration cache; make one from sample inputs: ingot "
                  "calibrate MODEL.onnx --data DIR -o " +
                  path + ", where DIR holds .npy, .png or .jpg files");
}

TEST(CalibrationCache, TakesALineThatStandsThereTwiceOnce) {
    CalibrationCache c = parse_calibration_cache("TRT-1-A\nx: 3f800000\nx: 3f800000", "c");
    EXPECT_EQ(print_calibration_cache(c), "TRT-1-A\nx: 3f800000\n");
}

TEST(CalibrationCache, WritesNothingThatCouldNotBeRead) {
    CalibrationCache c;
    c.scales = {{"a\nb", 1.0F}};
    EXPECT_EQ(message([&] { print_calibration_cache(c); }),
              "calibration cache: tensor \"a\\nb\" cannot be written: expected a name without line "
              "breaks");
    c.scales = {{"a", -1.0F}};
    EXPECT_EQ(message([&] { print_calibration_cache(c); }),
              "calibration cache: tensor \"a\" has scale -1, expected a number, 0 or more");
}

// --- statistics

Graph two_tensors() {
    Graph g;
    Value x = g.add_input("x", Type{DType::F32, {Dim(4)}});
    Value y = ops::mul(g, x, ops::constant(g, floats({2, 2, 2, 2})));
    g.set_value_name(y, "y");
    g.add_output("y", y);
    return g;
}

TEST(Calibrator, LooksAtAllNamedTensors) {
    CalibrationOptions o;
    o.method = CalibrationMethod::MinMax;
    Calibrator c(two_tensors(), cpu_backend(), o);
    EXPECT_EQ(c.tensors(), (std::vector<std::string>{"x", "y"}));
    c.add_batch(std::array{floats({1, -127, 0, 3})});
    c.add_batch(std::array{floats({1, 2, 0, 3})});
    EXPECT_EQ(c.batches(), 2);
    EXPECT_EQ(print_calibration_cache(c.finish()),
              "TRT-8601-MinMaxCalibration\nx: 3f800000\ny: 40000000\n");
}

TEST(Calibrator, GivesZerosTheScaleOne) {
    Calibrator c(two_tensors(), cpu_backend(), {});
    c.add_batch(std::array{floats({0, 0, 0, 0})});
    EXPECT_EQ(print_calibration_cache(c.finish()),
              "TRT-8601-EntropyCalibration2\nx: 3f800000\ny: 3f800000\n");
}

TEST(Calibrator, NeedsABatch) {
    Calibrator c(two_tensors(), cpu_backend(), {});
    EXPECT_EQ(message([&] { c.finish(); }), "calibration got no batch: give it at least one");
}

TEST(Calibrator, RefusesWhatIsQuantised) {
    Graph g = two_tensors();
    g.set_origin("node 7");
    Value scale = ops::constant(g, Tensor::scalar(DType::F32, 1));
    g.add_output("q", ops::quantize(g, {1, 0, DType::I8, true}, g.inputs()[0], scale));
    EXPECT_EQ(message([&] { Calibrator(g, cpu_backend(), {}); }),
              "node 'node 7' quantises or dequantises: the model has its scales already and needs "
              "no calibration");
}

} // namespace
} // namespace ingot
