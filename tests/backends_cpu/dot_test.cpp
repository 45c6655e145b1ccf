// SPDX-License-Identifier: Apache-2.0
// Contractions against the evaluator: sizes around the tiles' edges, strides, types, epilogues.
#include "backends/backends.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/options.h"
#include "backends/cpu/simd/simd.h"
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

Graph matmul_graph(DType t, const Dims& a, const Dims& b, bool transpose, DType result) {
    Graph g;
    Value x = g.add_input("x", {t, a});
    Value y = g.add_input("y", {t, b});
    if (transpose) {
        y = ops::transpose_last(g, y);
    }
    g.add_output("z", ops::matmul(g, x, y, result));
    return g;
}

TEST(CpuDot, SizesAroundTheTiles) {
    for (int64_t m : {1, 2, 3, 13, 14, 15, 29}) {
        for (int64_t n : {1, 7, 31, 32, 33, 70}) {
            for (int64_t k : {1, 3, 16, 65}) {
                SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k);
                expect_same_as_evaluator(
                    matmul_graph(DType::F32, {m, k}, {k, n}, false, DType::F32));
                expect_same_as_evaluator(
                    matmul_graph(DType::F32, {m, k}, {n, k}, true, DType::F32));
            }
        }
    }
}

TEST(CpuDot, EveryType) {
    for (DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8,
                    DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64}) {
        SCOPED_TRACE(name(t));
        test::CompareOptions options;
        options.tolerance = t == DType::F16 ? 1e-3 : t == DType::BF16 ? 1e-2 : 1e-5;
        DType result = is_integer(t) && bit_width(t) == 8 ? DType::I32 : t;
        for (bool transpose : {false, true}) {
            Dims b = transpose ? Dims{3, 21, 18} : Dims{3, 18, 21};
            expect_same_as_evaluator(matmul_graph(t, {3, 17, 18}, b, transpose, result), {}, 3,
                                     options);
        }
    }
}

TEST(CpuDot, MixedBytes) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {5, 40}});
    Value y = g.add_input("y", {DType::I8, {40, 9}});
    g.add_output("z", ops::matmul(g, x, y, DType::I32));
    expect_same_as_evaluator(g);
}

TEST(CpuDot, SymbolicSizesAndEmptySums) {
    Dim m = Dim::symbol("M");
    Dim k = Dim::symbol("K");
    Graph g = matmul_graph(DType::F32, {2, m, k}, {2, k, 33}, false, DType::F32);
    expect_same_as_evaluator(g, {{"M", 40}, {"K", 19}});
    expect_same_as_evaluator(g, {{"M", 4}, {"K", 0}});
    expect_same_as_evaluator(g, {{"M", 0}, {"K", 7}});
}

TEST(CpuDot, AxesInAnyOrder) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {4, 3, 5, 6}});
    Value y = g.add_input("y", {DType::F32, {6, 7, 3, 4, 2}});
    Dot d;
    d.a_batch = {1};
    d.b_batch = {2};
    d.a_contract = {0, 3};
    d.b_contract = {3, 0};
    g.add_output("z", ops::dot(g, d, x, y));
    expect_same_as_evaluator(g);
}

TEST(CpuDot, ConstantWeightsArePackedOnce) {
    std::mt19937 random(5);
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N"), 48}});
    Value w = ops::constant(g, test::random_tensor(DType::F32, {100, 48}, random));
    Value y = ops::matmul(g, x, ops::transpose_last(g, w));
    Value bias = ops::constant(g, test::random_tensor(DType::F32, {100}, random));
    g.add_output("y", ops::gelu(g, ops::add(g, y, bias)));
    expect_same_as_evaluator(g, {{"N", 1}});
    expect_same_as_evaluator(g, {{"N", 37}});
    CompileOptions own_loops;
    own_loops.of<CpuOptions>().use_library = false;
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), own_loops);
    auto first = executable->create_execution();
    first->prepare(std::array{Shape{37, 48}});
    size_t packed = executable->packed_bytes();
    EXPECT_GE(packed, 100U * 48 * 4) << "the weights are packed";
    first->prepare(std::array{Shape{74, 48}});
    executable->create_execution()->prepare(std::array{Shape{38, 48}});
    EXPECT_EQ(executable->packed_bytes(), packed) << "for every number of rows, in every context";
}

TEST(CpuDot, ResultsWithGapsOfFewRowsRunOnOwnLoops) {
    for (int64_t rows : {40, 600}) {
        std::mt19937 random(5);
        Graph g;
        Value x = g.add_input("x", {DType::F32, {rows, 96}});
        std::array<Value, 2> halves;
        for (Value& v : halves) {
            v = ops::matmul(g, x,
                            ops::constant(g, test::random_tensor(DType::F32, {96, 320}, random)));
        }
        g.add_output("y", ops::concat(g, halves, 1));
        for (const StepInfo& s : test::planned_steps(g)) {
            bool few = rows <= 256 && cpu::instruction_set() >= cpu::InstructionSet::Avx512;
            bool own = cpu::onednn_library() == nullptr || few;
            EXPECT_EQ(s.implementation == "own", own) << s.implementation;
        }
        expect_same_as_evaluator(g);
    }
}

TEST(CpuDot, LargeOperandsGoInChunks) {
    Graph g = matmul_graph(DType::F32, {1, 130, 2100}, {1, 2100, 1100}, false, DType::F32);
    expect_same_as_evaluator(g);
    Graph tall = matmul_graph(DType::F32, {1100, 2100}, {2100, 40}, false, DType::F32);
    expect_same_as_evaluator(tall);
    for (auto [m, n] : {std::pair{130, 1100}, {1100, 40}, {2200, 4400}}) {
        Graph product = matmul_graph(DType::F32, {m, 2100}, {2100, n}, false, DType::F32);
        CompileOptions own_loops;
        own_loops.of<CpuOptions>().use_library = false;
        auto execution = cpu_backend()
                             .compile(std::make_shared<const Graph>(product), own_loops)
                             ->create_execution();
        execution->prepare(std::array{Shape{m, 2100}, Shape{2100, n}});
        // Both sides packed at once would be 10, 9 and 55 MB.
        EXPECT_LT(execution->memory_use().scratch, 2.1 * (4 << 20)) << m << 'x' << n;
    }
    // Both sides in several chunks each: every pair of chunks meets. A chunk has at most 256 rows
    // or columns here.
    expect_same_as_evaluator(matmul_graph(DType::F32, {270, 8200}, {8200, 270}, false, DType::F32));
}

TEST(CpuDot, ManyBatches) {
    expect_same_as_evaluator(
        matmul_graph(DType::F32, {24, 64, 32}, {24, 32, 64}, false, DType::F32));
}

} // namespace

} // namespace ingot
