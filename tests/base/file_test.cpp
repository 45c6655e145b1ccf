// SPDX-License-Identifier: Apache-2.0
#include "base/beneath.h"
#include "base/error.h"
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ingot {
namespace {

namespace fs = std::filesystem;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A fresh folder for each test, removed afterwards.
class Files : public testing::Test {
protected:
    Files() {
        std::string pattern = (fs::temp_directory_path() / "ingot-file-test-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~Files() override { fs::remove_all(folder_); }

    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    void put(const std::string& name, const std::string& content) const {
        fs::create_directories(fs::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << content;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> list;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            list.push_back(entry.path().filename().string());
        }
        std::sort(list.begin(), list.end());
        return list;
    }

    std::string folder_;
};

/// The error that f throws; fails the test when it throws none.
template <class F>
Error error_of(const F& f) {
    try {
        f();
    } catch (const Error& e) {
        return e;
    }
    ADD_FAILURE() << "expected an error";
    return {ErrorCode::Internal, "nothing was thrown"};
}

using MapTest = Files;

TEST_F(MapTest, maps_whole_files) {
    put("a", "hello");
    auto file = MappedFile::open(path("a"));
    EXPECT_EQ(text_of(file->bytes()), "hello");
    EXPECT_EQ(file->path(), path("a"));
    fs::remove(path("a"));
    EXPECT_EQ(text_of(file->bytes()), "hello") << "the map outlives the name";
}

TEST_F(MapTest, an_empty_file_is_empty) {
    put("empty", "");
    EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
    EXPECT_TRUE(MappedFile::open_beneath(folder_, "empty")->bytes().empty());
}

TEST_F(MapTest, errors_name_path_and_reason) {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    Error missing = error_of([&] { MappedFile::open(path("missing")); });
    EXPECT_EQ(missing.code(), ErrorCode::Io);
    EXPECT_EQ(missing.message(),
              "cannot open '" + path("missing") + "': No such file or directory");
    for (const std::string& odd : {folder_, path("fifo"), std::string("/dev/null")}) {
        Error e = error_of([&] { MappedFile::open(odd); });
        EXPECT_EQ(e.code(), ErrorCode::Io);
        EXPECT_EQ(e.message(), "cannot map '" + odd + "': it is not a regular file");
    }
    EXPECT_EQ(error_of([&] { MappedFile::open(path("a") + '\0' + "b"); }).code(),
              ErrorCode::InvalidArgument);
    EXPECT_EQ(error_of([&] { MappedFile::open(""); }).code(), ErrorCode::InvalidArgument);
}

TEST_F(MapTest, released_pages_read_the_same_again) {
    std::string content;
    for (int i = 0; i < 100000; ++i) {
        content += static_cast<char>(i % 251);
    }
    put("big", content);
    auto file = MappedFile::open(path("big"));
    ASSERT_EQ(text_of(file->bytes()), content);
    file->release({});
    file->release(file->bytes().subspan(1, 10));
    file->release(file->bytes().subspan(5000, 50000));
    file->release(file->bytes());
    EXPECT_EQ(text_of(file->bytes()), content);
}

TEST_F(MapTest, opens_files_beneath_a_folder) {
    put("model/weights.bin", "one");
    put("model/sub/deep/more.bin", "two");
    std::string model = path("model");
    EXPECT_EQ(text_of(MappedFile::open_beneath(model, "weights.bin")->bytes()), "one");
    EXPECT_EQ(text_of(MappedFile::open_beneath(model + "/", "./weights.bin")->bytes()), "one");
    EXPECT_EQ(text_of(MappedFile::open_beneath(model, "sub/deep/more.bin")->bytes()), "two");
    EXPECT_EQ(text_of(MappedFile::open_beneath(model, "sub//deep/more.bin")->bytes()), "two");
    fs::create_directory_symlink(model, path("link"));
    EXPECT_EQ(text_of(MappedFile::open_beneath(path("link"), "weights.bin")->bytes()), "one")
        << "the folder itself is the user's choice";
}

TEST_F(MapTest, refuses_names_that_leave_the_folder) {
    put("secret", "s");
    put("model/weights.bin", "w");
    put("model/..hidden", "fine");
    std::string model = path("model");
    for (const std::string& name :
         {std::string("../secret"), std::string(".."), std::string("sub/../../secret"),
          std::string("./../secret"), std::string("weights.bin/.."), path("secret"),
          path("model/weights.bin"), std::string("/"), std::string(),
          std::string("weights.bin\0x", 13)}) {
        Error e = error_of([&] { MappedFile::open_beneath(model, name); });
        EXPECT_EQ(e.code(), ErrorCode::InvalidModel) << name;
        EXPECT_NE(e.message().find("expected a relative path"), std::string::npos) << e.message();
    }
    EXPECT_EQ(text_of(MappedFile::open_beneath(model, "..hidden")->bytes()), "fine");
}

TEST_F(MapTest, refuses_symbolic_and_hard_links) {
    put("outside/secret", "s");
    put("model/own", "o");
    std::string model = path("model");
    fs::create_symlink(path("outside/secret"), path("model/final"));
    fs::create_symlink("own", path("model/inner"));
    fs::create_directory_symlink(path("outside"), path("model/parent"));
    fs::create_symlink("nowhere", path("model/dangling"));
    for (const char* name : {"final", "inner", "parent/secret", "dangling"}) {
        Error e = error_of([&] { MappedFile::open_beneath(model, name); });
        EXPECT_EQ(e.code(), ErrorCode::InvalidModel) << name;
        EXPECT_NE(e.message().find("symbolic link"), std::string::npos) << e.message();
    }
    fs::create_hard_link(path("outside/secret"), path("model/hard"));
    Error e = error_of([&] { MappedFile::open_beneath(model, "hard"); });
    EXPECT_EQ(e.code(), ErrorCode::InvalidModel);
    EXPECT_NE(e.message().find("2 hard links"), std::string::npos) << e.message();
}

TEST_F(MapTest, other_failures_beneath_are_io_errors) {
    put("model/file", "f");
    fs::create_directory(path("model/folder"));
    ASSERT_EQ(::mkfifo(path("model/fifo").c_str(), 0600), 0);
    std::string model = path("model");
    for (const char* name :
         {"missing", "missing/file", "file/below", "folder", "folder/", "fifo"}) {
        Error e = error_of([&] { MappedFile::open_beneath(model, name); });
        EXPECT_EQ(e.code(), ErrorCode::Io) << name << ": " << e.message();
        EXPECT_NE(e.message().find(name), std::string::npos) << e.message();
    }
    EXPECT_EQ(error_of([&] { MappedFile::open_beneath(path("none"), "file"); }).code(),
              ErrorCode::Io);
}

/// Both ways to open beneath a folder must agree, whichever this kernel uses.
TEST_F(MapTest, the_fallback_agrees_with_the_kernel) {
    put("outside/secret", "s");
    put("model/sub/file", "f");
    fs::create_symlink("file", path("model/sub/link"));
    fs::create_directory_symlink("sub", path("model/parent"));
    fs::create_directory_symlink(path("outside"), path("model/out"));
    int root = ::open(path("model").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(root, 0);
    int error = open_beneath_by_kernel(root, "sub/file").error;
    if (error == ENOSYS || error == EPERM) {
        ::close(root);
        GTEST_SKIP() << "openat2 is not to be had here: nothing to compare with";
    }
    for (const char* name : {"sub/file", "./sub/./file", "sub//file", "sub", "sub/", "sub/link",
                             "parent/file", "out/secret", "missing", "sub/missing", "sub/file/x"}) {
        BeneathResult kernel = open_beneath_by_kernel(root, name);
        BeneathResult steps = open_beneath_by_component(root, name);
        EXPECT_EQ(kernel.descriptor >= 0, steps.descriptor >= 0) << name;
        EXPECT_EQ(kernel.error, steps.error) << name;
        EXPECT_EQ(kernel.escape, steps.escape) << name;
        for (int descriptor : {kernel.descriptor, steps.descriptor}) {
            if (descriptor >= 0) {
                EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << name;
                ::close(descriptor);
            }
        }
    }
    ::close(root);
}

using AtomicFileTest = Files;

TEST_F(AtomicFileTest, old_content_stays_until_commit) {
    put("engine", "old");
    {
        AtomicFile file(path("engine"));
        file.write("new con");
        file.write("tent");
        EXPECT_EQ(file.position(), 11U);
        EXPECT_EQ(read_text_file(path("engine")), "old");
        EXPECT_LE(names().size(), 2U) << "where files need names, one stands beside the target";
        file.write_at(4, std::as_bytes(std::span("CON", 3)));
        EXPECT_EQ(file.position(), 11U);
        file.commit();
        EXPECT_EQ(read_text_file(path("engine")), "new CONtent");
    }
    EXPECT_EQ(names(), std::vector<std::string>{"engine"});
}

TEST_F(AtomicFileTest, nothing_is_left_without_commit) {
    put("engine", "old");
    {
        AtomicFile replaced(path("engine"));
        replaced.write("new");
        AtomicFile fresh(path("fresh"));
        fresh.write("new");
    }
    EXPECT_EQ(names(), std::vector<std::string>{"engine"});
    EXPECT_EQ(read_text_file(path("engine")), "old");
}

TEST_F(AtomicFileTest, killed_writers_leave_nothing_for_ever) {
    put("engine", "old");
    for (int i = 0; i < 3; ++i) {
        pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            AtomicFile file(path("engine"));
            file.write(std::string(100000, 'x'));
            ::raise(SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        EXPECT_LE(names().size(), 2U) << "not one more for each";
        EXPECT_EQ(read_text_file(path("engine")), "old");
    }
    write_file(path("engine"), "new");
    EXPECT_EQ(names(), std::vector<std::string>{"engine"});
}

// Leftovers of file systems without unnamed files, and of older releases.
TEST_F(AtomicFileTest, what_killed_writers_left_is_collected) {
    put("engine.4711-0.tmp", "half");
    put("engine.4711-12.tmp", "half");
    std::vector<std::string> others = {"engine.1-2-3.tmp", "engine.a-1.tmp", "engine.tmp",
                                       "engine2.1-1.tmp", "x.engine.1-1.tmp"};
    for (const std::string& name : others) {
        put(name, "somebody else's");
    }
    int busy = ::open(path("engine.4712-0.tmp").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(busy, LOCK_EX | LOCK_NB), 0); // it is being written
    write_file(path("engine"), "new");
    std::vector<std::string> expected = others;
    expected.insert(expected.end(), {"engine", "engine.4712-0.tmp"});
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(names(), expected);
    ::close(busy);
    write_file(path("engine"), "newer");
    EXPECT_FALSE(fs::exists(path("engine.4712-0.tmp")));
    EXPECT_EQ(read_text_file(path("engine")), "newer");
}

TEST_F(AtomicFileTest, an_open_map_keeps_the_old_content) {
    put("engine", "old");
    auto map = MappedFile::open(path("engine"));
    write_file(path("engine"), "new!");
    EXPECT_EQ(text_of(map->bytes()), "old");
    EXPECT_EQ(read_text_file(path("engine")), "new!");
}

TEST_F(AtomicFileTest, two_writers_do_not_mix) {
    AtomicFile first(path("engine"));
    AtomicFile second(path("engine"));
    first.write("first");
    second.write("second");
    first.commit();
    EXPECT_EQ(read_text_file(path("engine")), "first");
    second.commit();
    EXPECT_EQ(read_text_file(path("engine")), "second");
    EXPECT_EQ(names(), std::vector<std::string>{"engine"});
}

TEST_F(AtomicFileTest, a_link_stays_and_its_target_is_replaced) {
    put("store/engine", "old");
    fs::create_symlink("store/engine", path("link"));
    write_file(path("link"), "new");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(read_text_file(path("store/engine")), "new");
}

TEST_F(AtomicFileTest, respects_the_umask) {
    mode_t before = ::umask(027);
    write_file(path("engine"), "x");
    ::umask(before);
    struct stat info {};
    ASSERT_EQ(::stat(path("engine").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0640U);
}

TEST_F(AtomicFileTest, refuses_targets_that_are_no_files) {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    for (const std::string& odd : {folder_, path("fifo"), std::string("/dev/null")}) {
        Error e = error_of([&] { AtomicFile file(odd); });
        EXPECT_EQ(e.code(), ErrorCode::Io);
        EXPECT_NE(e.message().find("'" + odd + "'"), std::string::npos) << e.message();
    }
    EXPECT_EQ(error_of([&] { AtomicFile file(path("none/engine")); }).code(), ErrorCode::Io);
    EXPECT_EQ(error_of([&] { AtomicFile file(""); }).code(), ErrorCode::InvalidArgument);
}

using TextFileTest = Files;

TEST_F(TextFileTest, reads_up_to_the_limit) {
    std::string big(200000, 'x');
    put("big", big);
    put("empty", "");
    EXPECT_EQ(read_text_file(path("big")), big);
    EXPECT_EQ(read_text_file(path("big"), big.size()), big);
    EXPECT_EQ(read_text_file(path("empty"), 0), "");
    Error e = error_of([&] { read_text_file(path("big"), big.size() - 1); });
    EXPECT_EQ(e.code(), ErrorCode::Io);
    EXPECT_NE(e.message().find("limit of 199999 bytes"), std::string::npos) << e.message();
    EXPECT_EQ(error_of([&] { read_text_file(folder_); }).code(), ErrorCode::Io);
    EXPECT_EQ(error_of([&] { read_text_file(path("missing")); }).code(), ErrorCode::Io);
}

TEST_F(TextFileTest, file_exists_means_a_regular_file) {
    put("a", "");
    EXPECT_TRUE(file_exists(path("a")));
    EXPECT_FALSE(file_exists(path("b")));
    EXPECT_FALSE(file_exists(folder_));
    EXPECT_FALSE(file_exists(""));
}

TEST(parent_folder, follows_dirname) {
    EXPECT_EQ(parent_folder("a"), ".");
    EXPECT_EQ(parent_folder("a/b"), "a");
    EXPECT_EQ(parent_folder("a/b/"), "a");
    EXPECT_EQ(parent_folder("a//b"), "a");
    EXPECT_EQ(parent_folder("/a"), "/");
    EXPECT_EQ(parent_folder("/a/b"), "/a");
    EXPECT_EQ(parent_folder("//a"), "/");
    EXPECT_EQ(parent_folder("/"), "/");
    EXPECT_EQ(parent_folder("a/"), ".");
    EXPECT_EQ(parent_folder(""), ".");
}

} // namespace
} // namespace ingot
