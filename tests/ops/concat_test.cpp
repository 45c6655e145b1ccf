// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"
#include "ops/eval_util.h"

namespace ingot::test {
namespace {

TEST(Concat, TwoAxes) {
    Tensor a = f32({2, 2}, {1, 2, 3, 4});
    Tensor b = f32({2, 1}, {5, 6});
    EXPECT_EQ(values(run1(concat_def, Concat{1}, {a, b})), (std::vector<double>{1, 2, 5, 3, 4, 6}));
    EXPECT_EQ(values(run1(concat_def, Concat{0}, {a, f32({1, 2}, {7, 8})})),
              (std::vector<double>{1, 2, 3, 4, 7, 8}));
}

TEST(Concat, EveryDtypeAndAxis) {
    for (DType t : all_dtypes) {
        for (size_t axis = 0; axis < 3; ++axis) {
            std::vector<Tensor> in;
            for (int64_t size : {1, 0, 3, 2}) {
                Shape shape = {3, 2, 3};
                shape[axis] = size;
                in.push_back(random_tensor(t, shape, static_cast<uint64_t>(size)));
            }
            Tensor y = run1(concat_def, Concat{static_cast<int64_t>(axis)}, in);
            ASSERT_EQ(y.shape()[axis], 6);
            for (int64_t i = 0; i < y.count(); ++i) {
                Shape at = eval_util::coordinates(i, y.shape());
                size_t part = 0;
                for (; at[axis] >= in[part].shape()[axis]; ++part) {
                    at[axis] -= in[part].shape()[axis];
                }
                Shape strides = strides_of(in[part].shape());
                int64_t from = at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2];
                ASSERT_EQ(y.get_f64(i), in[part].get_f64(from)) << name(t) << " axis " << axis;
            }
        }
    }
}

TEST(Concat, OneInputAndNothing) {
    EXPECT_EQ(values(run1(concat_def, Concat{0}, {i64({2}, {4, 5})})), (std::vector<double>{4, 5}));
    EXPECT_EQ(run1(concat_def, Concat{1}, {f32({0, 2}, {}), f32({0, 3}, {})}).shape(),
              (Shape{0, 5}));
}

TEST(Concat, Infer) {
    EXPECT_EQ(infer(concat_def, Concat{1}, {"f32[N,3]", "f32[2,M]", "f32[K,1]"}), "f32[2,M+4]");
    EXPECT_EQ(infer_error(concat_def, Concat{0}, {}),
              "invalid model: concat: got no inputs, expected at least 1");
    EXPECT_EQ(infer_error(concat_def, Concat{1}, {"f32[2]"}),
              "invalid model: concat: axis 1 is outside f32[2], expected 0 <= axis < 1");
    EXPECT_EQ(infer_error(concat_def, Concat{-1}, {"f32[2]"}),
              "invalid model: concat: axis -1 is outside f32[2], expected 0 <= axis < 1");
    EXPECT_EQ(
        infer_error(concat_def, Concat{0}, {"f32[2]", "f16[2]"}),
        "invalid model: concat: input 1 is f16[2], expected dtype and rank of input 0, f32[2]");
    EXPECT_EQ(infer_error(concat_def, Concat{0}, {"f32[2,3]", "f32[2,4]"}),
              "invalid model: concat along axis 0: input 1 is f32[2,4], expected size 3 in axis 1");
}

TEST(Concat, SizesThatOnlyTheRunKnows) {
    EXPECT_EQ(error_of([] {
                  run_dynamic(concat_def, Concat{0}, {"f32[1,N]", "f32[1,M]"},
                              {f32({1, 2}, {1, 2}), f32({1, 1}, {1})});
              }),
              "invalid argument: concat along axis 0: input 1 has shape [1,1], expected [1,2]");
}

TEST(Concat, SymbolicContents) {
    Graph g;
    Dim n = Dim::symbol("N");
    Value known = ops::dims_tensor(g, {n, 2});
    Value unknown = g.add_input("u", parse_type("i64[2]"));
    Value last = ops::i64_list(g, {7});
    auto concat = [&](std::vector<Value> in) { return host_text(g.host(ops::concat(g, in, 0))); };
    EXPECT_EQ(concat({known, last}), "[3]: N 2 7");
    EXPECT_EQ(concat({known, unknown, last}), "[5]: N 2 ? ? 7");
    EXPECT_EQ(concat({unknown, last, unknown, known}), "[7]: ? ? ? ? ? N 2");
    EXPECT_EQ(concat({unknown, g.add_input("v", parse_type("i64[K]"))}), "unknown");
}

} // namespace
} // namespace ingot::test
