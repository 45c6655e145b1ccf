// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"
#include "ops/eval_util.h"

#include <cmath>
#include <set>

namespace ingot::test {
namespace {

Tensor reduce(const std::string& fn, const Tensor& x, std::vector<int64_t> axes) {
    return run1(reduce_def, Reduce{fn, std::move(axes)}, {x});
}

// One element at a time, in a map from result coordinates.
std::vector<double> brute(const std::string& fn, const Tensor& x, const std::set<size_t>& axes,
                          DType dtype) {
    std::map<Shape, double> out;
    for (int64_t i = 0; i < x.count(); ++i) {
        Shape at = eval_util::coordinates(i, x.shape());
        Shape kept;
        for (size_t d = 0; d < at.size(); ++d) {
            if (!axes.contains(d)) {
                kept.push_back(at[d]);
            }
        }
        double v = x.get_f64(i);
        auto [found, fresh] = out.emplace(kept, v);
        if (!fresh) {
            double& r = found->second;
            r = fn == "sum"    ? r + v
                : fn == "prod" ? r * v
                : fn == "min"  ? std::min(r, v)
                               : std::max(r, v);
        }
    }
    std::vector<double> list;
    for (const auto& entry : out) {
        list.push_back(entry.second);
    }
    return values(tensor(dtype, {static_cast<int64_t>(list.size())}, list));
}

TEST(Reduce, ByHand) {
    Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(values(reduce("sum", x, {1})), (std::vector<double>{6, 15}));
    EXPECT_EQ(values(reduce("sum", x, {0})), (std::vector<double>{5, 7, 9}));
    EXPECT_EQ(values(reduce("prod", x, {0, 1})), (std::vector<double>{720}));
    EXPECT_EQ(values(reduce("min", x, {1})), (std::vector<double>{1, 4}));
    EXPECT_EQ(values(reduce("max", x, {0})), (std::vector<double>{4, 5, 6}));
    EXPECT_EQ(values(reduce("max", x, {})), values(x));
}

TEST(Reduce, EveryDtypeAndSetOfAxes) {
    for (DType t : all_dtypes) {
        Tensor x = random_tensor(t, {3, 2, 5, 2}, 11);
        for (unsigned mask = 0; mask < 16; ++mask) {
            std::vector<int64_t> axes;
            std::set<size_t> set;
            for (size_t d = 0; d < 4; ++d) {
                if ((mask >> d & 1U) != 0) {
                    axes.push_back(static_cast<int64_t>(d));
                    set.insert(d);
                }
            }
            for (std::string fn : {"sum", "prod", "min", "max"}) {
                bool logical = fn == "min" || fn == "max";
                if (t == DType::Bool && !logical) {
                    continue;
                }
                bool exact = fn != "prod" || std::popcount(mask) < 2; // fits a double
                if (exact) {
                    ASSERT_EQ(values(reduce(fn, x, axes)), brute(fn, x, set, t))
                        << name(t) << " " << fn << " " << str(axes);
                }
            }
        }
    }
}

TEST(Reduce, LongRows) {
    std::vector<double> v(5000);
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) {
        v[i] = static_cast<double>(i % 17);
        sum += v[i];
    }
    EXPECT_EQ(values(reduce("sum", f32({5000}, v), {0})), (std::vector<double>{sum}));
    EXPECT_EQ(values(reduce("sum", f32({2, 2500}, v), {0}))[2499], v[2499] + v[4999]);
    EXPECT_EQ(values(reduce("max", f32({2500, 2}, v), {0})), (std::vector<double>{16, 16}));
}

TEST(Reduce, RoundsOnceAndWraps) {
    EXPECT_EQ(reduce("sum", tensor(DType::F16, {3}, {2048, 1, 1}), {0}).get_f64(0), 2050);
    EXPECT_EQ(reduce("sum", tensor(DType::BF16, {3}, {256, 1, 1}), {0}).get_f64(0), 258);
    EXPECT_EQ(reduce("sum", tensor(DType::F16, {2}, {65504, 65504}), {0}).get_f64(0), INFINITY);
    EXPECT_EQ(reduce("sum", tensor(DType::I8, {2}, {100, 100}), {0}).get_f64(0), -56);
    EXPECT_EQ(reduce("sum", tensor(DType::U4, {2}, {9, 9}), {0}).get_f64(0), 2);
    EXPECT_EQ(reduce("prod", tensor(DType::I4, {2}, {7, 7}), {0}).get_f64(0), 1);
    Tensor max = Tensor::of<int64_t>(DType::I64, {2}, std::vector<int64_t>{INT64_MAX, 1});
    EXPECT_EQ(reduce("sum", max, {0}).get_i64(0), INT64_MIN);
    Tensor u64 = Tensor::of<int64_t>(DType::U64, {2}, std::vector<int64_t>{-1, 1});
    EXPECT_EQ(reduce("max", u64, {0}).get_i64(0), -1);
    EXPECT_EQ(reduce("min", u64, {0}).get_i64(0), 1);
}

TEST(Reduce, Nan) {
    for (DType t :
         {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
        for (std::string fn : {"sum", "prod", "min", "max"}) {
            for (double first : {1.0, -1.0}) {
                Tensor y = reduce(fn, tensor(t, {2, 2}, {first, NAN, 2, 3}), {1});
                EXPECT_TRUE(std::isnan(y.get_f64(0))) << name(t) << fn;
                EXPECT_EQ(y.get_f64(1), fn == "sum" ? 5 : fn == "prod" ? 6 : fn == "min" ? 2 : 3);
                EXPECT_TRUE(std::isnan(reduce(fn, tensor(t, {2}, {NAN, first}), {0}).get_f64(0)));
            }
        }
    }
}

TEST(Reduce, OverNoElements) {
    for (DType t : all_dtypes) {
        Tensor none = Tensor::zeros(t, {2, 0});
        auto over = [&](const char* fn) { return reduce(fn, none, {1}).get_f64(1); };
        if (t != DType::Bool) {
            EXPECT_EQ(over("sum"), 0) << name(t);
            EXPECT_EQ(over("prod"), 1) << name(t);
        }
        double low = over("max");
        double high = over("min");
        if (t == DType::F4E2M1 || t == DType::F8E4M3) { // they have no infinity
            EXPECT_EQ(high, t == DType::F4E2M1 ? 6 : 448);
            EXPECT_EQ(low, -high);
        } else if (is_float(t)) {
            EXPECT_EQ(high, INFINITY) << name(t);
            EXPECT_EQ(low, -INFINITY) << name(t);
        } else {
            int bits = t == DType::Bool ? 1 : bit_width(t);
            EXPECT_EQ(high, std::exp2(is_signed(t) ? bits - 1 : bits) - (bits < 64 ? 1 : 0));
            EXPECT_EQ(low, is_signed(t) ? -std::exp2(bits - 1) : 0) << name(t);
        }
    }
    EXPECT_EQ(reduce("sum", f32({2, 0}, {}), {0}).shape(), (Shape{0}));
    EXPECT_EQ(reduce("sum", f32({}, {3}), {}).get_f64(0), 3);
}

TEST(Reduce, Infer) {
    EXPECT_EQ(infer(reduce_def, Reduce{"max", {0, 2}}, {"i8[N,3,M]"}), "i8[3]");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"sum", {2}}, {"f32[2,3]"}),
              "invalid model: reduce: axis 2 is outside f32[2,3], expected 0 <= axis < 2");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"sum", {1, 0}}, {"f32[2,3]"}),
              "invalid model: reduce: axes are [1,0], expected ascending ones");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"sum", {1, 1}}, {"f32[2,3]"}),
              "invalid model: reduce: axes are [1,1], expected ascending ones");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"mean", {0}}, {"f32[2]"}),
              "invalid model: reduce: fn is \"mean\", expected sum, prod, min or max");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"sum", {0}}, {"bool[2]"}),
              "invalid model: reduce: sum of bool[2] is not defined, expected min (all), max (any) "
              "or a number type");
    EXPECT_EQ(infer_error(reduce_def, Reduce{"sum", {0}}, {}),
              "invalid model: reduce: got 0 inputs, expected 1");
}

