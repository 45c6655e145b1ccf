// SPDX-License-Identifier: Apache-2.0
// Names that change between check and use, and every kind of place a file may be written to: what
// lies outside of the folder is neither read nor written.
#include "base/beneath.h"
#include "base/error.h"
#include "base/file.h"
#include "counts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace ingot {
namespace {

namespace fs = std::filesystem;

const std::string secret = "SECRET!!";
const std::string inside = "weights.";

/// A folder "model", and beside it what must stay as it is.
class Places : public testing::Test {
protected:
    Places() {
        std::string pattern = (fs::temp_directory_path() / "ingot-swap-test-XXXXXX").string();
        root_ = ::mkdtemp(pattern.data());
        fs::create_directories(path("model/sub"));
        fs::create_directory(path("outside"));
        put("outside/w.bin", secret);
    }
    ~Places() override { fs::remove_all(root_); }

    std::string path(const std::string& name) const { return root_ + "/" + name; }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }
    std::string get(const std::string& name) const {
        std::ifstream in(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    std::string root_;
};

/// Repeats `f` on a thread of its own while it lives.
class Meanwhile {
public:
    explicit Meanwhile(std::function<void(int)> f)
        : thread_([this, f = std::move(f)] {
              for (int i = 0; !done_; ++i) {
                  f(i);
                  ++turns_;
              }
          }) {}
    ~Meanwhile() {
        done_ = true;
        thread_.join();
    }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;
    int turns() const { return turns_; }

private:
    std::atomic<bool> done_{false};
    std::atomic<int> turns_{0};
    std::thread thread_;
};

constexpr int iterations = 10'000;

/// How the reads of a name that changes its meaning ended.
struct Ends {
    int64_t inside = 0;
    int64_t refused = 0;
    int64_t escaped = 0;
    void count(const std::string& text) {
        (text == inside_text() ? inside : text.empty() ? refused : escaped)++;
    }
    static const std::string& inside_text() { return ingot::inside; }
};

std::string text_of(int descriptor) {
    std::string text(inside.size(), '\0');
    ssize_t n = ::read(descriptor, text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    ::close(descriptor);
    return text;
}

using Reader = std::string (*)(const std::string& folder, const std::string& name);

std::string read_map(const std::string& folder, const std::string& name) {
    try {
        auto file = MappedFile::open_beneath(folder, name);
        return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
    } catch (const Error& e) {
        EXPECT_EQ(e.message().find(secret), std::string::npos);
        return "";
    }
}

/// Where the kernel has no openat2.
std::string read_by_component(const std::string& folder, const std::string& name) {
    int root = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    BeneathResult r = open_beneath_by_component(root, name);
    ::close(root);
    return r.descriptor < 0 ? "" : text_of(r.descriptor);
}

class SwapRace : public Places, public testing::WithParamInterface<Reader> {
protected:
    /// Reads while `turn` gives the name another meaning each time.
    Ends race(const std::string& name, const std::function<void(int)>& turn) {
        Ends ends;
        Meanwhile swaps(turn);
        auto enough = [&] { return swaps.turns() >= 100 && ends.inside > 0 && ends.refused > 0; };
        for (int i = 0; i < iterations || (!enough() && i < 100 * iterations); ++i) {
            ends.count(GetParam()(path("model"), name));
        }
        return ends;
    }
    void expect_never_outside(const Ends& e) {
        EXPECT_EQ(e.escaped, 0);
        EXPECT_GT(e.inside, 0) << "the file was never there";
        EXPECT_GT(e.refused, 0) << "the link was never there";
        test::record_injections(e.inside + e.refused + e.escaped, e.refused);
    }
};

TEST_P(SwapRace, AFileAndALinkChangePlaces) {
    expect_never_outside(race("w.bin", [this](int i) {
        fs::path next = path(i % 2 == 0 ? "model/next_file" : "model/next_link");
        if (i % 2 == 0) {
            put("model/next_file", inside);
        } else {
            fs::create_symlink(path("outside/w.bin"), next);
        }
        fs::rename(next, path("model/w.bin"));
    }));
}

TEST_P(SwapRace, AFolderAndALinkChangePlaces) {
    put("model/sub/w.bin", inside);
    fs::create_directory_symlink(path("outside"), path("model/other"));
    expect_never_outside(race("sub/w.bin", [this](int) {
        ASSERT_EQ(::renameat2(AT_FDCWD, path("model/sub").c_str(), AT_FDCWD,
                              path("model/other").c_str(), RENAME_EXCHANGE),
                  0);
    }));
}

INSTANTIATE_TEST_SUITE_P(Readers, SwapRace, testing::Values(&read_map, &read_by_component),
                         [](const auto& p) {
                             return p.param == &read_map ? "Map" : "ByComponent";
                         });

// --- writing

/// One kind of target. `make` gives it to the name "out"; `error` is a part of the text, "" where
/// writing works.
struct Target {
    const char* name;
    void (*make)(const std::string& folder);
    const char* error;
    const char* result; // the file that holds the new text where it works
};

void bind_socket(const std::string& path) {
    int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(s);
}

const Target targets[] = {
    {"nothing", [](const std::string&) {}, "", "out"},
    {"a file", [](const std::string& f) { std::ofstream(f + "/out") << "old"; }, "", "out"},
    {"a file that may only be read",
     [](const std::string& f) {
         std::ofstream(f + "/out") << "old";
         fs::permissions(f + "/out", fs::perms::owner_read);
     },
     "", "out"},
    {"a hard link, whose other name keeps its text",
     [](const std::string& f) { fs::create_hard_link(f + "/../outside/w.bin", f + "/out"); }, "",
     "out"},
    {"a link to a file",
     [](const std::string& f) {
         std::ofstream(f + "/file") << "old";
         fs::create_symlink("file", f + "/out");
     },
     "", "file"},
    {"a link to a link to a file",
     [](const std::string& f) {
         std::ofstream(f + "/file") << "old";
         fs::create_symlink("file", f + "/second");
         fs::create_symlink("second", f + "/out");
     },
     "", "file"},
    {"a link to nothing", [](const std::string& f) { fs::create_symlink("none", f + "/out"); }, "",
     "out"},
    {"a link to itself", [](const std::string& f) { fs::create_symlink("out", f + "/out"); }, "",
     "out"},
    {"a folder", [](const std::string& f) { fs::create_directory(f + "/out"); },
     "it exists and is not a regular file", ""},
    {"a link to a folder", [](const std::string& f) { fs::create_symlink("sub", f + "/out"); },
     "it exists and is not a regular file", ""},
    {"a FIFO", [](const std::string& f) { EXPECT_EQ(::mkfifo((f + "/out").c_str(), 0600), 0); },
     "it exists and is not a regular file", ""},
    {"a link to a FIFO",
     [](const std::string& f) {
         EXPECT_EQ(::mkfifo((f + "/fifo").c_str(), 0600), 0);
         fs::create_symlink("fifo", f + "/out");
     },
     "it exists and is not a regular file", ""},
    {"a socket", [](const std::string& f) { bind_socket(f + "/out"); },
     "it exists and is not a regular file", ""},
    {"a link to /dev/full",
     [](const std::string& f) { fs::create_symlink("/dev/full", f + "/out"); },
     "it exists and is not a regular file", ""},
    {"a link to /dev/null",
     [](const std::string& f) { fs::create_symlink("/dev/null", f + "/out"); },
     "it exists and is not a regular file", ""},
    {"a link to a name below a file",
     [](const std::string& f) {
         std::ofstream(f + "/file") << "old";
         fs::create_symlink("file/below", f + "/out");
     },
     "", "out"},
};

TEST_F(Places, EveryKindOfTargetIsWrittenOrRefused) {
    int64_t refused = 0;
    for (const Target& t : targets) {
        SCOPED_TRACE(t.name);
        fs::remove_all(path("model"));
        fs::create_directories(path("model/sub"));
        t.make(path("model"));
        std::string error;
        try {
            write_file(path("model/out"), std::string_view("new"));
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::Io);
            error = e.message();
        }
        if (*t.error == 0) {
            EXPECT_EQ(error, "");
            EXPECT_EQ(get(std::string("model/") + t.result), "new");
        } else {
            EXPECT_EQ(error, "cannot write '" + path("model/out") + "': " + t.error);
            ++refused;
        }
        EXPECT_EQ(get("outside/w.bin"), secret);
        EXPECT_TRUE(fs::is_empty(path("model/sub")));
        for (const auto& entry : fs::directory_iterator(path("model"))) {
            EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << entry.path();
        }
    }
    test::record_injections(std::size(targets), refused);
}

TEST_F(Places, NamesThatCannotBeWrittenAreRefused) {
    put("file", "old");
    const std::pair<std::string, std::string> names[] = {
        {path("none/out"), "No such file or directory"},
        {path("file/out"), "Not a directory"},
        {path("model/") + std::string(300, 'x'), "File name too long"},
        {"/dev/full", "it exists and is not a regular file"},
        {"/dev/null", "it exists and is not a regular file"},
        {"/proc/self/mem", ""},
        {"/proc/none", ""},
        {path("model/"), "it exists and is not a regular file"},
        {std::string("out\0x", 5), "file path holds a NUL character"},
    };
    for (const auto& [name, reason] : names) {
        try {
            write_file(name, std::string_view("new"));
            ADD_FAILURE() << name << " was written";
        } catch (const Error& e) {
            EXPECT_NE(e.message().find(reason), std::string::npos) << e.message();
        }
    }
    EXPECT_EQ(get("file"), "old");
    test::record_injections(std::size(names), std::size(names));
}

/// The target changes between check and use: a write replaces a name in its folder, never what a
/// link points to outside of it.
TEST_F(Places, WhatALinkPointsToAfterTheCheckIsNotWritten) {
    put("model/out", "old");
    const std::string special = path("outside/socket");
    ASSERT_EQ(::mknod(special.c_str(), S_IFSOCK | 0600, 0), 0);
    std::atomic<int64_t> refused = 0;
    int64_t written = 0;
    {
        Meanwhile swaps([this, &special](int i) {
            const std::string next = path("model/next");
            std::error_code ignored;
            if (i % 3 == 0) {
                fs::create_symlink(special, next, ignored);
            } else if (i % 3 == 1) {
                put("model/next", "old");
            } else {
                fs::create_symlink("none", next, ignored);
            }
            fs::rename(next, path("model/out"), ignored);
        });
        auto enough = [&] { return swaps.turns() >= 100 && written > 0 && refused > 0; };
        for (int i = 0; i < 2000 || !enough(); ++i) {
            try {
                write_file(path("model/out"), std::string_view("new"));
                ++written;
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::Io) << e.what();
                ++refused;
            }
        }
    }
    EXPECT_TRUE(fs::is_socket(fs::symlink_status(special))) << "it was replaced";
    EXPECT_EQ(get("outside/w.bin"), secret);
    for (const auto& entry : fs::directory_iterator(path("model"))) {
        std::string name = entry.path().filename();
        EXPECT_TRUE(name == "out" || name == "sub" || name == "next") << name;
    }
    test::record_injections(written + refused, refused);
}

/// A link that is turned to a file outside after the check: its old target is replaced, the new one
/// stays as it is.
TEST_F(Places, ALinkThatIsTurnedMeanwhileIsNotFollowed) {
    put("model/file", "old");
    fs::create_symlink("file", path("model/out"));
    AtomicFile file(path("model/out"));
    file.write("new");
    fs::remove(path("model/out"));
    fs::create_symlink(path("outside/w.bin"), path("model/out"));
    file.commit();
    EXPECT_EQ(get("outside/w.bin"), secret);
    EXPECT_EQ(get("model/file"), "new");
    put("model/plain", "old");
    AtomicFile other(path("model/plain"));
    other.write("new");
    fs::remove(path("model/plain"));
    fs::create_symlink(path("outside/w.bin"), path("model/plain"));
    other.commit();
    EXPECT_EQ(get("outside/w.bin"), secret);
    EXPECT_FALSE(fs::is_symlink(path("model/plain")));
    EXPECT_EQ(get("model/plain"), "new");
}

} // namespace
} // namespace ingot
