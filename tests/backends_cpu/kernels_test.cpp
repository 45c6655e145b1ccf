// SPDX-License-Identifier: Apache-2.0
// The kernels for movement, reductions, norms, attention and spatial ops, against the evaluator.
#include "backends/backends.h"
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ingot {

namespace {

using test::CompareOptions;
using test::expect_same_as_evaluator;

CompareOptions tolerance_of(DType t, double f32 = 1e-5) {
    CompareOptions o;
    o.tolerance = t == DType::F16 ? 4e-3 : t == DType::BF16 ? 3e-2 : f32;
    return o;
}

TEST(CpuGather, RowsAlongEveryAxis) {
    for (DType t : {DType::F32, DType::I8, DType::F16, DType::I64}) {
        for (int64_t axis : {0, 1, 2}) {
            Graph g;
            Value x = g.add_input("x", {t, {5, 6, 7}});
            Value i = ops::i64_list(g, {4, 0, 3, 3});
            g.add_output("y", ops::gather(g, ops::permute(g, x, {1, 2, 0}), i, axis));
            expect_same_as_evaluator(g);
        }
    }
}

TEST(CpuGather, RefusesIndicesOutsideTheAxis) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {5, 2}});
    Value i = g.add_input("i", {DType::I64, {2}});
    g.add_output("y", ops::gather(g, x, i, 0));
    auto execution = cpu_backend().compile(std::make_shared<const Graph>(g))->create_execution();
    std::vector<Tensor> in{Tensor::zeros(DType::F32, {5, 2}), Tensor::i64({1, 5})};
    std::vector<Tensor> out(1);
    EXPECT_FALSE(execution->run(in, out).ok());
    EXPECT_EQ(execution->error(),
              "node '' (gather): gather: index 5 at position 1 is outside an axis of size 5");
}

TEST(CpuScatter, CombinesInOrder) {
    for (DType t : {DType::F32, DType::F16, DType::I32, DType::Bool}) {
        for (const char* fn : {"none", "add", "mul", "min", "max"}) {
            if (t == DType::Bool && std::string_view(fn) != "none") {
                continue;
            }
            SCOPED_TRACE(testing::Message() << name(t) << ' ' << fn);
            Graph g;
            Value x = g.add_input("x", {t, {4, 130}});
            Value u = g.add_input("u", {t, {5, 130}});
            g.add_output("y", ops::scatter(g, x, ops::i64_list(g, {3, 1, 3, 0, 3}), u, fn));
            expect_same_as_evaluator(g, {}, 7, tolerance_of(t));
        }
    }
}

TEST(CpuPad, EveryMode) {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
        for (DType t : {DType::F32, DType::U8, DType::F64}) {
            SCOPED_TRACE(testing::Message() << mode << ' ' << name(t));
            Graph g;
            Value x = g.add_input("x", {t, {2, 4, 5, 3}});
            Value v = ops::scalar(g, t, 3);
            g.add_output("y", ops::pad(g, x, {0, 1, 3, 2}, {0, 2, 0, 1}, v, mode));
            Value p = ops::permute(g, x, {0, 3, 1, 2});
            g.add_output("z", ops::pad(g, p, {0, 0, 1, 2}, {1, 2, 1, 0}, v, mode));
            expect_same_as_evaluator(g);
        }
    }
}

TEST(CpuReduce, AxesFunctionsAndTypes) {
    std::vector<std::vector<int64_t>> sets = {{0}, {1}, {3}, {1, 2}, {2, 3}, {0, 3}, {0, 1, 2, 3}};
    for (DType t :
         {DType::F32, DType::F64, DType::F16, DType::I32, DType::U8, DType::I64, DType::Bool}) {
        for (const char* fn : {"min", "max", "sum", "prod"}) {
            for (const auto& axes : sets) {
                if (t == DType::Bool && (fn[0] == 's' || fn[0] == 'p')) {
                    continue;
                }
                SCOPED_TRACE(testing::Message() << name(t) << ' ' << fn << " over " << axes.size()
                                                << " axes from " << axes[0]);
                Graph g;
                Value x = g.add_input("x", {t, {3, 4, 70, 2}});
                g.add_output("y", ops::reduce(g, fn, x, axes));
                Value p = ops::permute(g, x, {3, 1, 0, 2});
                g.add_output("z", ops::reduce(g, fn, p, axes, true));
                expect_same_as_evaluator(g, {}, 3, tolerance_of(t, 1e-4));
            }
        }
    }
}

