// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"
#include "ops/eval_util.h"

#include <cmath>

namespace ingot::test {
namespace {

Tensor dot(const Dot& d, const Tensor& a, const Tensor& b) {
    return run1(dot_def, d, {a, b});
}

Dot matrix_product(DType t) {
    return Dot{{}, {}, {1}, {0}, t};
}

std::vector<size_t> free_axes(size_t rank, const std::vector<int64_t>& a,
                              const std::vector<int64_t>& b) {
    std::vector<size_t> out;
    for (size_t i = 0; i < rank; ++i) {
        auto is = [&](int64_t axis) { return axis == static_cast<int64_t>(i); };
        if (std::none_of(a.begin(), a.end(), is) && std::none_of(b.begin(), b.end(), is)) {
            out.push_back(i);
        }
    }
    return out;
}

// Every pair of elements of a and b whose batch and contracted coordinates agree, added up by
// result coordinates in integers: exact for operands that are multiples of 1/4.
std::vector<double> brute(const Dot& d, const Tensor& a, const Tensor& b) {
    std::map<Shape, double> sums;
    for (int64_t i = 0; i < a.count(); ++i) {
        Shape at = eval_util::coordinates(i, a.shape());
        for (int64_t j = 0; j < b.count(); ++j) {
            Shape bt = eval_util::coordinates(j, b.shape());
            Shape to;
            bool meet = true;
            for (size_t k = 0; k < d.a_batch.size(); ++k) {
                to.push_back(at[static_cast<size_t>(d.a_batch[k])]);
                meet = meet && to.back() == bt[static_cast<size_t>(d.b_batch[k])];
            }
            for (size_t k = 0; k < d.a_contract.size(); ++k) {
                meet = meet && at[static_cast<size_t>(d.a_contract[k])] ==
                                   bt[static_cast<size_t>(d.b_contract[k])];
            }
            if (!meet) {
                continue;
            }
            for (size_t f : free_axes(at.size(), d.a_batch, d.a_contract)) {
                to.push_back(at[f]);
            }
            for (size_t f : free_axes(bt.size(), d.b_batch, d.b_contract)) {
                to.push_back(bt[f]);
            }
            sums[to] += a.get_f64(i) * b.get_f64(j);
        }
    }
    std::vector<double> out;
    for (const auto& s : sums) {
        out.push_back(tensor(d.dtype, {}, {s.second}).get_f64(0));
    }
    return out;
}

TEST(Dot, ByHand) {
    Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    Tensor b = f32({3, 2}, {1, 0, -1, 2, 0, 3});
    EXPECT_EQ(values(dot(matrix_product(DType::F32), a, b)), (std::vector<double>{-1, 13, -1, 28}));
    Tensor inner = dot(Dot{{}, {}, {0, 1}, {1, 0}, DType::F32}, a, b);
    EXPECT_EQ(inner.shape(), Shape{});
    EXPECT_EQ(values(inner), (std::vector<double>{1 - 2 + 0 + 0 + 10 + 18}));
    Tensor outer = dot(Dot{{}, {}, {}, {}, DType::F32}, f32({2}, {2, 3}), f32({2}, {5, 7}));
    EXPECT_EQ(values(outer), (std::vector<double>{10, 14, 15, 21}));
}

TEST(Dot, EveryDtypeInManyLayouts) {
    struct Layout {
        Shape a, b;
        Dot d;
    };
    std::vector<Layout> layouts = {
        {{5, 7}, {7, 9}, Dot{{}, {}, {1}, {0}}},
        {{7, 5}, {9, 7}, Dot{{}, {}, {0}, {1}}},
        {{2, 3, 4, 5}, {2, 3, 5, 17}, Dot{{0, 1}, {0, 1}, {3}, {2}}},
        {{4, 2, 3, 5}, {5, 3, 2, 6}, Dot{{1, 2}, {2, 1}, {3}, {0}}},
        {{2, 3, 4}, {4, 2, 5, 3}, Dot{{0}, {1}, {2, 1}, {0, 3}}},
        {{70, 3}, {3, 2}, Dot{{}, {}, {1}, {0}}},
        {{3, 40, 2}, {3, 2}, Dot{{0}, {0}, {2}, {1}}},
        {{6}, {6}, Dot{{}, {}, {0}, {0}}},
        {{4}, {4, 3}, Dot{{0}, {0}, {}, {}}},
    };
    for (DType t : all_dtypes) {
        if (t == DType::Bool) {
            continue;
        }
        uint64_t seed = 1;
        for (Layout& l : layouts) {
            l.d.dtype = is_float(t) ? (t == DType::F64 ? t : DType::F32)
                                    : (bit_width(t) <= 8 ? DType::I32 : t);
            Tensor a = random_tensor(t, l.a, seed++);
            Tensor b = random_tensor(t, l.b, seed++);
            ASSERT_EQ(values(dot(l.d, a, b)), brute(l.d, a, b)) << name(t) << " " << str(l.a);
        }
    }
}

TEST(Dot, BlocksAndTails) {
    for (auto [m, k, n] : {std::tuple(1, 300, 1), std::tuple(3, 129, 17), std::tuple(130, 257, 37),
                           std::tuple(67, 128, 8), std::tuple(2, 1, 1030)}) {
        for (DType t : {DType::F32, DType::F64, DType::I8, DType::I32}) {
            Dot d = matrix_product(t == DType::I8 ? DType::I32 : t);
            Tensor a = random_tensor(t, {m, k}, 3);
            Tensor b = random_tensor(t, {k, n}, 4);
            Tensor y = dot(d, a, b);
            for (int64_t i = 0; i < m; ++i) {
                for (int64_t j = 0; j < n; ++j) {
                    double sum = 0;
                    for (int64_t x = 0; x < k; ++x) {
                        sum += a.get_f64(i * k + x) * b.get_f64(x * n + j);
                    }
                    ASSERT_EQ(y.get_f64(i * n + j), sum) << name(t) << " " << i << " " << j;
                }
            }
        }
    }
}

TEST(Dot, MixedSmallIntegersAndWrapping) {
    Tensor a = tensor(DType::U8, {1, 2}, {255, 255});
    Tensor b = tensor(DType::I8, {2, 1}, {-128, 127});
    EXPECT_EQ(values(dot(matrix_product(DType::I32), a, b)), (std::vector<double>{-255}));
    Tensor c = tensor(DType::U4, {2, 1}, {15, 1});
    EXPECT_EQ(values(dot(matrix_product(DType::I32), a, c)), (std::vector<double>{4080}));
    EXPECT_EQ(values(dot(matrix_product(DType::I8), a, c)), (std::vector<double>{-16}));
    Tensor big = Tensor::of<int64_t>(DType::I64, {1, 1}, std::vector<int64_t>{INT64_MAX});
    Tensor two = i64({1, 1}, {2});
    EXPECT_EQ(dot(matrix_product(DType::I64), big, two).get_i64(0), -2);
    Tensor small = tensor(DType::I32, {1, 1}, {65536});
    EXPECT_EQ(dot(matrix_product(DType::I64), small, small).get_i64(0), int64_t{1} << 32);
    EXPECT_EQ(dot(matrix_product(DType::I32), small, small).get_i64(0), 0);
}

TEST(Dot, AccumulatesWiderThanItStores) {
    std::vector<double> ones(4096, 1);
    Tensor a = tensor(DType::F16, {1, 4096}, ones);
    Tensor b = tensor(DType::F16, {4096, 1}, ones);
    EXPECT_EQ(dot(matrix_product(DType::F16), a, b).get_f64(0), 4096);
    EXPECT_EQ(dot(matrix_product(DType::F32), tensor(DType::F8E4M3, {1, 4096}, ones),
                  tensor(DType::F8E4M3, {4096, 1}, ones))
                  .get_f64(0),
              4096);
    int64_t n = 1 << 20;
    std::vector<double> tenths(static_cast<size_t>(n), 0.1);
    double got =
        dot(matrix_product(DType::F32), f32({1, n}, tenths), f32({n, 1}, tenths)).get_f64(0);
    EXPECT_NEAR(got / (0.01 * static_cast<double>(n)), 1, 1e-6);
}

TEST(Dot, NanAndInfinityPropagate) {
    Tensor y =
        dot(matrix_product(DType::F32), f32({2, 2}, {NAN, 0, 1, INFINITY}), f32({2, 1}, {0, 1}));
    EXPECT_TRUE(std::isnan(y.get_f64(0)));
    EXPECT_EQ(y.get_f64(1), INFINITY);
    EXPECT_TRUE(std::isnan(
        dot(matrix_product(DType::F32), f32({1, 1}, {INFINITY}), f32({1, 1}, {0})).get_f64(0)));
}

TEST(Dot, Empty) {
    Tensor y = dot(matrix_product(DType::F32), f32({2, 0}, {}), f32({0, 3}, {}));
    EXPECT_EQ(values(y), (std::vector<double>{0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(
        dot(matrix_product(DType::F32), f32({0, 2}, {}), f32({2, 3}, {1, 2, 3, 4, 5, 6})).shape(),
        (Shape{0, 3}));
    EXPECT_EQ(
        dot(matrix_product(DType::F32), f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2, 0}, {})).shape(),
        (Shape{3, 0}));
    Dot batched{{0}, {0}, {2}, {1}, DType::F32};
    EXPECT_EQ(dot(batched, f32({0, 2, 1}, {}), f32({0, 1, 2}, {})).shape(), (Shape{0, 2, 2}));
}

TEST(Dot, Infer) {
    Dot batched{{0}, {1}, {2}, {0}, DType::F16};
    EXPECT_EQ(infer(dot_def, batched, {"f8e4m3[N,3,K]", "f8e4m3[K,4,M]"}), "f16[4,3,M]");
    Dot plain = matrix_product(DType::F32);
    EXPECT_EQ(
        infer_error(dot_def, plain, {"f32[2,3]", "f32[4,5]"}),
        "invalid model: dot: contracted axis 1 of f32[2,3] has size 3, but axis 0 of f32[4,5] "
        "has size 4");
    EXPECT_EQ(infer_error(dot_def, plain, {"f32[2,3]", "f16[3,5]"}),
              "invalid model: dot: the operands are f32 and f16, expected one number type or two "
              "integer types of up to 8 bits");
    EXPECT_EQ(infer_error(dot_def, plain, {"i8[2,3]", "u8[3,5]"}),
              "invalid model: dot: the result of i8 operands is f32, expected an integer type");
    EXPECT_EQ(infer_error(dot_def, matrix_product(DType::I32), {"f16[2,3]", "f16[3,5]"}),
              "invalid model: dot: the result of f16 operands is i32, expected a float type");
    EXPECT_EQ(infer_error(dot_def, plain, {"bool[2,3]", "bool[3,5]"}),
              "invalid model: dot: the operands are bool and bool, expected one number type or two "
              "integer types of up to 8 bits");
    EXPECT_EQ(
        infer_error(dot_def, Dot{{0}, {0}, {0}, {1}, DType::F32}, {"f32[2,3]", "f32[2,2]"}),
        "invalid model: dot: operand a: axis 0 is named twice in batch [0] and contraction [0]");
    EXPECT_EQ(infer_error(dot_def, Dot{{}, {}, {1}, {2}, DType::F32}, {"f32[2,3]", "f32[2,2]"}),
              "invalid model: dot: operand b: axis 2 is outside f32[2,2], expected 0 <= axis < 2");
    EXPECT_EQ(infer_error(dot_def, Dot{{0}, {}, {1}, {0}, DType::F32}, {"f32[2,3]", "f32[3,2]"}),
              "invalid model: dot: got 1 batch axes of a and 0 of b, expected as many");
}

TEST(Dot, SizesThatOnlyTheRunKnows) {
    EXPECT_EQ(error_of([] {
                  run_dynamic(dot_def, matrix_product(DType::F32), {"f32[2,K]", "f32[L,2]"},
                              {f32({2, 1}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})});
              }),
              "invalid argument: dot: contracted axis 1 of shape [2,1] has size 1, but axis 0 of "
              "shape [2,2] has size 2");
}

} // namespace
} // namespace ingot::test
