// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "cache/runtime_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <thread>

namespace ingot::plan {
namespace {

namespace fs = std::filesystem;

std::string only_file(const std::string& folder) {
    EXPECT_EQ(RuntimeCache(folder).list().size(), 1U);
    return folder + "/" + RuntimeCache(folder).list().at(0).file;
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// Runs f in another process; true when it returned true there.
bool elsewhere(const std::function<bool()>& f) {
    pid_t child = fork();
    if (child == 0) {
        _exit(f() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// While it lives, no file of this process grows above `bytes`, as on a full disk.
class FullDisk {
public:
    explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        rlimit now{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FullDisk() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

private:
    rlimit before_{};
    void (*handler_)(int);
};

/// Hundreds of warnings that a test expects.
struct Quiet {
    Quiet() {
        set_log_sink([](void*, LogLevel, std::string_view) {}, nullptr, LogLevel::Warning);
    }
    ~Quiet() { set_log_sink(nullptr, nullptr, LogLevel::Warning); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
};

size_t files_in(const std::string& folder) {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

TEST(RuntimeCache, FindsWhatWasAdded) {
    TemporaryFolder t;
    RuntimeCache c(t.path() + "/made/when/needed");
    CacheKey key = cache_key("text", "cubin sm_90a");
    EXPECT_FALSE(c.find(key));
    c.add(key, "binary", "nvrtc 13.0");
    EXPECT_EQ(c.find(key), "binary");
    EXPECT_FALSE(c.find(cache_key("text", "cubin sm_80")));
    EXPECT_FALSE(c.find(cache_key("other", "cubin sm_90a")));
    ASSERT_EQ(c.list().size(), 1U);
    EXPECT_EQ(c.list()[0].nvrtc, "nvrtc 13.0");
    EXPECT_EQ(c.list()[0].compiler, "cubin sm_90a");
    EXPECT_EQ(c.list()[0].problem, "");
    EXPECT_EQ(c.clear(), 1);
    EXPECT_FALSE(c.find(key));
}

TEST(RuntimeCache, EveryDamagedByteAndEveryLengthIsNoticed) {
    Quiet quiet;
    TemporaryFolder t;
    RuntimeCache c(t.path());
    CacheKey key = cache_key("text", "cubin sm_90a");
    c.add(key, "a binary", "nvrtc 13.0");
    std::string path = only_file(t.path());
    std::ifstream in(path, std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(in)), {});
    auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
    for (size_t i = 0; i < whole.size(); ++i) {
        std::string bad = whole;
        bad[i] = static_cast<char>(bad[i] ^ 0x41);
        write(bad);
        EXPECT_NE(c.list().at(0).problem, "") << "byte " << i;
        EXPECT_FALSE(c.find(key)) << "byte " << i;
        EXPECT_FALSE(fs::exists(path)) << "a damaged entry goes, byte " << i;
    }
    for (size_t n = 0; n < whole.size(); ++n) {
        write(whole.substr(0, n));
        EXPECT_FALSE(c.find(key)) << n << " bytes";
    }
    write(whole);
    EXPECT_EQ(c.find(key), "a binary");
}

/// The log as one text.
struct Said {
    Said() {
        set_log_sink(
            [](void* to, LogLevel, std::string_view line) {
                *static_cast<std::string*>(to) += std::string(line) + '\n';
            },
            &text, LogLevel::Warning);
    }
    ~Said() { set_log_sink(nullptr, nullptr, LogLevel::Warning); }
    Said(const Said&) = delete;
    Said& operator=(const Said&) = delete;
    std::string text;
};

fs::perms mode_of(const std::string& path) {
    return fs::status(path).permissions();
}

TEST(RuntimeCache, FoldersAreThisUsersOnly) {
    mode_t before = umask(0);
    TemporaryFolder t;
    CacheKey key = cache_key("text", "cubin");
    RuntimeCache made(t.path() + "/new/kernels");
    made.add(key, "binary", "");
    {
        RuntimeCache c(t.path() + "/also/one", RuntimeCache::Kind::File);
        c.add(key, "binary", "");
    }
    umask(before);
    EXPECT_EQ(made.find(key), "binary");
    EXPECT_EQ(RuntimeCache(t.path() + "/also/one", RuntimeCache::Kind::File).find(key), "binary");
    EXPECT_EQ(mode_of(t.path() + "/new/kernels"), fs::perms::owner_all);
    EXPECT_EQ(mode_of(t.path() + "/also"), fs::perms::owner_all);
}

TEST(RuntimeCache, WhatOthersMayWriteIsNotRun) {
    TemporaryFolder t;
    CacheKey key = cache_key("text", "cubin");
    std::string folder = t.path() + "/kernels";
    RuntimeCache c(folder);
    c.add(key, "binary", "");
    std::string entry = only_file(folder);
    fs::permissions(folder, fs::perms(0777));
    {
        Said said;
        EXPECT_FALSE(c.find(key));
        c.add(cache_key("other", "cubin"), "x", "");
        EXPECT_EQ(said.text, "runtime cache: nothing is saved: '" + folder +
                                 "' can be written by other users: chmod go-w it, once nothing in "
                                 "it is theirs\n");
        EXPECT_EQ(files_in(folder), 1U);
        EXPECT_NE(c.list().at(0).problem, "");
    }
    fs::permissions(folder, fs::perms(0700));
    fs::permissions(entry, fs::perms(0666));
    {
        Said said;
        EXPECT_FALSE(c.find(key));
        EXPECT_NE(said.text.find("'" + entry + "' can be written by other users"),
                  std::string::npos)
            << said.text;
    }
    fs::permissions(entry, fs::perms(0600));
    EXPECT_EQ(c.find(key), "binary");
}

TEST(RuntimeCache, WhatAnotherUserPlantedIsNotRun) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only the superuser can give a file away: NOT tested";
    }
    TemporaryFolder t;
    fs::permissions(t.path(), fs::perms(0755));
    CacheKey key = cache_key("text", "cubin");
    std::string folder = t.path() + "/kernels";
    std::string path = t.path() + "/one";
    RuntimeCache(folder).add(key, "planted", "");
    RuntimeCache(path, RuntimeCache::Kind::File).add(key, "planted", "");
    fs::permissions(folder, fs::perms(0755));
    fs::permissions(path, fs::perms(0644));
    constexpr uid_t planter = 65533;
    for (const std::string& p : {folder, only_file(folder), path}) {
        ASSERT_EQ(chown(p.c_str(), planter, planter), 0);
    }
    for (uid_t user : {uid_t{0}, uid_t{65534}}) {
        EXPECT_TRUE(elsewhere([&] {
            Said said;
            if (user != 0 && setuid(user) != 0) {
                return false;
            }
            RuntimeCache c(folder);
            RuntimeCache f(path, RuntimeCache::Kind::File);
            bool taken = c.find(key).has_value() || f.find(key).has_value();
            std::string why = str(" belongs to user 65533, this is user ", user,
                                  ": give a path of your own, or remove it");
            return !taken && said.text.find("'" + folder + "'" + why) != std::string::npos &&
                   said.text.find("'" + path + "'" + why) != std::string::npos;
        })) << user;
    }
    EXPECT_TRUE(elsewhere([&] { // who wrote it has it
        RuntimeCache c(folder);
        return setuid(planter) == 0 && c.find(key) == "planted";
    }));
    EXPECT_EQ(bytes_of(path).substr(0, 8), "INGOTKRS") << "it is left as it is";
}

TEST(RuntimeCache, LinksAreNotFollowed) {
    TemporaryFolder t;
    CacheKey key = cache_key("text", "cubin");
    std::string folder = t.path() + "/kernels";
    RuntimeCache c(folder);
    c.add(key, "binary", "");
    std::string entry = only_file(folder);
    fs::rename(entry, t.path() + "/elsewhere");
    fs::create_symlink(t.path() + "/elsewhere", entry);
    Said said;
    EXPECT_FALSE(c.find(key));
    EXPECT_NE(said.text.find("symbolic link"), std::string::npos) << said.text;
}

TEST(RuntimeCache, EntriesThatChangedPlacesAreNoticed) {
    TemporaryFolder t;
    CacheKey keys[] = {cache_key("a", "cubin"), cache_key("b", "cubin")};
    std::string folder = t.path() + "/kernels";
    RuntimeCache c(folder);
    c.add(keys[0], "binary a", "");
    c.add(keys[1], "binary b", "");
    auto file = [&](int i) { return folder + "/" + to_text(keys[i].hash) + ".kernel"; };
    fs::rename(file(0), t.path() + "/kept");
    fs::rename(file(1), file(0));
    fs::rename(t.path() + "/kept", file(1));
    Said said;
    for (const RuntimeCache::Entry& e : c.list()) {
        EXPECT_EQ(e.problem, "it holds the kernel of another key");
    }
    for (int i : {0, 1}) {
        EXPECT_FALSE(c.find(keys[i]));
        EXPECT_NE(said.text.find(file(i) + " is ignored: it holds the kernel of another key"),
                  std::string::npos)
            << said.text;
        EXPECT_FALSE(fs::exists(file(i)));
    }
}

TEST(RuntimeCache, AFolderThatCannotBeWrittenCostsTheCacheOnly) {
    TemporaryFolder t;
    std::ofstream(t.path() + "/file") << "x";
    RuntimeCache c(t.path() + "/file/below");
    CacheKey key = cache_key("text", "cubin sm_90a");
    c.add(key, "binary", "");
    EXPECT_FALSE(c.find(key));
    EXPECT_TRUE(c.list().empty());
    EXPECT_EQ(c.clear(), 0);
}

TEST(RuntimeCache, ManyWritersLeaveWholeEntries) {
    TemporaryFolder t;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&t] {
            RuntimeCache c(t.path());
            for (int k = 0; k < 20; ++k) {
                CacheKey key = cache_key(str("text ", k), "cubin");
                c.add(key, str("binary ", k), "nvrtc 13.0");
                EXPECT_EQ(c.find(key), str("binary ", k));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(RuntimeCache(t.path()).list().size(), 20U);
}

TEST(RuntimeCache, AFullDiskCostsTheCacheOnly) {
    TemporaryFolder t;
    CacheKey old_key = cache_key("old", "cubin");
    CacheKey key = cache_key("text", "cubin");
    std::string binary(5000, 'b');
    RuntimeCache folder(t.path() + "/folder");
    folder.add(old_key, "old", "nvrtc 13.0");
    std::string path = t.path() + "/file";
    {
        RuntimeCache file(path, RuntimeCache::Kind::File);
        file.add(old_key, "old", "nvrtc 13.0");
    }
    {
        FullDisk full(1000);
        folder.add(key, binary, "nvrtc 13.0");
        RuntimeCache file(path, RuntimeCache::Kind::File);
        file.add(key, binary, "nvrtc 13.0");
        file.flush();
        EXPECT_EQ(file.find(key), binary) << "this process has it";
    }
    EXPECT_FALSE(folder.find(key));
    EXPECT_EQ(folder.find(old_key), "old");
    RuntimeCache file(path, RuntimeCache::Kind::File);
    EXPECT_FALSE(file.find(key));
    EXPECT_EQ(file.find(old_key), "old");
    EXPECT_EQ(files_in(t.path() + "/folder"), 1U) << "no temporary files are left";
    EXPECT_EQ(files_in(t.path()), 2U);
}

TEST(RuntimeCache, AReadOnlyDiskIsReadOnly) {
    TemporaryFolder t;
    fs::permissions(t.path(), fs::perms(0755));
    CacheKey key = cache_key("text", "cubin");
    std::string folder = t.path() + "/folder";
    std::string path = folder + "/one";
    RuntimeCache(folder).add(key, "binary", "nvrtc 13.0");
    RuntimeCache(path, RuntimeCache::Kind::File).add(key, "binary", "nvrtc 13.0");
    fs::permissions(folder, fs::perms(0555));
    EXPECT_TRUE(elsewhere([&] {
        if (geteuid() == 0 && setuid(65534) != 0) { // the superuser writes everywhere
            return false;
        }
        CacheKey other = cache_key("other", "cubin");
        RuntimeCache c(folder);
        c.add(other, "x", "");
        RuntimeCache f(path, RuntimeCache::Kind::File);
        f.add(other, "x", "");
        f.flush();
        return c.find(key) == "binary" && !c.find(other) && f.find(key) == "binary" &&
               f.find(other) == "x";
    }));
    fs::permissions(folder, fs::perms(0755));
    EXPECT_EQ(files_in(folder), 2U);
    EXPECT_FALSE(RuntimeCache(path, RuntimeCache::Kind::File).find(cache_key("other", "cubin")));
}

TEST(RuntimeCache, AFileIsWrittenAtTheEndAndReadAtTheStart) {
    TemporaryFolder t;
    std::string path = t.path() + "/made/when/needed.bin";
    CacheKey key = cache_key("text", "cubin sm_90a");
    {
        RuntimeCache c(path, RuntimeCache::Kind::File);
        EXPECT_FALSE(c.find(key));
        c.add(key, "binary", "nvrtc 13.0");
        EXPECT_EQ(c.find(key), "binary");
        EXPECT_FALSE(fs::exists(path));
    }
    std::string first = bytes_of(path);
    {
        RuntimeCache c(path, RuntimeCache::Kind::File);
        EXPECT_EQ(c.find(key), "binary");
        ASSERT_EQ(c.list().size(), 1U);
        EXPECT_EQ(c.list()[0].nvrtc, "nvrtc 13.0");
        EXPECT_EQ(c.list()[0].compiler, "cubin sm_90a");
        EXPECT_EQ(c.list()[0].problem, "");
    }
    EXPECT_EQ(bytes_of(path), first);
    RuntimeCache c(path, RuntimeCache::Kind::File);
    EXPECT_EQ(c.clear(), 1);
    EXPECT_FALSE(c.find(key));
    EXPECT_FALSE(fs::exists(path));
}

TEST(RuntimeCache, EveryDamagedByteOfAFileIsNoticed) {
    Quiet quiet;
    TemporaryFolder t;
    std::string path = t.path() + "/one";
    CacheKey keys[] = {cache_key("a", "cubin"), cache_key("b", "cubin")};
    {
        RuntimeCache c(path, RuntimeCache::Kind::File);
        c.add(keys[0], "binary a", "nvrtc 13.0");
        c.add(keys[1], "binary b", "nvrtc 13.0");
    }
    std::string whole = bytes_of(path);
    size_t one = (whole.size() - 8) / 2; // both are as long
    for (size_t i = 8; i < whole.size(); ++i) {
        size_t in_entry = (i - 8) % one + 8;
        std::string bad = whole;
        bad[i] = static_cast<char>(bad[i] ^ 0x41);
        put(path, bad);
        RuntimeCache c(path, RuntimeCache::Kind::File);
        int found = (c.find(keys[0]) == "binary a" ? 1 : 0) + (c.find(keys[1]) == "binary b");
        int wrong = 0;
        for (const RuntimeCache::Entry& e : c.list()) {
            wrong += e.problem.empty() ? 0 : 1;
        }
        EXPECT_EQ(wrong, 1) << "byte " << i;
        // Damage in an entry costs that entry; damage before one also costs the later ones.
        EXPECT_EQ(found, in_entry - 8 >= 32 || i - 8 >= one ? 1 : 0) << "byte " << i;
    }
    put(path, whole.substr(0, whole.size() - 1));
    RuntimeCache c(path, RuntimeCache::Kind::File);
    c.add(cache_key("c", "cubin"), "binary c", "nvrtc 13.0");
    c.flush();
    EXPECT_EQ(RuntimeCache(path, RuntimeCache::Kind::File).list().size(), 2U)
        << "what is damaged is gone";
}

TEST(RuntimeCache, AFileOfSomethingElseIsLeftAlone) {
    TemporaryFolder t;
    std::string path = t.path() + "/model.onnx";
    put(path, "the only copy of a model");
    {
        RuntimeCache c(path, RuntimeCache::Kind::File);
        c.add(cache_key("a", "cubin"), "binary", "");
        EXPECT_EQ(c.find(cache_key("a", "cubin")), "binary");
        EXPECT_NE(c.list().front().problem, "");
    }
    EXPECT_EQ(RuntimeCache(path, RuntimeCache::Kind::File).clear(), 0);
    EXPECT_EQ(bytes_of(path), "the only copy of a model");
}

TEST(RuntimeCache, ProcessesShareAFile) {
    TemporaryFolder t;
    std::string path = t.path() + "/one";
    constexpr int processes = 4;
    constexpr int each = 25;
    EXPECT_TRUE(elsewhere([&] {
        std::vector<pid_t> children;
        for (int p = 0; p < processes; ++p) {
            pid_t child = fork();
            if (child == 0) {
                for (int k = 0; k < each; ++k) {
                    RuntimeCache c(path, RuntimeCache::Kind::File);
                    c.add(cache_key(str(p, ' ', k), "cubin"), str("binary ", p, ' ', k), "");
                }
                _exit(0);
            }
            children.push_back(child);
        }
        bool all = true;
        for (pid_t child : children) {
            int status = 0;
            waitpid(child, &status, 0);
            all = all && status == 0;
        }
        return all;
    }));
    RuntimeCache c(path, RuntimeCache::Kind::File);
    EXPECT_EQ(c.list().size(), static_cast<size_t>(processes * each));
    for (int p = 0; p < processes; ++p) {
        for (int k = 0; k < each; ++k) {
            EXPECT_EQ(c.find(cache_key(str(p, ' ', k), "cubin")), str("binary ", p, ' ', k));
        }
    }
    EXPECT_EQ(files_in(t.path()), 1U);
}

TEST(CacheInMemory, BytesGoFromOneToAnother) {
    RuntimeCache cache("", RuntimeCache::Kind::Memory);
    CacheKey one = cache_key("kernel one", "nvrtc 13.0 sm_90");
    CacheKey two = cache_key("kernel two", "nvrtc 13.0 sm_90");
    cache.add(one, "binary one", "13.0");
    std::string bytes = cache.bytes();
    RuntimeCache other("", RuntimeCache::Kind::Memory);
    other.add(two, "binary two", "13.0");
    EXPECT_TRUE(other.merge(std::as_bytes(std::span(bytes))));
    EXPECT_EQ(other.find(one), "binary one");
    EXPECT_EQ(other.find(two), "binary two");
    EXPECT_EQ(cache.find(two), std::nullopt);
    EXPECT_EQ(other.list().size(), 2U);
    std::string damaged = bytes;
    damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 1);
    RuntimeCache third("", RuntimeCache::Kind::Memory);
    EXPECT_FALSE(third.merge(std::as_bytes(std::span(damaged))));
    EXPECT_FALSE(third.merge(std::as_bytes(std::span(bytes).first(bytes.size() - 1))));
    EXPECT_FALSE(third.merge({}));
    EXPECT_EQ(third.list().size(), 0U);
    EXPECT_EQ(other.clear(), 2);
    EXPECT_EQ(other.find(one), std::nullopt);
    RuntimeCache folder(testing::TempDir() + "ingot_no_bytes");
    EXPECT_EQ(folder.bytes(), "");
    EXPECT_FALSE(folder.merge(std::as_bytes(std::span(bytes))));
}

} // namespace
} // namespace ingot::plan
