// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

std::vector<double> scan(const Scan& s, const Tensor& x) {
    return values(run1(scan_def, s, {x}));
}

TEST(Scan, Sums) {
    Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(scan({"sum", 1}, x), (std::vector<double>{1, 3, 6, 4, 9, 15}));
    EXPECT_EQ(scan({"sum", 1, true}, x), (std::vector<double>{0, 1, 3, 0, 4, 9}));
    EXPECT_EQ(scan({"sum", 1, false, true}, x), (std::vector<double>{6, 5, 3, 15, 11, 6}));
    EXPECT_EQ(scan({"sum", 1, true, true}, x), (std::vector<double>{5, 3, 0, 11, 6, 0}));
    EXPECT_EQ(scan({"sum", 0}, x), (std::vector<double>{1, 2, 3, 5, 7, 9}));
    EXPECT_EQ(scan({"prod", 1, true}, x), (std::vector<double>{1, 1, 2, 1, 4, 20}));
}

TEST(Scan, EveryDtypeAndForm) {
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {2, 5, 3}, 31);
        for (std::string fn : {"sum", "prod", "min", "max"}) {
            if (t == DType::Bool && (fn == "sum" || fn == "prod")) {
                continue;
            }
            for (bool reverse : {false, true}) {
                Tensor y = run1(scan_def, Scan{fn, 1, false, reverse}, {x});
                for (int64_t o = 0; o < 2; ++o) {
                    for (int64_t i = 0; i < 3; ++i) {
                        double total = 0;
                        for (int64_t k = 0; k < 5; ++k) {
                            int64_t at = (o * 5 + (reverse ? 4 - k : k)) * 3 + i;
                            double v = x.get_f64(at);
                            total = k == 0         ? v
                                    : fn == "sum"  ? total + v
                                    : fn == "prod" ? total * v
                                    : fn == "min"  ? std::min(total, v)
                                                   : std::max(total, v);
                            double want = tensor(t, {}, {total}).get_f64(0);
                            ASSERT_EQ(y.get_f64(at), want) << name(t) << " " << fn;
                        }
                    }
                }
            }
        }
    }
}

TEST(Scan, TheRunningValueIsNotRounded) {
    EXPECT_EQ(scan({"sum", 0}, tensor(DType::F16, {4}, {2048, 1, 1, 1})),
              (std::vector<double>{2048, 2048, 2050, 2052}));
    EXPECT_EQ(scan({"sum", 0}, tensor(DType::I8, {3}, {100, 100, 100})),
              (std::vector<double>{100, -56, 44}));
}

TEST(Scan, NanAndIdentities) {
    std::vector<double> y = scan({"max", 0}, f32({3}, {1, NAN, 5}));
    EXPECT_EQ(y[0], 1);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(scan({"max", 0, true}, tensor(DType::I8, {2}, {3, 4})),
              (std::vector<double>{-128, 3}));
    EXPECT_EQ(scan({"min", 0, true}, f32({1}, {3})), (std::vector<double>{INFINITY}));
}

TEST(Scan, EmptyAndErrors) {
    EXPECT_EQ(run1(scan_def, Scan{"sum", 0}, {f32({0, 2}, {})}).shape(), (Shape{0, 2}));
    EXPECT_EQ(run1(scan_def, Scan{"sum", 1}, {f32({0, 2}, {})}).shape(), (Shape{0, 2}));
    EXPECT_EQ(infer(scan_def, Scan{"sum", 0}, {"u16[N]"}), "u16[N]");
    EXPECT_EQ(infer_error(scan_def, Scan{"sum", 0}, {"f32[]"}),
              "invalid model: scan: axis 0 is outside f32[], expected 0 <= axis < 0");
    EXPECT_EQ(infer_error(scan_def, Scan{"or", 0}, {"bool[1]"}),
              "invalid model: scan: fn is \"or\", expected sum, prod, min or max");
    EXPECT_EQ(infer_error(scan_def, Scan{"prod", 0}, {"bool[1]"}),
              "invalid model: scan: prod of bool[1] is not defined, expected min (all), max (any) "
              "or a number type");
}

} // namespace
} // namespace ingot::test