TEST(Reduce, SymbolicContents) {
    Graph g;
    Value v = ops::dims_tensor(g, {Dim::symbol("N"), 3, Dim::symbol("N")});
    auto text = [&](const char* fn, Value x) {
        return host_text(g.host(ops::reduce(g, fn, x, {0})));
    };
    EXPECT_EQ(text("prod", v), "[]: 3*N*N");
    EXPECT_EQ(text("sum", v), "[]: 2*N+3");
    EXPECT_EQ(text("max", ops::i64_list(g, {4, -2, 9})), "[]: 9");
    EXPECT_EQ(text("min", ops::i64_list(g, {4, -2, 9})), "[]: -2");
    EXPECT_EQ(text("prod", ops::i64_list(g, {})), "[]: 1");
    EXPECT_EQ(text("sum", ops::i64_list(g, {})), "[]: 0");
    EXPECT_EQ(text("max", ops::i64_list(g, {})), "unknown");
    EXPECT_EQ(text("sum", ops::i64_list(g, {INT64_MAX, 1})), "unknown");
    Value i32 = ops::constant(g, tensor(DType::I32, {2}, {65536, 65536}));
    EXPECT_EQ(text("prod", i32), "unknown");
    EXPECT_EQ(text("sum", i32), "[]: 131072");
    EXPECT_EQ(text("sum", g.add_input("x", parse_type("i64[2]"))), "unknown");
}

} // namespace
} // namespace ingot::test
