// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

Tensor scatter(const std::string& fn, const Tensor& x, const Tensor& at, const Tensor& updates) {
    return run1(scatter_def, Scatter{fn}, {x, at, updates});
}

TEST(Scatter, CombinesInOrder) {
    Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
    Tensor at = i64({3}, {2, 0, 2});
    Tensor u = f32({3, 2}, {10, 20, 3, -1, 7, 8});
    EXPECT_EQ(values(scatter("none", x, at, u)), (std::vector<double>{3, -1, 3, 4, 7, 8}));
    EXPECT_EQ(values(scatter("add", x, at, u)), (std::vector<double>{4, 1, 3, 4, 22, 34}));
    EXPECT_EQ(values(scatter("mul", x, at, u)), (std::vector<double>{3, -2, 3, 4, 350, 960}));
    EXPECT_EQ(values(scatter("min", x, at, u)), (std::vector<double>{1, -1, 3, 4, 5, 6}));
    EXPECT_EQ(values(scatter("max", x, at, u)), (std::vector<double>{3, 2, 3, 4, 10, 20}));
}

TEST(Scatter, EveryDtype) {
    for (DType t : all_dtypes) {
        for (std::string fn : {"none", "add", "mul", "min", "max"}) {
            if (t == DType::Bool && (fn == "add" || fn == "mul")) {
                continue;
            }
            Tensor x = random_tensor(t, {5, 3}, 1);
            Tensor u = random_tensor(t, {4, 3}, 2);
            Tensor at = tensor(DType::I32, {4}, {4, 1, 4, 0});
            Tensor want = x.clone();
            std::vector<double> exact = values(x);
            for (size_t i = 0; i < 12; ++i) {
                double& to =
                    exact[static_cast<size_t>(at.get_i64(static_cast<int64_t>(i / 3))) * 3 + i % 3];
                double v = u.get_f64(static_cast<int64_t>(i));
                to = fn == "none"  ? v
                     : fn == "add" ? to + v
                     : fn == "mul" ? to * v
                     : fn == "min" ? std::min(to, v)
                                   : std::max(to, v);
            }
            for (int64_t i = 0; i < 15; ++i) {
                want.set_f64(i, exact[static_cast<size_t>(i)]);
            }
            ASSERT_EQ(values(scatter(fn, x, at, u)), values(want)) << name(t) << " " << fn;
        }
    }
}

TEST(Scatter, NanAndUnsigned64) {
    Tensor x = f32({1}, {1});
    EXPECT_TRUE(std::isnan(scatter("max", x, i64({1}, {0}), f32({1}, {NAN})).get_f64(0)));
    EXPECT_TRUE(std::isnan(scatter("min", f32({1}, {NAN}), i64({1}, {0}), x).get_f64(0)));
    Tensor big = Tensor::of<int64_t>(DType::U64, {1}, std::vector<int64_t>{-1});
    Tensor one = Tensor::of<int64_t>(DType::U64, {1}, std::vector<int64_t>{1});
    EXPECT_EQ(scatter("max", one, i64({1}, {0}), big).get_i64(0), -1);
    EXPECT_EQ(scatter("min", big, i64({1}, {0}), one).get_i64(0), 1);
}

TEST(Scatter, Empty) {
    Tensor x = f32({2}, {1, 2});
    EXPECT_EQ(values(scatter("add", x, i64({0}, {}), f32({0}, {}))), (std::vector<double>{1, 2}));
    EXPECT_EQ(scatter("none", f32({0, 3}, {}), i64({0}, {}), f32({0, 3}, {})).shape(),
              (Shape{0, 3}));
    EXPECT_EQ(scatter("none", f32({2, 0}, {}), i64({1}, {1}), f32({1, 0}, {})).shape(),
              (Shape{2, 0}));
}

TEST(Scatter, Errors) {
    Scatter none{"none"};
    EXPECT_EQ(infer(scatter_def, none, {"f32[N,2]", "i64[M]", "f32[M,2]"}), "f32[N,2]");
    EXPECT_EQ(infer_error(scatter_def, Scatter{"sub"}, {"f32[2]", "i64[1]", "f32[1]"}),
              "invalid model: scatter: fn is \"sub\", expected none, add, mul, min or max");
    EXPECT_EQ(infer_error(scatter_def, none, {"f32[]", "i64[1]", "f32[1]"}),
              "invalid model: scatter: got f32[], expected at least rank 1");
    EXPECT_EQ(infer_error(scatter_def, none, {"f32[2]", "i64[1,1]", "f32[1]"}),
              "invalid model: scatter: the indices are i64[1,1], expected i64 or i32 of rank 1");
    EXPECT_EQ(infer_error(scatter_def, none, {"f32[2,3]", "i64[4]", "f32[4,2]"}),
              "invalid model: scatter: the updates are f32[4,2], expected f32[4,3]");
    EXPECT_EQ(infer_error(scatter_def, none, {"f32[2,3]", "i64[4]", "f16[4,3]"}),
              "invalid model: scatter: the updates are f16[4,3], expected f32[4,3]");
    EXPECT_EQ(infer_error(scatter_def, Scatter{"add"}, {"bool[2]", "i64[1]", "bool[1]"}),
              "invalid model: scatter: add of bool[2] is not defined, expected none, min (and) or "
              "max (or)");
    EXPECT_EQ(error_of([] {
                  scatter("none", f32({2}, {1, 2}), i64({2}, {0, 2}), f32({2}, {0, 0}));
              }),
              "invalid argument: scatter: index 2 at position [1] is outside axis 0 of size 2");
    EXPECT_EQ(error_of([] {
                  run_dynamic(scatter_def, Scatter{"add"}, {"f32[N,A]", "i64[M]", "f32[K,B]"},
                              {f32({2, 1}, {1, 2}), i64({1}, {0}), f32({1, 2}, {1, 2})});
              }),
              "invalid argument: scatter: the updates have shape [1,2], expected [1,1]");
}

} // namespace
} // namespace ingot::test
