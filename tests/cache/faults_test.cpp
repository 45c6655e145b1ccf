// SPDX-License-Identifier: Apache-2.0
// Each call on files fails in turn, with six errors, and the process is killed at each: caches
// answer rightly or not at all, nothing is thrown, and the next process finds whole entries.
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "cache/runtime_cache.h"
#include "cache/timing_cache.h"
#include "counts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>

extern "C" { // tests/faults/fault_shim.c
void ingot_fault_arm(long at, int error);
long ingot_fault_disarm(void);
}

namespace ingot::plan {
namespace {

namespace fs = std::filesystem;

constexpr int killed = -1;
constexpr int errors[] = {EIO, ENOSPC, EDQUOT, EACCES, ENOMEM, EMFILE, killed};
constexpr const char* nvrtc = "nvrtc 13.0";

/// A cache with an entry, used once more: `use` is what fails, and returns what is wrong, or "".
struct Scene {
    const char* name;
    void (*prepare)(const std::string& path);
    std::string (*use)(const std::string& path);
    std::string (*check)(const std::string& path); // afterwards, undisturbed
};

std::string binary(const char* which) {
    return std::string(3000, which[0]);
}

CacheKey key(const char* which) {
    return cache_key(which, "cubin");
}

/// "" where the cache gives the entry's own bytes or nothing.
std::string answer(RuntimeCache& c, const char* which) {
    std::optional<std::string> found = c.find(key(which));
    return !found || *found == binary(which) ? "" : str("other bytes for ", which);
}

std::string use_kernels(const std::string& path, RuntimeCache::Kind kind) {
    RuntimeCache c(path, kind);
    std::string wrong = answer(c, "old");
    auto claim = c.claim(key("new"), [] { return true; });
    c.add(key("new"), binary("new"), nvrtc);
    claim.reset();
    wrong += answer(c, "new");
    c.flush();
    return wrong;
}

std::string check_kernels(const std::string& path, RuntimeCache::Kind kind) {
    std::string wrong;
    {
        RuntimeCache c(path, kind);
        wrong = answer(c, "old") + answer(c, "new");
        for (const RuntimeCache::Entry& e : c.list()) {
            wrong += e.problem;
        }
        c.add(key("new"), binary("new"), nvrtc);
    }
    RuntimeCache c(path, kind);
    return wrong + (c.find(key("new")) ? "" : "an entry cannot be added any more");
}

void prepare_kernels(const std::string& path, RuntimeCache::Kind kind) {
    RuntimeCache(path, kind).add(key("old"), binary("old"), nvrtc);
}

std::string old_timing(const TimingCache& c) {
    std::optional<Timing> t = c.find("gpu", "old");
    return !t || *t == Timing{"mma", 2} ? "" : "another timing";
}

const Scene scenes[] = {
    {"a folder of kernels", [](const auto& p) { prepare_kernels(p, RuntimeCache::Kind::Folder); },
     [](const auto& p) { return use_kernels(p, RuntimeCache::Kind::Folder); },
     [](const auto& p) { return check_kernels(p, RuntimeCache::Kind::Folder); }},
    {"a file of kernels", [](const auto& p) { prepare_kernels(p, RuntimeCache::Kind::File); },
     [](const auto& p) { return use_kernels(p, RuntimeCache::Kind::File); },
     [](const auto& p) { return check_kernels(p, RuntimeCache::Kind::File); }},
    {"a file of timings",
     [](const auto& p) {
         TimingCache c(p);
         c.add("gpu", "old", {"mma", 2});
         c.save();
     },
     [](const auto& p) {
         TimingCache c(p);
         std::string wrong = old_timing(c);
         c.add("gpu", "new", {"generic", 3});
         c.save();
         return wrong + (c.find("gpu", "new") ? "" : "this process forgot a timing");
     },
     [](const auto& p) {
         TimingCache c(p);
         std::string wrong = old_timing(c);
         c.add("gpu", "new", {"generic", 3});
         c.save();
         return wrong + (TimingCache(p).find("gpu", "new") ? "" : "a timing cannot be added");
     }},
};

/// Calls `f` in a process of its own that is killed at its call number `at`.
void run_killed(const std::function<std::string()>& f, int64_t at) {
    pid_t child = fork();
    if (child == 0) {
        ingot_fault_arm(at, killed);
        f();
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(CacheFaults, EachCallFailsOrKills) {
    set_log_sink([](void*, LogLevel, std::string_view) {}, nullptr, LogLevel::Warning);
    int64_t injections = 0;
    for (const Scene& scene : scenes) {
        int64_t calls = 1;
        for (int error : errors) {
            for (int64_t at = 0; at <= calls; ++at) { // 0: none fails, the calls are counted
                SCOPED_TRACE(str(scene.name, ", call ", at, ", error ", error));
                TemporaryFolder folder;
                std::string path = folder.path() + "/cache";
                scene.prepare(path);
                std::string wrong;
                if (error == killed && at > 0) {
                    run_killed([&] { return scene.use(path); }, at);
                } else {
                    ingot_fault_arm(at, error);
                    EXPECT_NO_THROW(wrong = scene.use(path));
                    int64_t made = ingot_fault_disarm();
                    calls = at == 0 ? made : calls;
                }
                EXPECT_EQ(wrong, "");
                EXPECT_EQ(scene.check(path), "");
                injections += at > 0 ? 1 : 0;
            }
        }
        EXPECT_GT(calls, 8) << scene.name;
    }
    set_log_sink(nullptr, nullptr, LogLevel::Warning);
    test::record_injections(injections, 0);
}

} // namespace
} // namespace ingot::plan
