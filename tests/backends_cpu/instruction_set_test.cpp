// SPDX-License-Identifier: Apache-2.0
// ONEDNN_MAX_CPU_ISA limits own loops as it limits oneDNN's.
#include "backends/backends.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/simd/simd.h"
#include "backends_cpu/compare.h"
#include "base/process.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <regex>

namespace ingot::cpu {

namespace {

TEST(InstructionSets, LimitsHaveOneDnnsNames) {
    EXPECT_EQ(limit_named("SSE41"), InstructionSet::Baseline);
    EXPECT_EQ(limit_named("avx"), InstructionSet::Baseline);
    EXPECT_EQ(limit_named("AVX2"), InstructionSet::Avx2);
    EXPECT_EQ(limit_named("AVX2_VNNI"), InstructionSet::Avx2);
    EXPECT_EQ(limit_named("AVX512_CORE"), InstructionSet::Avx512);
    EXPECT_EQ(limit_named("avx512_core_vnni"), InstructionSet::Avx512Vnni);
    EXPECT_EQ(limit_named("AVX512_CORE_AMX"), InstructionSet::Avx512Vnni);
    EXPECT_EQ(limit_named("ALL"), InstructionSet::Avx512Vnni);
    EXPECT_EQ(limit_named("AVX3"), std::nullopt);
    EXPECT_EQ(limit_named(""), std::nullopt);
}

/// Runs in a process of its own, started by the tests below.
TEST(InstructionSetsChild, DISABLED_Says) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {64, 128}});
    std::mt19937 random(3);
    Value w = ops::constant(g, test::random_tensor(DType::F32, {128, 96}, random));
    g.add_output("y", ops::matmul(g, x, w));
    test::expect_same_as_evaluator(g);
    auto execution =
        cpu_backend().compile(std::make_shared<const Graph>(g), {})->create_execution();
    execution->prepare(std::array{Shape{64, 128}});
    for (const StepInfo& s : execution->steps()) {
        std::cout << "implementation: " << s.implementation << '\n';
    }
    std::cout << "loops: " << name(instruction_set()) << '\n';
}

ProcessResult run_under(const std::string& limit) {
    return run_process({"/usr/bin/env", "-u", "DNNL_MAX_CPU_ISA", "-u", "ONEDNN_MAX_CPU_ISA", limit,
                        std::filesystem::read_symlink("/proc/self/exe").string(),
                        "--gtest_also_run_disabled_tests",
                        "--gtest_filter=InstructionSetsChild.*"});
}

bool says(const ProcessResult& r, const std::string& text) {
    return r.output.find(text) != std::string::npos;
}

TEST(InstructionSets, OneVariableHoldsDownAllLoops) {
    // A limit on this process also bounds its child processes.
    struct Level {
        const char* limit;
        InstructionSet loops;
    };
    for (const Level& level :
         {Level{"SSE41", InstructionSet::Baseline}, Level{"AVX2", InstructionSet::Avx2},
          Level{"AVX512_CORE", InstructionSet::Avx512}}) {
        SCOPED_TRACE(level.limit);
        for (const char* variable : {"ONEDNN_MAX_CPU_ISA=", "DNNL_MAX_CPU_ISA="}) {
            ProcessResult r = run_under(std::string(variable) + level.limit);
            EXPECT_EQ(r.exit_code, 0) << r.output;
            if (instruction_set() >= level.loops) {
                EXPECT_TRUE(says(r, "loops: " + std::string(name(level.loops)))) << r.output;
            }
            // Nothing above the limit, in oneDNN's loops either.
            std::string above = level.loops == InstructionSet::Avx512Vnni ? "amx"
                                : level.loops == InstructionSet::Avx512   ? "amx|vnni"
                                : level.loops == InstructionSet::Avx2     ? "avx512|avx10"
                                                                          : "avx";
            EXPECT_FALSE(std::regex_search(r.output,
                                           std::regex("(loops|implementation): .*(" + above + ")")))
                << r.output;
        }
    }
}

TEST(InstructionSets, OtherNamesAreIgnoredWithAWarning) {
    ProcessResult r = run_under("ONEDNN_MAX_CPU_ISA=AVX3");
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_TRUE(says(r, "cpu: ONEDNN_MAX_CPU_ISA is 'AVX3', which is not an instruction set: the "
                        "limit is ignored. Known are sse41, "))
        << r.output;
}

} // namespace

} // namespace ingot::cpu
