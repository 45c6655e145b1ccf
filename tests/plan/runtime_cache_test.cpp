// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"
#include "base/text.h"
#include "plan/runtime_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ingot::plan {
namespace {

namespace fs = std::filesystem;

std::string only_file(const std::string& folder) {
    EXPECT_EQ(RuntimeCache(folder).list().size(), 1U);
    return folder + "/" + RuntimeCache(folder).list().at(0).file;
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
    TemporaryFolder t;
    RuntimeCache c(t.path());
    CacheKey key = cache_key("text", "cubin sm_90a");
    c.add(key, "a binary", "nvrtc 13.0");
    std::string path = only_file(t.path());
    std::ifstream in(path, std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(in)), {});
    auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
    constexpr size_t reserved_at = 20; // four bytes that mean nothing yet
    for (size_t i = 0; i < whole.size(); ++i) {
        if (i >= reserved_at && i < reserved_at + 4) {
            continue;
        }
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

} // namespace
} // namespace ingot::plan
