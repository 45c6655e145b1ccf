// SPDX-License-Identifier: Apache-2.0
// Compiling now and later, and the kept results.
#include "backends/cuda/jit/program_cache.h"
#include "backends_cuda/timed_gpu.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace ingot::test {
namespace {

using cuda::ProgramCache;
using plan::RuntimeCache;
using When = ProgramCache::When;

std::shared_ptr<RuntimeCache> one_file(const std::string& path) {
    return std::make_shared<RuntimeCache>(path, RuntimeCache::Kind::File);
}

TEST(ProgramCache, EqualTextsAreCompiledOnce) {
    TimedGpu gpu;
    ProgramCache c(gpu, nullptr, nullptr, 2);
    auto a = c.request("text", "k", 0, When::Now);
    auto b = c.request("text", "k", 0, When::Later);
    EXPECT_EQ(a, b);
    a->function();
    EXPECT_TRUE(a->loaded());
    EXPECT_EQ(gpu.compiled(), 1);
}

struct StartedGpu : TimedGpu {
    void start_compiler() const override { ++started; }
    mutable std::atomic<int> started{0};
};

TEST(ProgramCache, TheCompilerStartsEarlyWhereNothingIsKept) {
    StartedGpu gpu;
    TemporaryFolder folder;
    {
        ProgramCache without(gpu, nullptr, nullptr, 1);
        without.start_compiler();
        without.start_compiler();
    } // waits for it
    EXPECT_EQ(gpu.started, 1);
    for (auto kind : {RuntimeCache::Kind::Folder, RuntimeCache::Kind::File}) {
        auto disk = std::make_shared<RuntimeCache>(
            folder.path() + (kind == RuntimeCache::Kind::File ? "/file" : "/folder"), kind);
        EXPECT_TRUE(disk->is_empty());
        {
            ProgramCache empty(gpu, nullptr, disk, 1);
            empty.start_compiler();
        }
        EXPECT_EQ(gpu.started, 2);
        {
            ProgramCache later(gpu, nullptr, disk, 1);
            later.request("text", "k", 0, When::Now)->function();
            later.start_compiler();
        }
        EXPECT_FALSE(disk->is_empty());
        ProgramCache warm(gpu, nullptr, disk, 1);
        warm.start_compiler();
        EXPECT_EQ(gpu.started, 2);
        gpu.started = 1;
    }
    auto ahead = std::make_shared<const KernelBinaries>(KernelBinaries{{"key", "binary"}});
    {
        ProgramCache built(gpu, ahead, nullptr, 1);
        built.start_compiler();
    }
    EXPECT_EQ(gpu.started, 1);
}

TEST(ProgramCache, ACompilerThatDoesNotStartIsNoError) {
    struct NoCompiler : TimedGpu {
        void start_compiler() const override { fail(ErrorCode::Unsupported, "no compiler"); }
    } gpu;
    ProgramCache c(gpu, nullptr, nullptr, 1);
    c.start_compiler();
    c.request("text", "k", 0, When::Now)->function();
    EXPECT_EQ(gpu.compiled(), 1);
}

TEST(ProgramCache, WhoComesLaterMayNeedMoreSharedMemory) {
    struct CountingGpu : TimedGpu {
        void raise_shared(const cuda::Function&, int64_t shared) override { raised = shared; }
        int64_t raised = 0;
    } gpu;
    ProgramCache c(gpu, nullptr, nullptr, 1);
    c.request("text", "k", 100, When::Now)->function();
    c.request("text", "k", 90, When::Now);
    EXPECT_EQ(gpu.raised, 0);
    c.request("text", "k", 300, When::Now);
    EXPECT_EQ(gpu.raised, 300);
}

TEST(ProgramCache, AnInterruptEndsTheWaitForTheCompiler) {
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    std::atomic<bool> go_on = false;
    TimedGpu gpu;
    gpu.compile_ms = [&](const std::string&) {
        while (!go_on) {
            std::this_thread::yield();
        }
        return 0.0;
    };
    ProgramCache c(gpu, nullptr, nullptr, 1);
    auto k = c.request("text", "k", 0, When::Now);
    request_interrupt();
    std::string message;
    try {
        k->wait();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Interrupted);
        message = e.message();
    }
    go_on = true;
    EXPECT_EQ(message, "interrupted");
    clear_interrupt();
    k->function(); // what was asked for is compiled all the same
    EXPECT_EQ(gpu.compiled(), 1);
}

TEST(ProgramCache, LaterIsLoadedByItself) {
    TimedGpu gpu;
    ProgramCache c(gpu, nullptr, nullptr, 2);
    uint64_t before = c.arrivals();
    auto a = c.request("text", "k", 0, When::Later);
    while (c.arrivals() == before) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(a->loaded());
}

TEST(ProgramCache, TheLastWhoLeavesForgetsWhatIsNotCompiled) {
    std::atomic<int> begun{0};
    TimedGpu gpu;
    gpu.compile_ms = [&begun](const std::string&) {
        begun++;
        std::this_thread::sleep_for(std::chrono::milliseconds(500)); // until the others have left
        return 0.0;
    };
    ProgramCache c(gpu, nullptr, nullptr, 1);
    c.enter();
    c.enter();
    c.request("a", "k", 0, When::Later);
    while (begun == 0) {
        std::this_thread::yield();
    }
    c.request("b", "k", 0, When::Later);
    c.leave();
    EXPECT_EQ(c.programs().size(), 2U);
    c.leave();
    EXPECT_EQ(gpu.compiled(), 1) << "it waited for what had begun, and nothing else begins";
    EXPECT_EQ(c.programs().size(), 1U);
    c.enter();
    c.request("b", "k", 0, When::Now)->function();
    EXPECT_EQ(gpu.compiled(), 2);
    c.leave();
}

