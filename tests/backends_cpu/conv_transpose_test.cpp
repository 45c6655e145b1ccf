// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions against the evaluator, which inserts zeros and convolves.
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {

namespace {

struct Case {
    Dims x;
    Dims w; // [C, O/groups, spatial...]
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    int64_t groups;
};

const Case cases[] = {
    {{1, 16, 9, 9}, {16, 32, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{2, 5, 7, 3}, {5, 3, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, 1},
    {{1, 19, 5, 6}, {19, 23, 2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
    {{2, 24, 5, 6}, {24, 1, 2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
    {{1, 17, 11}, {17, 9, 16}, {8}, {1}, {4}, {4}, 1},
    {{1, 2, 3, 4, 5}, {2, 3, 3, 2, 3}, {2, 1, 3}, {1, 2, 1}, {1, 0, 2}, {0, 1, 1}, 1},
    // Depthwise and groups.
    {{1, 64, 8, 9}, {64, 1, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 64},
    {{1, 7, 5, 5}, {7, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 7},
    {{2, 12, 5, 7}, {12, 5, 3, 4}, {2, 3}, {1, 1}, {1, 0}, {0, 2}, 3},
    {{1, 32, 6, 6}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    // Strides larger than the kernel leave zeros; dilations share factors with strides or do not.
    {{1, 4, 5, 6}, {4, 3, 1, 2}, {3, 4}, {1, 1}, {0, 0}, {0, 0}, 1},
    {{1, 4, 9, 8}, {4, 3, 3, 3}, {2, 2}, {2, 2}, {1, 2}, {2, 1}, 1},
    {{1, 4, 9, 8}, {4, 3, 3, 3}, {4, 6}, {2, 3}, {1, 0}, {0, 1}, 1},
    {{1, 4, 9, 8}, {4, 3, 3, 4}, {2, 3}, {3, 2}, {0, 3}, {4, 0}, 1},
    // The result is longer than the kernels reach, or cut so far that inputs are not read.
    {{1, 4, 3, 3}, {4, 6, 3, 3}, {2, 2}, {1, 1}, {0, 1}, {-1, -3}, 1},
    {{1, 4, 3, 3}, {4, 6, 2, 3}, {2, 2}, {1, 1}, {-2, -1}, {-1, 1}, 1},
    {{1, 4, 6, 7}, {4, 6, 3, 3}, {2, 2}, {1, 1}, {5, 4}, {4, 5}, 1},
    // One position across.
    {{1, 16, 12, 1}, {16, 32, 4, 1}, {2, 1}, {1, 1}, {1, 0}, {1, 0}, 1},
    {{2, 6, 9, 1}, {6, 5, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2},
    // One element, and no image at all.
    {{1, 1, 1, 1}, {1, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{0, 4, 3, 3}, {4, 6, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
};

Value conv_transpose_of(Graph& g, const Case& c, DType t, bool constant) {
    std::mt19937 random(7);
    Value x = g.add_input("x", {t, c.x});
    Value w = constant ? ops::constant(g, test::random_tensor(t, eval(c.w, {}), random))
                       : g.add_input("w", {t, c.w});
    return ops::conv_transpose(g, {c.strides, c.dilations, c.low, c.high, c.groups}, x, w);
}

template <class F>
void for_each_case(F&& f) {
    int number = 0;
    for (const Case& c : cases) {
        for (bool constant : {true, false}) {
            SCOPED_TRACE(testing::Message() << "case " << number << ", weights are "
                                            << (constant ? "constant" : "an input"));
            f(c, constant);
        }
        ++number;
    }
}

TEST(ConvTranspose, OddShapes) {
    for_each_case([](const Case& c, bool constant) {
        Graph g;
        g.add_output("y", conv_transpose_of(g, c, DType::F32, constant));
        test::expect_same_as_evaluator(g);
    });
}

TEST(ConvTranspose, WithEpilogues) {
    for_each_case([](const Case& c, bool constant) {
        Graph g;
        Value y = conv_transpose_of(g, c, DType::F32, constant);
        Dims bias(c.x.size() - 1, Dim(1));
        bias[0] = g.type(y).dims[1];
        Value sum = ops::add(g, y, g.add_input("bias", {DType::F32, bias}));
        Value other = g.add_input("other", g.type(y));
        g.add_output("y", ops::add(g, ops::maximum(g, sum, 0.0), other));
        test::expect_same_as_evaluator(g);
    });
}

TEST(ConvTranspose, EpiloguesBehindManyChannels) {
    // Sums of more than 8,000 products: oneDNN adds them up in parts.
    const Case many[] = {
        {{1, 576, 4, 5}, {576, 24, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
        {{1, 400, 3, 2, 3}, {400, 16, 3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
        {{1, 1024, 9}, {1024, 16, 16}, {8}, {1}, {4}, {4}, 1},
    };
    for (const Case& c : many) {
        for (bool bias : {true, false}) {
            Graph g;
            Value y = conv_transpose_of(g, c, DType::F32, true);
            Dims channels(c.x.size() - 1, Dim(1));
            channels[0] = g.type(y).dims[1];
            y = bias ? ops::add(g, y, g.add_input("bias", {DType::F32, channels}))
                     : ops::maximum(g, y, 0.0);
            g.add_output("y", y);
            test::expect_same_as_evaluator(g);
        }
    }
}

TEST(ConvTranspose, OtherTypes) {
    for (DType t : {DType::F64, DType::F16, DType::I32, DType::I64, DType::I8}) {
        SCOPED_TRACE(name(t));
        for_each_case([t](const Case& c, bool constant) {
            Graph g;
            g.add_output("y", conv_transpose_of(g, c, t, constant));
            test::CompareOptions options;
            options.tolerance = t == DType::F16 ? 2e-3 : 1e-5;
            test::expect_same_as_evaluator(g, Symbols{}, 1, options);
        });
    }
}

TEST(ConvTranspose, InputsOfAnyLayout) {
    for (int64_t results : {3, 20}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {2, 7, 5, 6}});
        std::mt19937 random(7);
        Value w = ops::constant(g, test::random_tensor(DType::F32, {6, results, 4, 3}, random));
        Value last = ops::reverse(g, ops::permute(g, x, {0, 3, 1, 2}), 2);
        g.add_output("y", ops::conv_transpose(g, {{2, 2}, {1, 1}, {1, 1}, {1, 0}, 1}, last, w));
        test::expect_same_as_evaluator(g);
    }
}

TEST(ConvTranspose, SizesKnownAtRunTime) {
    Graph g;
    Dim h = Dim::symbol("h");
    Dim w = Dim::symbol("w");
    Value x = g.add_input("x", {DType::F32, {2, 6, h, w}});
    std::mt19937 random(7);
    Value k = ops::constant(g, test::random_tensor(DType::F32, {6, 5, 4, 3}, random));
    g.add_output("y", ops::conv_transpose(g, {{2, 2}, {1, 1}, {1, 1}, {1, 0}, 1}, x, k));
    for (int64_t size : {1, 2, 9}) {
        test::expect_same_as_evaluator(g, Symbols{{"h", size}, {"w", size + 3}});
    }
}

} // namespace

} // namespace ingot
