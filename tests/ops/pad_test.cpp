// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"
#include "ops/eval_util.h"

namespace ingot::test {
namespace {

Tensor pad(const Tensor& x, Dims low, Dims high, const std::string& mode, double value = 0) {
    return run1(pad_def, Pad{std::move(low), std::move(high), mode},
                {x, Tensor::scalar(x.dtype(), value)});
}

TEST(Pad, Constant) {
    Tensor x = f32({2, 2}, {1, 2, 3, 4});
    Tensor y = pad(x, {1, 0}, {0, 2}, "constant", 9);
    EXPECT_EQ(y.shape(), (Shape{3, 4}));
    EXPECT_EQ(values(y), (std::vector<double>{9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}));
}

TEST(Pad, ModesInOneDimension) {
    Tensor x = f32({3}, {1, 2, 3});
    EXPECT_EQ(values(pad(x, {2}, {2}, "reflect")), (std::vector<double>{3, 2, 1, 2, 3, 2, 1}));
    EXPECT_EQ(values(pad(x, {2}, {2}, "edge")), (std::vector<double>{1, 1, 1, 2, 3, 3, 3}));
    EXPECT_EQ(values(pad(x, {2}, {2}, "wrap")), (std::vector<double>{2, 3, 1, 2, 3, 1, 2}));
}

TEST(Pad, FurtherThanTheSizeGoesOnPeriodically) {
    Tensor x = f32({3}, {1, 2, 3});
    EXPECT_EQ(values(pad(x, {5}, {6}, "reflect")),
              (std::vector<double>{2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1}));
    EXPECT_EQ(values(pad(x, {4}, {4}, "wrap")),
              (std::vector<double>{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1}));
    EXPECT_EQ(values(pad(f32({1}, {7}), {2}, {1}, "reflect")), (std::vector<double>{7, 7, 7, 7}));
}

TEST(Pad, EveryModeAndDtypeInThreeDimensions) {
    Shape low = {1, 0, 2};
    Shape high = {0, 3, 1};
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {2, 3, 3}, 5);
        for (std::string mode : {"constant", "reflect", "edge", "wrap"}) {
            Tensor y = pad(x, to_dims(low), to_dims(high), mode, 1);
            ASSERT_EQ(y.shape(), (Shape{3, 6, 6}));
            for (int64_t i = 0; i < y.count(); ++i) {
                Shape at = eval_util::coordinates(i, y.shape());
                int64_t source = 0;
                bool inside = true;
                for (size_t d = 0; d < 3; ++d) {
                    int64_t n = x.shape()[d];
                    int64_t p = at[d] - low[d];
                    inside = inside && p >= 0 && p < n;
                    while (p < 0 || p >= n) {
                        p = mode == "reflect" ? (p < 0 ? -p : 2 * (n - 1) - p)
                            : mode == "wrap"  ? (p < 0 ? p + n : p - n)
                                              : std::clamp<int64_t>(p, 0, n - 1);
                    }
                    source = source * n + p;
                }
                double want = mode == "constant" && !inside ? 1 : x.get_f64(source);
                ASSERT_EQ(y.get_f64(i), want) << name(t) << " " << mode << " element " << i;
            }
        }
    }
}

TEST(Pad, EmptyAndScalar) {
    EXPECT_EQ(values(pad(f32({0, 2}, {}), {1, 0}, {0, 0}, "constant", 3)),
              (std::vector<double>{3, 3}));
    EXPECT_EQ(pad(f32({0}, {}), {0}, {0}, "edge").shape(), (Shape{0}));
    EXPECT_EQ(values(pad(f32({}, {5}), {}, {}, "wrap")), (std::vector<double>{5}));
    EXPECT_EQ(values(pad(i64({2, 0}, {}), {0, 1}, {0, 1}, "constant", 4)),
              (std::vector<double>{4, 4, 4, 4}));
}

TEST(Pad, Infer) {
    Dim n = Dim::symbol("N");
    EXPECT_EQ(infer(pad_def, Pad{{n, 1}, {0, 2}, "edge"}, {"f16[N,3]", "f16[]"}), "f16[2*N,6]");
    Pad one{{1}, {1}, "constant"};
    EXPECT_EQ(infer_error(pad_def, one, {"f32[2,2]", "f32[]"}),
              "invalid model: pad: got 1 low and 1 high sizes, expected 2 of each for f32[2,2]");
    EXPECT_EQ(infer_error(pad_def, one, {"f32[2]", "f64[]"}),
              "invalid model: pad: the value is f64[], expected f32[]");
    EXPECT_EQ(infer_error(pad_def, one, {"f32[2]"}),
              "invalid model: pad: got 1 inputs, expected 2");
    EXPECT_EQ(infer_error(pad_def, Pad{{1}, {1}, "mirror"}, {"f32[2]", "f32[]"}),
              "invalid model: pad: mode is \"mirror\", expected constant, reflect, edge or wrap");
    EXPECT_EQ(infer_error(pad_def, Pad{{0}, {-1}, "edge"}, {"f32[2]", "f32[]"}),
              "invalid model: pad: axis 0 is padded by -1, expected at least 0 (slice first)");
}

TEST(Pad, RunTimeErrors) {
    EXPECT_EQ(error_of([] { pad(f32({0}, {}), {1}, {0}, "reflect"); }),
              "invalid argument: pad: axis 0 of size 0 has no elements for mode reflect");
    Pad p{{Dim::symbol("~p")}, {0}, "constant"};
    EXPECT_EQ(
        error_of([&] {
            run_op(pad_def, p, {f32({2}, {1, 2}), Tensor::scalar(DType::F32, 0)}, {{"~p", -1}});
        }),
        "invalid argument: pad: axis 0 is padded by -1 and 0, expected at least 0");
}

} // namespace
} // namespace ingot::test
