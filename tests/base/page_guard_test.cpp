// SPDX-License-Identifier: Apache-2.0
// Files that are truncated while mapped read as zeros, and a query reports it.
#include "base/error.h"
#include "base/file.h"
#include "base/page_guard.h"
#include "base/process.h"
#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <numeric>

namespace ingot {
namespace {

constexpr size_t page = 4096;

std::string error_of(std::span<const std::byte> bytes) {
    try {
        check_pages(bytes);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Io);
        return e.what();
    }
    return "";
}

uint64_t sum_of(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}, [](uint64_t a, std::byte b) {
        return a + std::to_integer<uint64_t>(b);
    });
}

TEST(PageGuard, ATruncatedFileIsAnErrorAndNoSignal) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/map";
    std::string other = folder.path() + "/other";
    write_file(path, std::string(64 * page, '\1'));
    write_file(other, std::string(64 * page, '\1'));
    auto file = MappedFile::open(path);
    auto whole = MappedFile::open(other);
    EXPECT_EQ(error_of(file->bytes()), "");
    ASSERT_EQ(::truncate(path.c_str(), page), 0);
    EXPECT_EQ(sum_of(file->bytes().subspan(10 * page, 3)), 0U);
    EXPECT_EQ(sum_of(file->bytes()), page); // the first page is still there
    EXPECT_TRUE(pages_were_lost());
    for (std::span<const std::byte> bytes : {file->bytes(), file->bytes().subspan(20 * page, 7)}) {
        EXPECT_EQ(error_of(bytes), str("cannot read all of '", path,
                                       "': it was truncated while it was in use, or its disk "
                                       "fails; write a file anew under another name, and rename "
                                       "that"));
    }
    EXPECT_EQ(sum_of(whole->bytes()), 64 * page);
    EXPECT_EQ(error_of(whole->bytes()), ""); // another file is another matter
    std::byte own{};
    EXPECT_EQ(error_of({&own, 1}), "");
    const std::byte* there = file->bytes().data();
    file.reset();
    EXPECT_EQ(error_of({there, 1}), "");
    EXPECT_EQ(error_of(MappedFile::open(path)->bytes()), "");
}

/// Faults outside our files go to the earlier handler.
void die_with_earlier_handler() {
    struct sigaction action {};
    action.sa_handler = [](int) { ::_exit(3); };
    ::sigaction(SIGBUS, &action, nullptr);
    TemporaryFolder folder;
    std::string path = folder.path() + "/map";
    write_file(path, std::string(4 * page, '\1'));
    auto ours = MappedFile::open(path);
    std::FILE* f = std::fopen(path.c_str(), "re");
    auto* theirs = static_cast<volatile char*>(
        ::mmap(nullptr, 4 * page, PROT_READ, MAP_SHARED, ::fileno(f), 0));
    ::truncate(path.c_str(), 0);
    if (sum_of(ours->bytes()) == 0) {
        static_cast<void>(theirs[0]);
    }
    ::_exit(4);
}

TEST(PageGuard, OnlyWhatLiesInOneMapIsGuarded) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/map";
    write_file(path, std::string(3 * page, '\1'));
    auto file = MappedFile::open(path);
    std::span<const std::byte> all = file->bytes();
    EXPECT_TRUE(are_guarded(all));
    EXPECT_TRUE(are_guarded(all.subspan(page, 2 * page)));
    EXPECT_FALSE(are_guarded({all.data() + page, 2 * page + 1}));
    std::vector<std::byte> own(page);
    EXPECT_FALSE(are_guarded(own));
    file.reset();
    EXPECT_FALSE(are_guarded(all));
}

TEST(PageGuard, OtherSignalsAreHandedOn) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(die_with_earlier_handler(), testing::ExitedWithCode(3), "");
}

TEST(ReadFile, CopiesTheWholeOrRefuses) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/f";
    write_file(path, std::string(200'000, 'x'));
    std::vector<std::byte> bytes = read_file(path, 200'000);
    EXPECT_EQ(bytes.size(), 200'000U);
    EXPECT_EQ(sum_of(bytes), 200'000U * 'x');
    auto message = [](const std::string& from) {
        try {
            read_file(from, 199'999);
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_EQ(message(path),
              str("cannot read '", path, "': it is larger than the limit of 199999 bytes"));
    EXPECT_EQ(message(folder.path()),
              str("cannot map '", folder.path(), "': it is not a regular file"));
    write_file(path, std::string_view());
    EXPECT_TRUE(read_file(path, 0).empty());
}

} // namespace
} // namespace ingot
