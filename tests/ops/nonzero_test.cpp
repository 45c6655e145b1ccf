// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

Tensor nonzero(const Tensor& x) {
    return run1(nonzero_def, NonZero{Dim::symbol("?0")}, {x});
}

TEST(NonZero, RowMajorCoordinates) {
    Tensor y = nonzero(f32({2, 3}, {0, 1, 0, -0.0, 2, NAN}));
    EXPECT_EQ(y.shape(), (Shape{2, 3}));
    EXPECT_EQ(values(y), (std::vector<double>{0, 1, 1, 1, 1, 2}));
}

TEST(NonZero, EveryDtype) {
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {31, 7, 11}, 51);
        std::vector<double> want[3];
        for (int64_t i = 0; i < x.count(); ++i) {
            if (x.get_f64(i) != 0) {
                want[0].push_back(static_cast<double>(i / 77));
                want[1].push_back(static_cast<double>(i / 11 % 7));
                want[2].push_back(static_cast<double>(i % 11));
            }
        }
        std::vector<double> all;
        for (const auto& w : want) {
            all.insert(all.end(), w.begin(), w.end());
        }
        ASSERT_EQ(values(nonzero(x)), all) << name(t);
    }
}

TEST(NonZero, NothingAndScalars) {
    EXPECT_EQ(nonzero(f32({2, 2}, {0, 0, 0, 0})).shape(), (Shape{2, 0}));
    EXPECT_EQ(nonzero(f32({0, 2}, {})).shape(), (Shape{2, 0}));
    EXPECT_EQ(nonzero(f32({}, {3})).shape(), (Shape{0, 1}));
    EXPECT_EQ(nonzero(f32({}, {0})).shape(), (Shape{0, 0}));
}

TEST(NonZero, TheCountIsBoundForWhatFollows) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    Dim n = g.fresh_symbol();
    Value at = g.add1(nonzero_def, NonZero{n}, {x});
    g.add_output("n", ops::dim_scalar(g, n * 2));
    g.add_output("at", at);
    Tensor in = f32({4}, {1, 0, 1, 1});
    EXPECT_EQ(evaluate(g, std::vector<Tensor>{in})[0].get_i64(0), 6);
}

TEST(NonZero, Infer) {
    EXPECT_EQ(infer(nonzero_def, NonZero{Dim::symbol("?7")}, {"bool[N,3]"}), "i64[2,?7]");
    EXPECT_EQ(infer_error(nonzero_def, NonZero{}, {}),
              "invalid model: nonzero: got 0 inputs, expected 1");
}

} // namespace
} // namespace ingot::test
