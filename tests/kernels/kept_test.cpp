// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "emulator/compile.h"
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

TEST(Kept, ProgramsOutliveAMoveOfLinesIntoAPartOfAHeader) {
    std::string folder = ::testing::TempDir() + "parts_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    std::filesystem::create_directory(folder + "/emulator");
    const auto write = [&](const char* name, std::string_view text) {
        write_file(folder + "/emulator/" + name, text);
    };
    write("a.h", "// A part.\n#pragma once\n\nint b;\n#include \"emulator/b.h\"\n");
    write("b.h", "#pragma once\n\nint c;\n");
    EXPECT_EQ(with_parts("int a;\n#include \"emulator/a.h\"\nint d;", folder),
              "int a;\nint b;\nint c;\nint d;");
    write("b.h", "#pragma once\n\nlong c;\n"); // a changed part is another text
    EXPECT_EQ(with_parts("#include \"emulator/a.h\"\n", folder), "int b;\nlong c;\n");
    write("b.h", "int c;\n");
    try {
        with_parts("#include \"emulator/a.h\"\n", folder);
        FAIL() << "a part that may be included twice was taken";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(),
                     "emulator: the header b.h has no line '#pragma once' with an empty one "
                     "behind it");
    }
    std::filesystem::remove_all(folder);
}

TEST(Kept, TheFolderIsThere) {
    EXPECT_TRUE(file_exists(kept_folder() + "/swept"));
}

} // namespace
} // namespace ingot::emulator