TEST(CpuReduce, ShortRowsSideBySide) {
    // 1,030 rows are more than two blocks; 32 elements are the longest row that folds as columns.
    for (DType t : {DType::F32, DType::F64, DType::F16, DType::U8, DType::I64}) {
        for (int64_t n : {1, 2, 5, 31, 32, 33}) {
            for (const char* fn : {"min", "max", "sum"}) {
                SCOPED_TRACE(testing::Message() << name(t) << ' ' << fn << " over " << n);
                Graph g;
                Value x = g.add_input("x", {t, {1030, n}});
                g.add_output("y", ops::reduce(g, fn, x, {1}));
                Value part = ops::slice(g, x, 0, 3, 515);
                g.add_output("z", ops::reduce(g, fn, part, {1}, true));
                expect_same_as_evaluator(g, {}, 4, tolerance_of(t, 1e-5));
            }
        }
    }
}

TEST(CpuReduce, ExtremesOfRowsWithNan) {
    for (int64_t n : {1, 7, 32, 33, 100}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {40, n}});
        g.add_output("y", ops::reduce(g, "max", x, {1}));
        g.add_output("z", ops::reduce(g, "min", x, {1}));
        Tensor in = Tensor::empty(DType::F32, {40, n});
        for (int64_t i = 0; i < in.count(); ++i) {
            in.as_mutable<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 11) - 20;
        }
        for (int64_t row = 0; row < 40; row += 2) { // in every place of a row in turn
            in.as_mutable<float>()[static_cast<size_t>(row * n + row / 2 % n)] = std::nanf("");
        }
        auto execution =
            cpu_backend().compile(std::make_shared<const Graph>(g))->create_execution();
        std::vector<Tensor> inputs{in};
        std::vector<Tensor> out(2);
        ASSERT_TRUE(execution->run(inputs, out).ok()) << execution->error();
        for (int64_t row = 0; row < 40; ++row) {
            float most = -20;
            float least = 0;
            for (int64_t i = 0; i < n; ++i) {
                auto element = static_cast<float>((row * n + i) % 11) - 20;
                most = std::max(most, element);
                least = std::min(least, element);
            }
            for (size_t k : {size_t{0}, size_t{1}}) {
                float expected = k == 0 ? most : least;
                float got = out[k].as<float>()[static_cast<size_t>(row)];
                EXPECT_TRUE(row % 2 == 0 ? std::isnan(got) : got == expected)
                    << (k == 0 ? "max" : "min") << " of row " << row << " of " << n << ": " << got
                    << ", expected " << expected;
            }
        }
    }
}

TEST(CpuReduce, OfNothing) {
    for (DType t : {DType::F32, DType::I8, DType::U16, DType::Bool, DType::F64}) {
        for (const char* fn : {"min", "max", "sum", "prod"}) {
            if (t == DType::Bool && (fn[0] == 's' || fn[0] == 'p')) {
                continue;
            }
            Graph g;
            Value x = g.add_input("x", {t, {3, Dim::symbol("N"), 2}});
            g.add_output("y", ops::reduce(g, fn, x, {1}));
            expect_same_as_evaluator(g, {{"N", 0}});
        }
    }
}

TEST(CpuReduce, LongSumsStayAccurate) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {100000, 3}});
    g.add_output("y", ops::reduce(g, "sum", x, {0}));
    g.add_output("z", ops::reduce(g, "sum", x, {0, 1}));
    expect_same_as_evaluator(g, {}, 1, tolerance_of(DType::F32, 1e-5));
}

TEST(CpuSoftmax, EveryAxisAndType) {
    for (DType t : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
        for (int64_t axis : {0, 1, 2}) {
            for (bool log : {false, true}) {
                SCOPED_TRACE(testing::Message() << name(t) << " axis " << axis << " log " << log);
                Graph g;
                Value x = g.add_input("x", {t, {3, 50, 7}});
                g.add_output("y", ops::softmax(g, ops::mul(g, x, 4), axis, log));
                expect_same_as_evaluator(g, {}, 5, tolerance_of(t));
            }
        }
    }
}

TEST(CpuNorm, LayerNormInEveryForm) {
    for (DType t : {DType::F32, DType::F16, DType::F64}) {
        for (bool rms : {false, true}) {
            for (int64_t axis : {-1, 1}) {
                SCOPED_TRACE(testing::Message() << name(t) << " rms " << rms << " axis " << axis);
                Graph g;
                Value x = g.add_input("x", {t, {4, 5, 66}});
                Value s = g.add_input("s", {t, {66}});
                Value b = g.add_input("b", {t, {1, 1}});
                ops::LayerNorm a{axis, 1e-5, rms};
                g.add_output("y", ops::layer_norm(g, a, x, s, axis == 1 ? b : s));
                g.add_output("z", ops::layer_norm(g, a, x, s));
                expect_same_as_evaluator(g, {}, 2, tolerance_of(t, 1e-4));
            }
        }
    }
}

