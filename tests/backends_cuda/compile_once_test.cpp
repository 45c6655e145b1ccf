// SPDX-License-Identifier: Apache-2.0
// Processes that share a folder of kernels: each kernel is compiled by one of them.
#include "backends/cuda/jit/program_cache.h"
#include "backends_cuda/timed_gpu.h"
#include "base/text.h"
#include "counts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

namespace ingot::test {
namespace {

namespace fs = std::filesystem;
using cuda::ProgramCache;
using plan::RuntimeCache;
using When = ProgramCache::When;

struct Folder {
    Folder() : path(fs::temp_directory_path() / str("ingot_compile_once_", getpid())) {
        fs::remove_all(path);
        fs::create_directory(path);
    }
    ~Folder() { fs::remove_all(path); }
    fs::path path;
};

std::shared_ptr<RuntimeCache> kernels_of(const Folder& folder) {
    return std::make_shared<RuntimeCache>((folder.path / "kernels").string());
}

/// Runs f in a process of its own, which ends with f's result as exit code.
pid_t start(const std::function<int()>& f) {
    pid_t child = fork();
    if (child == 0) {
        int code = 99;
        try {
            code = f();
        } catch (...) {
        }
        _exit(code);
    }
    return child;
}

int exit_code(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Gets `keys` kernels and returns how many this process compiled.
int compile_all(const Folder& folder, int keys, int threads) {
    TimedGpu gpu;
    gpu.compile_ms = [](const std::string&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return 5.0;
    };
    ProgramCache c(gpu, nullptr, kernels_of(folder), threads);
    std::vector<std::shared_ptr<cuda::PendingKernel>> all;
    for (int i = 0; i < keys; ++i) {
        all.push_back(c.request(str("kernel ", i), "k", 0, When::Now));
    }
    for (const auto& k : all) {
        k->function();
    }
    return gpu.compiled();
}

TEST(CompileOnce, ProcessesShareTheWork) {
    const auto processes = static_cast<int>(as_many(6, 8));
    const auto keys = static_cast<int>(as_many(40, 200));
    const auto rounds = static_cast<int>(as_many(2, 50));
    for (int round = 0; round < rounds; ++round) {
        int threads = round % 2 == 0 ? 1 : 3;
        Folder folder;
        std::vector<pid_t> children;
        for (int i = 0; i < processes; ++i) {
            children.push_back(start([&] { return compile_all(folder, keys, threads); }));
        }
        int compiled = 0;
        for (pid_t child : children) {
            int code = exit_code(child);
            ASSERT_TRUE(code >= 0 && code <= keys) << code;
            compiled += code;
        }
        EXPECT_EQ(compiled, keys) << threads << " threads in each";
    }
    record_injections(int64_t{processes} * keys * rounds, 0);
}

/// A release of Ingot: what makes its kernels another's.
struct Release {
    uint32_t abi;
    std::string compiler;
    std::string binary(int i) const { return str("kernel ", i, " of ", abi, " by ", compiler); }
};

const Release releases[] = {{plan::kernel_abi, "cubin 13.0"},
                            {plan::kernel_abi, "cubin 13.1"},
                            {plan::kernel_abi + 1, "cubin 13.0"},
                            {plan::kernel_abi + 1, "cubin 13.1"}};

/// Gets `keys` kernels as this release does, and returns how many were compiled; 200 where it was
/// given a kernel of another release.
int compile_as(const Release& r, RuntimeCache& disk, int keys) {
    int compiled = 0;
    for (int i = 0; i < keys; ++i) {
        plan::CacheKey key = plan::cache_key(str("kernel ", i), r.compiler, r.abi);
        std::optional<std::string> found = disk.find(key);
        if (!found) {
            auto claim = disk.claim(key, [] { return false; });
            found = disk.find(key); // another process may have made it meanwhile
            if (!found) {
                disk.add(key, r.binary(i), r.compiler);
                ++compiled;
                continue;
            }
        }
        if (*found != r.binary(i)) {
            return 200;
        }
    }
    return compiled;
}

/// Several releases on one folder or file: each finds its own kernels only, and none is lost.
TEST(CompileOnce, ReleasesShareAFolder) {
    const int keys = 20;
    const auto rounds = static_cast<int>(as_many(4, 50));
    for (int round = 0; round < rounds; ++round) {
        Folder folder;
        std::vector<pid_t> children;
        for (int i = 0; i < 8; ++i) { // two processes of each
            children.push_back(
                start([&, i] { return compile_as(releases[i % 4], *kernels_of(folder), keys); }));
        }
        int compiled = 0;
        for (pid_t child : children) {
            int code = exit_code(child);
            ASSERT_TRUE(code >= 0 && code <= keys) << code;
            compiled += code;
        }
        EXPECT_EQ(compiled, 4 * keys);
        auto disk = kernels_of(folder);
        EXPECT_EQ(disk->list().size(), static_cast<size_t>(4 * keys));
        for (const Release& r : releases) {
            EXPECT_EQ(compile_as(r, *disk, keys), 0) << r.abi << ' ' << r.compiler;
        }
    }
    record_injections(int64_t{8} * keys * rounds, 0);
}

TEST(CompileOnce, ReleasesShareAFile) {
    Folder folder;
    const std::string path = (folder.path / "kernels.cache").string();
    for (int round = 0; round < 2; ++round) {
        for (const Release& r : releases) {
            RuntimeCache disk(path, RuntimeCache::Kind::File);
            EXPECT_EQ(compile_as(r, disk, 20), round == 0 ? 20 : 0) << r.abi << ' ' << r.compiler;
        }
    }
    EXPECT_EQ(RuntimeCache(path, RuntimeCache::Kind::File).list().size(), 80U);
    record_injections(int64_t{2} * 80, 0);
}

/// The same through the cache of programs, whose GPU names its compiler.
TEST(CompileOnce, AnotherCompilerCompilesItsOwn) {
    struct OtherGpu : TimedGpu {
        explicit OtherGpu(std::string its) : name(std::move(its)) {}
        std::string compiler() const override { return name; }
        std::string name;
    };
    Folder folder;
    for (int round = 0; round < 2; ++round) {
        for (const char* name : {"cubin 13.0", "cubin 13.1"}) {
            OtherGpu gpu(name);
            ProgramCache c(gpu, nullptr, kernels_of(folder), 1);
            c.request("kernel", "k", 0, When::Now)->function();
            EXPECT_EQ(gpu.compiled(), round == 0 ? 1 : 0) << name;
        }
    }
    EXPECT_EQ(kernels_of(folder)->list().size(), 2U);
    record_injections(4, 0);
}

TEST(CompileOnce, CachesOfOneProcessShareTheWork) {
    Folder folder;
    std::vector<int> compiled(4);
    std::vector<std::thread> threads;
    for (int& count : compiled) {
        threads.emplace_back([&] { count = compile_all(folder, 20, 2); });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    EXPECT_EQ(compiled[0] + compiled[1] + compiled[2] + compiled[3], 20);
}

/// A process that is killed while it compiles leaves no lock behind.
TEST(CompileOnce, AKilledProcessHoldsNobodyUp) {
    Folder folder;
    int begun[2];
    ASSERT_EQ(pipe(begun), 0);
    pid_t killed = start([&] {
        TimedGpu gpu;
        gpu.compile_ms = [&](const std::string&) {
            EXPECT_EQ(write(begun[1], "x", 1), 1);
            std::this_thread::sleep_for(std::chrono::hours(1));
            return 0.0;
        };
        ProgramCache c(gpu, nullptr, kernels_of(folder), 1);
        c.request("kernel 0", "k", 0, When::Now)->function();
        return 0;
    });
    char got = 0;
    ASSERT_EQ(read(begun[0], &got, 1), 1) << "it compiles";
    pid_t waits = start([&] { return compile_all(folder, 1, 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(waitpid(waits, nullptr, WNOHANG), 0) << "it waits for the other process";
    kill(killed, SIGKILL);
    waitpid(killed, nullptr, 0);
    EXPECT_EQ(exit_code(waits), 1) << "it compiles the kernel itself";
    close(begun[0]);
    close(begun[1]);
}

/// A process that is killed gives back the lock of its key: the next one gets it.
TEST(CompileOnce, LocksOfKilledProcessesAreFree) {
    Folder folder;
    auto disk = kernels_of(folder);
    auto rounds = static_cast<int>(as_many(20, 500));
    for (int round = 0; round < rounds; ++round) {
        SCOPED_TRACE(round);
        plan::CacheKey key = plan::cache_key(str("kernel ", round % 3), "compiler");
        int held[2];
        ASSERT_EQ(pipe(held), 0);
        pid_t holder = start([&] {
            auto claim = kernels_of(folder)->claim(key, [] { return true; });
            char told = claim != nullptr && claim->held() ? 'y' : 'n';
            EXPECT_EQ(write(held[1], &told, 1), 1);
            pause();
            return 0;
        });
        char told = 0;
        ASSERT_EQ(read(held[0], &told, 1), 1);
        EXPECT_EQ(told, 'y');
        EXPECT_FALSE(disk->claim(key, [] { return true; })->held()) << "it is the holder's";
        std::unique_ptr<KeyLock> mine;
        std::thread waits([&] { mine = disk->claim(key, [] { return false; }); });
        kill(holder, SIGKILL);
        waitpid(holder, nullptr, 0);
        waits.join();
        EXPECT_TRUE(mine->held());
        close(held[0]);
        close(held[1]);
    }
    record_injections(rounds, 0);
}

/// An exit does not wait for a process that is stopped in its compiler.
TEST(CompileOnce, AnEndingCacheStopsWaiting) {
    Folder folder;
    auto disk = kernels_of(folder);
    TimedGpu gpu;
    plan::CacheKey key = plan::cache_key("kernel 0", gpu.compiler());
    auto held = disk->claim(key, [] { return true; });
    ASSERT_TRUE(held != nullptr && held->held());
    {
        ProgramCache c(gpu, nullptr, disk, 1);
        c.request("kernel 0", "k", 0, When::Now);
    }
    auto other = disk->claim(plan::cache_key("kernel 1", gpu.compiler()), [] { return true; });
    EXPECT_TRUE(other->held()) << "another key is free";
    EXPECT_FALSE(disk->claim(key, [] { return true; })->held());
    held.reset();
    EXPECT_TRUE(disk->claim(key, [] { return true; })->held());
}

TEST(CompileOnce, AFolderThatCannotBeWrittenLocksNothing) {
    RuntimeCache nowhere("/proc/nowhere/kernels");
    auto claim = nowhere.claim(plan::cache_key("k", "c"), [] { return false; });
    EXPECT_TRUE(claim == nullptr || !claim->held());
    RuntimeCache memory("", RuntimeCache::Kind::Memory);
    EXPECT_EQ(memory.claim(plan::cache_key("k", "c"), [] { return false; }), nullptr);
}

} // namespace
} // namespace ingot::test
