// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

struct Settings {
    int64_t most = 100;
    double iou = 0.5;
    double score = 0;
    bool center = false;
};

std::vector<double> nms(const Tensor& boxes, const Tensor& scores, const Settings& s) {
    Tensor y = run1(nms_def, Nms{s.center, Dim::symbol("?0")},
                    {boxes, scores, Tensor::scalar_i64(DType::I64, s.most),
                     Tensor::scalar(DType::F32, s.iou), Tensor::scalar(DType::F32, s.score)});
    EXPECT_EQ(y.shape()[1], 3);
    EXPECT_EQ(y.shape()[0] * 3, y.count());
    return values(y);
}

using Rows = std::vector<double>;

// The boxes of the ONNX examples of this operator.
const Tensor boxes = f32({1, 6, 4}, {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                     0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,  1, 101});
const Tensor scores = f32({1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3});

TEST(Nms, SuppressesByOverlap) {
    EXPECT_EQ(nms(boxes, scores, {3, 0.5, 0}), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
    EXPECT_EQ(nms(boxes, scores, {2, 0.5, 0}), (Rows{0, 0, 3, 0, 0, 0}));
    EXPECT_EQ(nms(boxes, scores, {3, 0.5, 0.4}), (Rows{0, 0, 3, 0, 0, 0}));
    EXPECT_EQ(nms(boxes, scores, {0, 0.5, 0}), Rows{});
    EXPECT_EQ(nms(boxes, scores, {-1, 0.5, 0}), Rows{});
    EXPECT_EQ(nms(boxes, scores, {9, 1.0, 0}).size(), 18U);
}

TEST(Nms, CornersInAnyOrder) {
    Tensor flipped = f32({1, 6, 4}, {1, 1,  0, 0,  0, 0.1,  1, 1.1,  0, 0.9, 1, -0.1,
                                     0, 10, 1, 11, 1, 10.1, 0, 11.1, 1, 101, 0, 100});
    EXPECT_EQ(nms(flipped, scores, {3, 0.5, 0}), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(Nms, CenterPointBoxes) {
    Tensor centers = f32({1, 6, 4}, {0.5, 0.5,  1, 1, 0.5, 0.6,  1, 1, 0.5, 0.4,   1, 1,
                                     0.5, 10.5, 1, 1, 0.5, 10.6, 1, 1, 0.5, 100.5, 1, 1});
    EXPECT_EQ(nms(centers, scores, {3, 0.5, 0, true}), (Rows{0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(Nms, EqualScoresKeepTheFirst) {
    std::vector<double> same;
    for (int i = 0; i < 10; ++i) {
        same.insert(same.end(), {0, 0, 1, 1});
    }
    EXPECT_EQ(nms(f32({1, 10, 4}, same), f32({1, 1, 10}, std::vector<double>(10, 0.9)), {}),
              (Rows{0, 0, 0}));
}

TEST(Nms, ThresholdsAreStrict) {
    // Overlap 1/3 exactly: two unit squares half a unit apart.
    Tensor two = f32({1, 2, 4}, {0, 0, 1, 1, 0, 0.5, 1, 1.5});
    Tensor s = f32({1, 1, 2}, {0.5, 0.25});
    EXPECT_EQ(nms(two, s, {9, static_cast<float>(1.0F / 3), 0}).size(), 6U);
    EXPECT_EQ(nms(two, s, {9, 0.333, 0}).size(), 3U);
    EXPECT_EQ(nms(two, s, {9, 1, 0.25}).size(), 3U);
    EXPECT_EQ(nms(two, s, {9, 0, 0}).size(), 3U);
}

TEST(Nms, BatchesAndClasses) {
    std::vector<double> twice = values(boxes);
    std::vector<double> once = twice;
    twice.insert(twice.end(), once.begin(), once.end());
    std::vector<double> s;
    for (int i = 0; i < 4; ++i) {
        std::vector<double> row = values(scores);
        if (i == 2) {
            std::reverse(row.begin(), row.end());
        }
        s.insert(s.end(), row.begin(), row.end());
    }
    EXPECT_EQ(nms(f32({2, 6, 4}, twice), f32({2, 2, 6}, s), {2, 0.5, 0}),
              (Rows{0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0, 1, 0, 2, 1, 0, 5, 1, 1, 3, 1, 1, 0}));
}

TEST(Nms, NanScoresAndFlatBoxesAndNone) {
    Tensor two = f32({1, 2, 4}, {0, 0, 0, 1, 0, 0, 0, 1});
    EXPECT_EQ(nms(two, f32({1, 1, 2}, {NAN, 0.5}), {}), (Rows{0, 0, 1}));
    EXPECT_EQ(nms(two, f32({1, 1, 2}, {1, 0.5}), {9, 0, 0}).size(), 6U);
    EXPECT_EQ(nms(f32({1, 0, 4}, {}), f32({1, 2, 0}, {}), {}), Rows{});
    EXPECT_EQ(nms(two, f32({1, 0, 2}, {}), {}), Rows{});
}

// The definition, without sorting: always the best box that is left.
Rows brute(const std::vector<double>& b, const std::vector<double>& s, double iou) {
    std::vector<bool> gone(s.size(), false);
    Rows out;
    auto area = [&](size_t i) { return (b[4 * i + 2] - b[4 * i]) * (b[4 * i + 3] - b[4 * i + 1]); };
    for (;;) {
        size_t best = s.size();
        for (size_t i = 0; i < s.size(); ++i) {
            best = !gone[i] && s[i] > 0 && (best == s.size() || s[i] > s[best]) ? i : best;
        }
        if (best == s.size()) {
            return out;
        }
        out.insert(out.end(), {0, 0, static_cast<double>(best)});
        for (size_t i = 0; i < s.size(); ++i) {
            double h = std::min(b[4 * i + 2], b[4 * best + 2]) - std::max(b[4 * i], b[4 * best]);
            double w =
                std::min(b[4 * i + 3], b[4 * best + 3]) - std::max(b[4 * i + 1], b[4 * best + 1]);
            double both = std::max(h, 0.0) * std::max(w, 0.0);
            gone[i] = gone[i] || i == best || both > iou * (area(i) + area(best) - both);
        }
    }
}

TEST(Nms, ManyRandomBoxes) {
    Numbers numbers(7);
    std::vector<double> b;
    std::vector<double> s;
    for (int i = 0; i < 400; ++i) {
        auto y = static_cast<double>(numbers.below(64));
        auto x = static_cast<double>(numbers.below(64));
        b.insert(b.end(), {y, x, y + 1 + static_cast<double>(numbers.below(16)),
                           x + 1 + static_cast<double>(numbers.below(16))});
        s.push_back(static_cast<double>(numbers.below(100)) / 128);
    }
    Rows want = brute(b, s, 0.4375);
    EXPECT_GT(want.size(), 100U);
    EXPECT_EQ(nms(f32({1, 400, 4}, b), f32({1, 1, 400}, s), {1000, 0.4375, 0}), want);
}

TEST(Nms, Infer) {
    Nms a{false, Dim::symbol("?3")};
    std::vector<std::string> good = {"f32[B,S,4]", "f32[B,C,S]", "i64[]", "f32[]", "f32[]"};
    auto with = [&](size_t i, const char* type) {
        auto types = good;
        types[i] = type;
        return infer_error(nms_def, a, types);
    };
    EXPECT_EQ(infer(nms_def, a, good), "i64[?3,3]");
    EXPECT_EQ(with(0, "f32[B,S,5]"),
              "invalid model: nms: the boxes are f32[B,S,5], expected floats of shape "
              "[batches,boxes,4]");
    EXPECT_EQ(with(1, "f16[B,C,S]"),
              "invalid model: nms: the scores are f16[B,C,S], expected f32 of "
              "shape [B,classes,S]");
    EXPECT_EQ(with(2, "i32[]"),
              "invalid model: nms: the largest number of results is i32[], expected i64[]");
    EXPECT_EQ(with(3, "f32[1]"), "invalid model: nms: the iou threshold is f32[1], expected f32[]");
    EXPECT_EQ(with(4, "i64[]"), "invalid model: nms: the score threshold is i64[], expected f32[]");
}

} // namespace
} // namespace ingot::test