TEST(CpuNorm, GroupNormInBothLayouts) {
    for (DType t : {DType::F32, DType::F16}) {
        Graph g;
        Value x = g.add_input("x", {t, {2, 12, 9, 5}});
        Value last = g.add_input("last", {t, {2, 9, 5, 12}});
        Value s = g.add_input("s", {t, {12}});
        Value b = g.add_input("b", {t, {12}});
        g.add_output("y", ops::group_norm(g, {4, 1e-5}, x, s, b));
        g.add_output("z", ops::group_norm(g, {3, 1e-5}, ops::permute(g, last, {0, 3, 1, 2}), s, b));
        g.add_output("w", ops::group_norm(g, {12, 1e-5}, x, s, b));
        expect_same_as_evaluator(g, {}, 2, tolerance_of(t, 1e-4));
    }
}

TEST(CpuAttention, MasksHeadsAndTypes) {
    for (DType t : {DType::F32, DType::F16, DType::BF16}) {
        for (int mask : {0, 1, 2}) {
            for (bool causal : {false, true}) {
                SCOPED_TRACE(testing::Message()
                             << name(t) << " mask " << mask << " causal " << causal);
                Graph g;
                Value q = g.add_input("q", {t, {2, 19, 6, 24}});
                Value k = g.add_input("k", {t, {2, 3, 45, 24}});
                Value v = g.add_input("v", {t, {2, 3, 45, 40}});
                ops::Attention a;
                a.scale = 0.2;
                a.softcap = mask == 2 ? 5 : 0;
                a.causal = causal;
                a.offset = causal ? 20 : 0;
                Value m;
                if (mask == 1) {
                    m = g.add_input("m", {DType::Bool, {2, 1, 19, 45}});
                } else if (mask == 2) {
                    m = g.add_input("m", {t, {45}});
                }
                Value y = ops::attention(g, a, ops::permute(g, q, {0, 2, 1, 3}), k, v, m);
                y = ops::permute(g, y, {0, 2, 1, 3});
                g.add_output("y", ops::reshape(g, y, {2, 19, 240}));
                expect_same_as_evaluator(g, {}, 2, tolerance_of(t));
            }
        }
    }
}

TEST(CpuAttention, RowsThatSeeNothing) {
    Graph g;
    Value q = g.add_input("q", {DType::F32, {1, 2, 5, 8}});
    Value k = g.add_input("k", {DType::F32, {1, 2, 7, 8}});
    Value v = g.add_input("v", {DType::F32, {1, 2, 7, 8}});
    ops::Attention a;
    a.causal = true;
    a.offset = -2;
    g.add_output("y", ops::attention(g, a, q, k, v));
    expect_same_as_evaluator(g);
}

TEST(CpuAttention, LongSequences) {
    Graph g;
    Value q = g.add_input("q", {DType::F32, {1, 1, 300, 16}});
    Value k = g.add_input("k", {DType::F32, {1, 1, 2500, 16}});
    Value v = g.add_input("v", {DType::F32, {1, 1, 2500, 33}});
    g.add_output("y", ops::attention(g, {}, q, k, v));
    expect_same_as_evaluator(g);
}

struct ConvCase {
    Dims x, w;
    std::vector<int64_t> strides, dilations;
    Dims low, high;
    int64_t groups;
};

