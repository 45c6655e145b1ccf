// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

std::vector<double> arg(const std::string& fn, const Tensor& x, int64_t axis, bool last = false) {
    return values(run1(arg_reduce_def, ArgReduce{fn, axis, last}, {x}));
}

TEST(ArgReduce, FirstAndLastOfEquals) {
    Tensor x = f32({2, 4}, {1, 3, 3, 2, 0, -1, 5, -1});
    EXPECT_EQ(arg("max", x, 1), (std::vector<double>{1, 2}));
    EXPECT_EQ(arg("max", x, 1, true), (std::vector<double>{2, 2}));
    EXPECT_EQ(arg("min", x, 1), (std::vector<double>{0, 1}));
    EXPECT_EQ(arg("min", x, 1, true), (std::vector<double>{0, 3}));
    EXPECT_EQ(arg("max", x, 0), (std::vector<double>{0, 0, 1, 0}));
}

TEST(ArgReduce, EveryDtype) {
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {3, 7, 2}, 21);
        for (bool largest : {true, false}) {
            for (bool last : {true, false}) {
                std::vector<double> got = arg(largest ? "max" : "min", x, 1, last);
                for (int64_t o = 0; o < 3; ++o) {
                    for (int64_t i = 0; i < 2; ++i) {
                        int64_t want = 0;
                        for (int64_t k = 1; k < 7; ++k) {
                            double v = x.get_f64((o * 7 + k) * 2 + i);
                            double best = x.get_f64((o * 7 + want) * 2 + i);
                            if (largest ? v > best : v < best) {
                                want = k;
                            } else if (v == best && last) {
                                want = k;
                            }
                        }
                        ASSERT_EQ(got[static_cast<size_t>(o * 2 + i)], want) << name(t);
                    }
                }
            }
        }
    }
}

TEST(ArgReduce, NanIsTheExtreme) {
    Tensor x = f32({4}, {1, NAN, INFINITY, NAN});
    EXPECT_EQ(arg("max", x, 0), (std::vector<double>{1}));
    EXPECT_EQ(arg("min", x, 0), (std::vector<double>{1}));
    EXPECT_EQ(arg("max", x, 0, true), (std::vector<double>{3}));
    EXPECT_EQ(arg("min", f32({3}, {NAN, -INFINITY, 2}), 0, true), (std::vector<double>{0}));
}

TEST(ArgReduce, Unsigned64) {
    Tensor x = Tensor::of<int64_t>(DType::U64, {3}, std::vector<int64_t>{5, -1, 7});
    EXPECT_EQ(arg("max", x, 0), (std::vector<double>{1}));
    EXPECT_EQ(arg("min", x, 0), (std::vector<double>{0}));
}

TEST(ArgReduce, EmptyAndErrors) {
    EXPECT_EQ(run1(arg_reduce_def, ArgReduce{"max", 1}, {f32({0, 3}, {})}).shape(), (Shape{0}));
    EXPECT_EQ(infer(arg_reduce_def, ArgReduce{"max", 1}, {"bf16[N,M,2]"}), "i64[N,2]");
    EXPECT_EQ(infer_error(arg_reduce_def, ArgReduce{"sum", 0}, {"f32[2]"}),
              "invalid model: arg_reduce: fn is \"sum\", expected min or max");
    EXPECT_EQ(infer_error(arg_reduce_def, ArgReduce{"max", 1}, {"f32[2]"}),
              "invalid model: arg_reduce: axis 1 is outside f32[2], expected 0 <= axis < 1");
    EXPECT_EQ(
        infer_error(arg_reduce_def, ArgReduce{"max", 0}, {"f32[0]"}),
        "invalid model: arg_reduce: axis 0 of f32[0] has no max, expected a size of at least 1");
    EXPECT_EQ(error_of([] {
                  run_dynamic(arg_reduce_def, ArgReduce{"min", 1}, {"f32[2,N]"}, {f32({2, 0}, {})});
              }),
              "invalid argument: arg_reduce: axis 1 of shape [2,0] has no min, expected a size of "
              "at least 1");
}

} // namespace
} // namespace ingot::test
