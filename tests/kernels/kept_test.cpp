// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "emulator/kept.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>

namespace ingot::emulator {
namespace {

constexpr int64_t year = 365 * 24 * 60 * 60;

void set_age(const std::string& path, int64_t seconds) {
    timespec then{.tv_sec = std::time(nullptr) - seconds, .tv_nsec = 0};
    timespec times[2] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(Kept, WhatNobodyAskedForIsRemoved) {
    std::string folder = ::testing::TempDir() + "kept_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder += '/';
    for (const char* name : {"old", "asked", "new"}) {
        write_file(folder + name, std::string_view("x"));
    }
    set_age(folder + "old", year);
    set_age(folder + "asked", year);
    EXPECT_TRUE(found_kept(folder + "asked"));
    EXPECT_FALSE(found_kept(folder + "none"));
    sweep(folder, std::time(nullptr) - year / 2);
    EXPECT_FALSE(file_exists(folder + "old"));
    EXPECT_TRUE(file_exists(folder + "asked"));
    EXPECT_TRUE(file_exists(folder + "new"));
    std::filesystem::remove_all(folder);
}

TEST(Kept, TheFolderIsThere) {
    EXPECT_TRUE(file_exists(kept_folder() + "/swept"));
}

} // namespace
} // namespace ingot::emulator