std::atomic<bool> compiling{false};

/// Ends the process while a kernel that no run waits for is compiling.
void exit_while_compiling() {
    // Simulates the teardown of the compiler library: registered first, it runs last.
    std::atexit([] {
        if (compiling) {
            std::_Exit(3);
        }
    });
    auto& gpu = *new TimedGpu; // still there at the end, as in a program that leaks its contexts
    gpu.compile_ms = [](const std::string& text) {
        if (text == "slow") {
            compiling = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            compiling = false;
        }
        return 0.0;
    };
    auto& c = *new ProgramCache(gpu, nullptr, nullptr, 1);
    c.request("first", "k", 0, When::Now)->function();
    c.request("slow", "k", 0, When::Later);
    while (!compiling) {
        std::this_thread::yield();
    }
    std::exit(0);
}

TEST(ProgramCacheDeathTest, TheEndOfTheProcessWaitsForACompilation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_while_compiling(), testing::ExitedWithCode(0), "");
}

TEST(ProgramCache, WhatIsWantedNowOvertakes) {
    std::atomic<bool> go{false};
    TimedGpu gpu;
    gpu.compile_ms = [&go](const std::string& text) {
        while (text == "slow" && !go) {
            std::this_thread::yield();
        }
        return 0.0;
    };
    ProgramCache c(gpu, nullptr, nullptr, 1);
    auto slow = c.request("slow", "k", 0, When::Later);
    auto behind = c.request("behind", "k", 0, When::Later);
    EXPECT_FALSE(behind->wait_ms(20)) << "one thread compiles what nobody waits for";
    c.request("behind", "k", 0, When::Now);
    behind->function();
    EXPECT_FALSE(slow->loaded());
    go = true;
    slow->function();
    EXPECT_EQ(gpu.compiled(), 2);
}

TEST(ProgramCache, VariantsAreLimited) {
    TimedGpu gpu;
    ProgramCache c(gpu, nullptr, nullptr, 2);
    int made = 0;
    for (int k = 0; k < ProgramCache::most_variants + 10; ++k) {
        made += c.request_variant(str("variant ", k), "k", 0, When::Now) != nullptr ? 1 : 0;
    }
    EXPECT_EQ(made, ProgramCache::most_variants);
    EXPECT_NE(c.request_variant("variant 0", "k", 0, When::Now), nullptr);
    EXPECT_NE(c.request("generic", "k", 0, When::Now), nullptr);
}

TEST(ProgramCache, AFileOfKernelsServesTheNextProcess) {
    TemporaryFolder t;
    std::string path = t.path() + "/kernels";
    TimedGpu gpu;
    for (int process = 0; process < 2; ++process) {
        ProgramCache c(gpu, nullptr, one_file(path), 2);
        for (int k = 0; k < 5; ++k) {
            c.request(str("text ", k), "k", 0, k % 2 == 0 ? When::Now : When::Later)->function();
        }
        EXPECT_EQ(gpu.compiled(), 5) << "process " << process;
    }
    EXPECT_EQ(RuntimeCache(path, RuntimeCache::Kind::File).list().size(), 5U);
}

TEST(ProgramCache, AFileIsWrittenInPauses) {
    TemporaryFolder t;
    std::string path = t.path() + "/kernels";
    TimedGpu gpu;
    ProgramCache c(gpu, nullptr, one_file(path), 2);
    c.request("text", "k", 0, When::Now)->function();
    for (int i = 0; i < 6000 && !std::filesystem::exists(path); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(RuntimeCache(path, RuntimeCache::Kind::File).list().size(), 1U)
        << "a process that is killed leaves what it compiled";
}

TEST(ProgramCache, RunsWithoutADisk) {
    TemporaryFolder t;
    std::ofstream(t.path() + "/file") << "x";
    set_log_sink([](void*, LogLevel, std::string_view) {}, nullptr, LogLevel::Warning);
    for (auto kind : {RuntimeCache::Kind::Folder, RuntimeCache::Kind::File}) {
        TimedGpu gpu;
        {
            auto disk = std::make_shared<RuntimeCache>(t.path() + "/file/below", kind);
            ProgramCache c(gpu, nullptr, disk, 2);
            c.request("text", "k", 0, When::Now)->function();
            disk->flush();
        }
        EXPECT_EQ(gpu.compiled(), 1);
    }
    set_log_sink(nullptr, nullptr, LogLevel::Warning);
}

TEST(ProgramCache, DamagedEntriesAreCompiledAgain) {
    TemporaryFolder t;
    TimedGpu gpu;
    auto run = [&] {
        ProgramCache c(gpu, nullptr, std::make_shared<RuntimeCache>(t.path()), 2);
        c.request("text", "k", 0, When::Now)->function();
    };
    run();
    set_log_sink([](void*, LogLevel, std::string_view) {}, nullptr, LogLevel::Warning);
    for (const auto& f : std::filesystem::directory_iterator(t.path())) {
        std::filesystem::resize_file(f.path(), 70);
    }
    run();
    set_log_sink(nullptr, nullptr, LogLevel::Warning);
    EXPECT_EQ(gpu.compiled(), 2);
    run();
    EXPECT_EQ(gpu.compiled(), 2) << "and kept again";
}

} // namespace
} // namespace ingot::test
