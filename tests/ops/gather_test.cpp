// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"
#include "ops/eval_util.h"

namespace ingot::test {
namespace {

TEST(Gather, RowsAndColumns) {
    Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(values(run1(gather_def, Gather{0}, {x, i64({3}, {1, 0, 1})})),
              (std::vector<double>{4, 5, 6, 1, 2, 3, 4, 5, 6}));
    Tensor y = run1(gather_def, Gather{1}, {x, i64({}, {2})});
    EXPECT_EQ(y.shape(), (Shape{2}));
    EXPECT_EQ(values(y), (std::vector<double>{3, 6}));
}

TEST(Gather, EveryDtypeAndIndexType) {
    for (DType t : all_dtypes) {
        for (DType index : {DType::I64, DType::I32}) {
            Tensor x = random_tensor(t, {3, 5, 3}, 9);
            Tensor at = tensor(index, {2, 2}, {4, 0, 3, 3});
            Tensor y = run1(gather_def, Gather{1}, {x, at});
            ASSERT_EQ(y.shape(), (Shape{3, 2, 2, 3}));
            for (int64_t i = 0; i < y.count(); ++i) {
                Shape c = eval_util::coordinates(i, y.shape());
                int64_t row = at.get_i64(c[1] * 2 + c[2]);
                ASSERT_EQ(y.get_f64(i), x.get_f64((c[0] * 5 + row) * 3 + c[3])) << name(t);
            }
        }
    }
}

TEST(Gather, Empty) {
    EXPECT_EQ(run1(gather_def, Gather{0}, {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({0}, {})}).shape(),
              (Shape{0, 3}));
    EXPECT_EQ(run1(gather_def, Gather{0}, {f32({2, 0}, {}), i64({1}, {1})}).shape(), (Shape{1, 0}));
    EXPECT_EQ(run1(gather_def, Gather{1}, {f32({0, 2}, {}), i64({1}, {1})}).shape(), (Shape{0, 1}));
}

TEST(Gather, Infer) {
    EXPECT_EQ(infer(gather_def, Gather{1}, {"u4[N,8,3]", "i32[2,M]"}), "u4[N,2,M,3]");
    EXPECT_EQ(infer_error(gather_def, Gather{0}, {"f32[]", "i64[]"}),
              "invalid model: gather: axis 0 is outside f32[], expected 0 <= axis < 0");
    EXPECT_EQ(infer_error(gather_def, Gather{0}, {"f32[2]", "i16[1]"}),
              "invalid model: gather: the indices are i16[1], expected i64 or i32");
    EXPECT_EQ(infer_error(gather_def, Gather{0}, {"f32[2]"}),
              "invalid model: gather: got 1 inputs, expected 2");
}

TEST(Gather, IndexErrorsNameThePosition) {
    Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(error_of([&] {
                  run1(gather_def, Gather{1}, {x, i64({2, 2}, {0, 2, 3, 1})});
              }),
              "invalid argument: gather: index 3 at position [1,0] is outside axis 1 of size 3");
    EXPECT_EQ(error_of([&] {
                  run1(gather_def, Gather{0}, {x, i64({}, {-1})});
              }),
              "invalid argument: gather: index -1 at position [] is outside axis 0 of size 2");
    EXPECT_EQ(error_of([&] {
                  run1(gather_def, Gather{1}, {f32({0, 2}, {}), i64({1}, {2})});
              }),
              "invalid argument: gather: index 2 at position [0] is outside axis 1 of size 2");
}

TEST(Gather, SymbolicContents) {
    Graph g;
    Value shape = ops::dims_tensor(g, {Dim::symbol("N"), 3, Dim::symbol("M")});
    auto gather = [&](Value at) { return host_text(g.host(ops::gather(g, shape, at, 0))); };
    EXPECT_EQ(gather(ops::i64_list(g, {2, 0})), "[2]: M N");
    EXPECT_EQ(gather(ops::scalar_i64(g, DType::I64, 1)), "[]: 3");
    EXPECT_EQ(gather(ops::i64_list(g, {3})), "unknown");
    EXPECT_EQ(gather(g.add_input("i", parse_type("i64[2]"))), "unknown");
    Value symbolic = ops::dims_tensor(g, {Dim::symbol("N"), 1});
    EXPECT_EQ(gather(symbolic), "[2]: ? 3");
}

} // namespace
} // namespace ingot::test
