// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "cache/timing_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace ingot::plan {
namespace {

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// Counts warnings instead of printing them.
struct Warnings {
    int count = 0;
    Warnings() {
        set_log_sink([](void* self, LogLevel, std::string_view) { ++*static_cast<int*>(self); },
                     &count, LogLevel::Warning);
    }
    ~Warnings() { set_log_sink(nullptr, nullptr, LogLevel::Warning); }
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;
};

TEST(TimingCache, KeepsWinnersByDeviceAndProblem) {
    TemporaryFolder t;
    std::string path = t.path() + "/made/when/needed.txt";
    {
        TimingCache c(path);
        EXPECT_FALSE(c.find("gpu", "problem"));
        c.add("gpu", "problem", {"mma 64x64", 12.5});
        c.add("gpu", "other", {"generic", 0.125});
        EXPECT_EQ(c.find("gpu", "problem")->tactic, "mma 64x64");
        c.add("gpu", "problem", {"mma 128x64", 11});
    }
    TimingCache c(path);
    EXPECT_EQ(c.find("gpu", "problem"), (Timing{"mma 128x64", 11}));
    EXPECT_EQ(c.find("gpu", "other"), (Timing{"generic", 0.125}));
    EXPECT_FALSE(c.find("another gpu", "problem"));
    EXPECT_EQ(c.size(), 2U);
    std::string first = bytes_of(path);
    c.save();
    EXPECT_EQ(bytes_of(path), first) << "nothing to add, nothing written";
}

TEST(TimingCache, WithoutAFileItIsKeptInMemory) {
    TimingCache c("");
    c.add("gpu", "problem", {"generic", 1});
    c.save();
    EXPECT_EQ(c.find("gpu", "problem")->tactic, "generic");
}

TEST(TimingCache, ADamagedFileIsIgnoredAndReplaced) {
    TemporaryFolder t;
    std::string path = t.path() + "/times";
    {
        TimingCache c(path);
        c.add("gpu", "problem", {"generic", 1});
        c.add("gpu", "other", {"fast", 2});
    }
    std::string whole = bytes_of(path);
    constexpr size_t name_bytes = 19; // of the words that say what the file is
    for (size_t i = name_bytes; i < whole.size(); ++i) {
        std::string bad = whole;
        bad[i] = static_cast<char>(bad[i] ^ 1);
        put(path, bad);
        Warnings warnings;
        TimingCache c(path);
        EXPECT_EQ(c.size(), 0U) << "byte " << i;
        EXPECT_EQ(warnings.count, 1) << "byte " << i;
    }
    for (size_t n = 0; n < whole.size(); ++n) {
        put(path, whole.substr(0, n));
        Warnings warnings;
        EXPECT_EQ(TimingCache(path).size(), 0U) << n << " bytes";
        EXPECT_EQ(warnings.count, 1) << n << " bytes";
    }
    Warnings warnings;
    put(path, whole.substr(0, whole.size() - 1));
    TimingCache(path).add("gpu", "third", {"generic", 3});
    EXPECT_EQ(TimingCache(path).size(), 1U);
    EXPECT_TRUE(TimingCache(path).find("gpu", "third"));
}

TEST(TimingCache, AFileOfSomethingElseIsLeftAlone) {
    TemporaryFolder t;
    std::string path = t.path() + "/notes.txt";
    put(path, "the only copy of my notes");
    Warnings warnings;
    {
        TimingCache c(path);
        c.add("gpu", "problem", {"generic", 1});
        EXPECT_TRUE(c.find("gpu", "problem"));
    }
    EXPECT_GE(warnings.count, 1);
    EXPECT_EQ(bytes_of(path), "the only copy of my notes");
}

TEST(TimingCache, WritersKeepEachOthersEntries) {
    TemporaryFolder t;
    std::string path = t.path() + "/times";
    constexpr int processes = 4;
    constexpr int each = 20;
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < each; ++k) {
                TimingCache c(path);
                c.add("gpu", str(p, ' ', k), {str("tactic ", k), 1.0 + k});
            }
            _exit(0);
        }
        children.push_back(child);
    }
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    TimingCache c(path);
    EXPECT_EQ(c.size(), static_cast<size_t>(processes * each));
    for (int p = 0; p < processes; ++p) {
        EXPECT_EQ(c.find("gpu", str(p, " 7"))->tactic, "tactic 7");
    }
    auto files = std::filesystem::directory_iterator(t.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(TimingCache, WhatThisProcessMetStays) {
    TemporaryFolder t;
    std::string path = t.path() + "/times";
    TimingCache a(path);
    TimingCache b(path);
    a.add("gpu", "problem", {"one", 1});
    b.add("gpu", "problem", {"two", 1});
    b.add("gpu", "b's", {"two", 1});
    b.save();
    a.save();
    EXPECT_EQ(a.find("gpu", "problem")->tactic, "one");
    EXPECT_EQ(b.find("gpu", "problem")->tactic, "two");
    EXPECT_EQ(a.find("gpu", "b's")->tactic, "two") << "read when it was merged";
    EXPECT_EQ(TimingCache(path).find("gpu", "problem")->tactic, "one") << "the last writer's";
}

TEST(TimingCache, AFullDiskCostsTheCacheOnly) {
    TemporaryFolder t;
    std::string path = t.path() + "/times";
    TimingCache(path).add("gpu", "old", {"generic", 1});
    std::string before = bytes_of(path);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    auto* handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small{20, limit.rlim_max};
    {
        Warnings warnings;
        TimingCache c(path);
        setrlimit(RLIMIT_FSIZE, &small);
        c.add("gpu", "new", {"generic", 1});
        c.save();
        setrlimit(RLIMIT_FSIZE, &limit);
        EXPECT_EQ(warnings.count, 1);
        EXPECT_TRUE(c.find("gpu", "new"));
    }
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(bytes_of(path), before);
}

} // namespace
} // namespace ingot::plan
