// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {
namespace {

TEST(Sort, StableBothWays) {
    Tensor x = f32({2, 4}, {3, 1, 3, 2, -1, -1, 0, -2});
    auto up = run_op(sort_def, Sort{1, false}, {x});
    EXPECT_EQ(values(up[0]), (std::vector<double>{1, 2, 3, 3, -2, -1, -1, 0}));
    EXPECT_EQ(values(up[1]), (std::vector<double>{1, 3, 0, 2, 3, 0, 1, 2}));
    auto down = run_op(sort_def, Sort{1, true}, {x});
    EXPECT_EQ(values(down[0]), (std::vector<double>{3, 3, 2, 1, 0, -1, -1, -2}));
    EXPECT_EQ(values(down[1]), (std::vector<double>{0, 2, 3, 1, 2, 0, 1, 3}));
}

TEST(Sort, EveryDtypeAlongTheMiddle) {
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {2, 9, 3}, 41);
        for (bool descending : {false, true}) {
            auto y = run_op(sort_def, Sort{1, descending}, {x});
            ASSERT_EQ(y[1].dtype(), DType::I64);
            for (int64_t o = 0; o < 2; ++o) {
                for (int64_t i = 0; i < 3; ++i) {
                    std::vector<std::pair<double, int64_t>> want;
                    for (int64_t k = 0; k < 9; ++k) {
                        double v = x.get_f64((o * 9 + k) * 3 + i);
                        want.emplace_back(descending ? -v : v, k);
                    }
                    std::sort(want.begin(), want.end());
                    for (int64_t k = 0; k < 9; ++k) {
                        int64_t at = (o * 9 + k) * 3 + i;
                        auto [key, index] = want[static_cast<size_t>(k)];
                        ASSERT_EQ(y[1].get_i64(at), index) << name(t);
                        ASSERT_EQ(y[0].get_f64(at), descending ? -key : key) << name(t);
                    }
                }
            }
        }
    }
}

TEST(Sort, NanIsTheLargest) {
    Tensor x = f32({5}, {NAN, 1, INFINITY, NAN, -1});
    EXPECT_EQ(values(run_op(sort_def, Sort{0, false}, {x})[1]),
              (std::vector<double>{4, 1, 2, 0, 3}));
    EXPECT_EQ(values(run_op(sort_def, Sort{0, true}, {x})[1]),
              (std::vector<double>{0, 3, 2, 1, 4}));
}

TEST(Sort, Unsigned64AndSignedZeros) {
    Tensor x = Tensor::of<int64_t>(DType::U64, {3}, std::vector<int64_t>{-1, 0, 5});
    EXPECT_EQ(values(run_op(sort_def, Sort{0, false}, {x})[1]), (std::vector<double>{1, 2, 0}));
    EXPECT_EQ(values(run_op(sort_def, Sort{0, false}, {f32({2}, {0.0, -0.0})})[1]),
              (std::vector<double>{0, 1}));
}

TEST(Sort, EmptyAndErrors) {
    auto y = run_op(sort_def, Sort{1, false}, {f32({2, 0}, {})});
    EXPECT_EQ(y[0].shape(), (Shape{2, 0}));
    EXPECT_EQ(y[1].shape(), (Shape{2, 0}));
    EXPECT_EQ(infer(sort_def, Sort{0, true}, {"f16[N,2]"}), "f16[N,2], i64[N,2]");
    EXPECT_EQ(infer_error(sort_def, Sort{2, true}, {"f16[N,2]"}),
              "invalid model: sort: axis 2 is outside f16[N,2], expected 0 <= axis < 2");
}

} // namespace
} // namespace ingot::test