TEST(CpuConv, ShapesGroupsAndTypes) {
    const ConvCase cases[] = {
        {{2, 3, 17, 19}, {8, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
        {{1, 8, 9, 11}, {5, 8, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
        {{1, 8, 10, 10}, {6, 8, 1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
        {{1, 3, 30, 31}, {16, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, 1},
        {{2, 16, 9, 9}, {16, 1, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, 16},
        {{1, 16, 12, 9}, {16, 1, 5, 5}, {1, 1}, {2, 2}, {4, 4}, {4, 4}, 16},
        {{1, 12, 9, 8}, {18, 4, 3, 3}, {1, 1}, {1, 1}, {0, 1}, {2, 1}, 3},
        {{1, 4, 8, 9}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4},
        {{2, 6, 33}, {4, 6, 5}, {2}, {2}, {3}, {1}, 1},
        {{1, 3, 6, 7, 8}, {5, 3, 3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 2}, 1},
    };
    int number = 0;
    for (const ConvCase& c : cases) {
        for (DType t : {DType::F32, DType::F16, DType::F64}) {
            for (bool constant : {false, true}) {
                SCOPED_TRACE(testing::Message()
                             << "case " << number << ' ' << name(t) << " constant " << constant);
                std::mt19937 random(3);
                Graph g;
                Value x = g.add_input("x", {t, c.x});
                Value w = constant
                              ? ops::constant(g, test::random_tensor(t, *as_const(c.w), random))
                              : g.add_input("w", {t, c.w});
                ops::Conv a{c.strides, c.dilations, c.low, c.high, c.groups, t};
                Value y = ops::conv(g, a, x, w);
                Dims bias(c.x.size() - 1, Dim(1));
                bias[0] = c.w[0];
                Value b = g.add_input("b", {t, bias});
                g.add_output("y", ops::maximum(g, ops::add(g, y, b), 0.0));
                expect_same_as_evaluator(g, {}, 2, tolerance_of(t, 1e-5));
            }
        }
        ++number;
    }
}

TEST(CpuConv, BytesIntoI32) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {1, 5, 9, 9}});
    Value w = g.add_input("w", {DType::I8, {7, 5, 3, 3}});
    ops::Conv a{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, DType::I32};
    g.add_output("y", ops::conv(g, a, x, w));
    expect_same_as_evaluator(g);
}

TEST(CpuConv, DepthwiseBytesIntoI32) {
    std::mt19937 random(5);
    auto bytes = [&](DType t, const Shape& shape) {
        Tensor all = test::random_tensor(t, shape, random);
        size_t i = 0;
        for (std::byte& b : all.mutable_bytes()) {
            b = static_cast<std::byte>(i % 7 == 0 ? 128 : i % 7 == 1 ? 255 : random() % 256);
            ++i;
        }
        return all;
    };
    for (DType xt : {DType::U8, DType::I8}) {
        for (DType wt : {DType::U8, DType::I8}) {
            for (int64_t channels : {2, 15, 16, 33, 64, 65, 200}) {
                for (int64_t stride : {1, 2}) {
                    SCOPED_TRACE(testing::Message() << name(xt) << " by " << name(wt) << ", "
                                                    << channels << " channels");
                    Graph g;
                    Value x = g.add_input("x", {xt, {2, channels, 7, 6}});
                    Value w = g.add_input("w", {wt, {channels, 1, 3, 2}});
                    ops::Conv a{{stride, 1}, {1, 2}, {1, 0}, {0, 2}, channels, DType::I32};
                    g.add_output("y", ops::conv(g, a, x, w));
                    const Tensor inputs[] = {bytes(xt, {2, channels, 7, 6}),
                                             bytes(wt, {channels, 1, 3, 2})};
                    expect_same_as_evaluator(g, inputs);
                }
            }
        }
    }
}

TEST(CpuPool, MaximaAndAverages) {
    for (DType t : {DType::F32, DType::F16, DType::F64, DType::I8, DType::U8}) {
        for (const char* fn : {"max", "average"}) {
            for (bool count : {false, true}) {
                if (!is_float(t) && std::string_view(fn) == "average") {
                    continue;
                }
                SCOPED_TRACE(testing::Message() << name(t) << ' ' << fn << ' ' << count);
                Graph g;
                Value x = g.add_input("x", {t, {2, 20, 11, 8}});
                ops::Pool a{fn, {3, 2}, {2, 1}, {1, 2}, {1, 1}, {1, 0}, {1, 0}, count};
                g.add_output("y", ops::pool(g, a, x));
                expect_same_as_evaluator(g, {}, 2, tolerance_of(t));
            }
        }
    }
}

TEST(CpuChain, ConvolutionsConcatAndResiduals) {
    // Channels-last values meet row-major ones; a concat is written in place; memory is reused.
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N"), 3, 20, 20}});
    std::mt19937 random(9);
    auto conv = [&](Value in, int64_t out_channels, int64_t in_channels) {
        Value w = ops::constant(
            g, test::random_tensor(DType::F32, {out_channels, in_channels, 3, 3}, random));
        return ops::conv(g, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, DType::F32}, in, w);
    };
    Value a = ops::maximum(g, conv(x, 8, 3), 0.0);
    Value b = ops::mul(g, conv(a, 4, 8), 0.1);
    Value both = ops::concat(g, std::array{a, b}, 1);
    Value c = ops::mul(g, conv(both, 12, 12), 0.1);
    Value d = ops::add(g, c, both);
    Value e = ops::maximum(g, d, 0.0);
    g.add_output("d", ops::mul(g, d, 2));
    g.add_output("flat", ops::reshape(g, e, {Dim::symbol("N"), 4800}));
    g.add_output("mean", ops::reduce_mean(g, e, {2, 3}));
    CompareOptions o;
    o.tolerance = 1e-5;
    expect_same_as_evaluator(g, {{"N", 1}}, 4, o);
    expect_same_as_evaluator(g, {{"N", 3}}, 4, o);
}

} // namespace

} // namespace ingot
