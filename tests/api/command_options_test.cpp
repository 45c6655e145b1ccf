// SPDX-License-Identifier: Apache-2.0
// Compile options of a backend from the options of commands.
#include "../tools/ingot/common.h"
#include "api/option_rows.h"
#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "backends/cuda/options.h"
#include "base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::test {
namespace {

TEST(CommandOptions, ThePriorityOfRuns) {
    EXPECT_EQ(tool::compile_options(Options()).of<CudaOptions>().priority, RunPriority::Normal);
    for (auto [text, priority] : {std::pair("low", RunPriority::Low),
                                  {"normal", RunPriority::Normal},
                                  {"high", RunPriority::High}}) {
        for (unsigned command : {command::Run, command::Bench, command::Compare, command::Trtexec,
                                 command::Calibrate}) {
            Options o;
            const OptionRow* row = find_option(command, "--priority");
            ASSERT_NE(row, nullptr) << command;
            set_option(o, *row, "--priority", text);
            EXPECT_EQ(tool::compile_options(o).of<CudaOptions>().priority, priority) << text;
        }
    }
    Options o;
    try {
        set_option(o, *find_option(command::Run, "--priority"), "--priority", "urgent");
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.message(), "--priority=urgent: expected low, normal or high");
    }
}

/// The rows' fields whose backend this is.
std::set<std::string_view> rows_of(std::string_view backend) {
    std::set<std::string_view> fields;
    for (const OptionRow& r : option_rows()) {
        if (r.backend == backend) {
            fields.insert(r.field);
        }
    }
    return fields;
}

std::set<std::string_view> fields_of(std::span<const BackendOption> setters) {
    std::set<std::string_view> fields;
    for (const BackendOption& o : setters) {
        EXPECT_TRUE(fields.insert(o.field).second) << o.field << " is set twice";
    }
    return fields;
}

TEST(CommandOptions, BackendsSetEveryRowOfTheirs) {
    EXPECT_EQ(rows_of("cpu"), fields_of(cpu_options()));
    EXPECT_EQ(rows_of("cuda"), fields_of(cuda_options()));
    EXPECT_EQ(rows_of("").size() + rows_of("cpu").size() + rows_of("cuda").size(),
              option_rows().size())
        << "a row names a backend that there is not";
}

TEST(CommandOptions, ReachTheBackendThatKnowsThem) {
    Options o;
    auto give = [&o](std::string_view name, std::string_view text) {
        set_option(o, *find_option(command::Trtexec, name), name, text);
    };
    give("--noCpuLibrary", "");
    give("--noTF32", "");
    give("--noCudaGraph", "");
    give("--errorOnTimingCacheMiss", "");
    give("--arch", "86");
    give("--memoryLimit", "123456");
    give("--tuneBudget", "250");
    give("--tune", "background");
    give("--forceTactic", "simt");
    give("--runtimeCacheDir", "none");
    give("--runtimeCacheFile", "kernels");
    give("--timingCacheFile", "times");
    give("--specialisation", "eager");
    const CompileOptions made = tool::compile_options(o);
    EXPECT_FALSE(made.of<CpuOptions>().use_library);
    const auto& cuda = made.of<CudaOptions>();
    EXPECT_FALSE(cuda.tf32);
    EXPECT_FALSE(cuda.record_graphs);
    EXPECT_TRUE(cuda.timed_before);
    EXPECT_EQ(cuda.arch, 86);
    EXPECT_EQ(cuda.memory_limit, 123456);
    EXPECT_EQ(cuda.tune_budget_ms, 250);
    EXPECT_EQ(cuda.tune, Tune::Background);
    EXPECT_EQ(cuda.force_tactic, "simt");
    EXPECT_EQ(cuda.runtime_cache, "");
    EXPECT_EQ(cuda.runtime_cache_file, "kernels");
    EXPECT_EQ(cuda.timing_cache_file, "times");
    EXPECT_EQ(cuda.specialise, Specialise::Eager);
    const CompileOptions defaults = tool::compile_options(Options());
    EXPECT_TRUE(defaults.of<CpuOptions>().use_library);
    EXPECT_EQ(defaults.of<CudaOptions>().runtime_cache, "default");
    EXPECT_EQ(defaults.of<CudaOptions>().specialise, Specialise::Auto);
}

// Options of one type do not touch those of another, and copies are apart.
TEST(CommandOptions, AreKeptByTheirBackendsType) {
    CompileOptions a;
    a.of<CudaOptions>().arch = 90;
    CompileOptions b = a;
    b.of<CudaOptions>().arch = 80;
    b.of<CpuOptions>().use_library = false;
    EXPECT_EQ(std::as_const(a).of<CudaOptions>().arch, 90);
    EXPECT_TRUE(std::as_const(a).of<CpuOptions>().use_library);
    EXPECT_EQ(std::as_const(b).of<CudaOptions>().arch, 80);
}

} // namespace
} // namespace ingot::test
