// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include "base/beneath.h"
#include "base/error.h"
#include "base/page_guard.h"
#include "base/pieces.h"
#include "base/read_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ingot {

namespace {

/// Closes its descriptor.
class Descriptor {
public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int value() const { return value_; }
    int release() { return std::exchange(value_, -1); }

private:
    int value_;
};

[[noreturn]] void fail_io(std::string_view action, std::string_view path, int error) {
    fail(ErrorCode::Io, "cannot ", action, " '", path, "': ", std::strerror(error));
}

void check_path(std::string_view path) {
    require(!path.empty(), ErrorCode::InvalidArgument, "expected a file path, got an empty one");
    require(path.find('\0') == std::string_view::npos, ErrorCode::InvalidArgument,
            "file path holds a NUL character: ", quote(path));
}

int open_readable(const std::string& path, int extra_flags) {
    check_path(path);
    int descriptor = -1;
    do {
        descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | extra_flags);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) {
        fail_io("open", path, errno);
    }
    return descriptor;
}

/// The status of an open file, which must be a regular one.
struct stat regular_file(int descriptor, std::string_view path, std::string_view verb = "map") {
    struct stat info {};
    if (::fstat(descriptor, &info) != 0) {
        fail_io("inspect", path, errno);
    }
    require(S_ISREG(info.st_mode), ErrorCode::Io, "cannot ", verb, " '", path,
            "': it is not a regular file");
    return info;
}

std::span<const std::byte> map_file(int descriptor, const struct stat& info,
                                    std::string_view path) {
    auto size = static_cast<size_t>(info.st_size);
    if (size == 0) {
        return {};
    }
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
        fail_io("map", path, errno);
    }
    return {static_cast<const std::byte*>(address), size};
}

bool has_parent_reference(std::string_view path) {
    while (true) {
        size_t slash = path.find('/');
        if (path.substr(0, slash) == "..") {
            return true;
        }
        if (slash == std::string_view::npos) {
            return false;
        }
        path.remove_prefix(slash + 1);
    }
}

void check_relative(std::string_view relative) {
    constexpr std::string_view advice = "; expected a relative path inside the model's folder";
    constexpr ErrorCode code = ErrorCode::InvalidModel;
    require(!relative.empty(), code, "file name is empty", advice);
    require(relative.find('\0') == std::string_view::npos, code, "file name ", quote(relative),
            " holds a NUL character", advice);
    require(relative.front() != '/', code, "file name ", quote(relative), " is absolute", advice);
    require(!has_parent_reference(relative), code, "file name ", quote(relative), " holds '..'",
            advice);
}

/// The file that a write to `path` replaces: the target of symbolic links, so that the links stay.
std::string write_target(std::string path) {
    check_path(path);
    std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (real == nullptr) {
        return path;
    }
    // The resolved name is looked at, since a link may be turned to a device meanwhile.
    struct stat info {};
    require(::lstat(real.get(), &info) != 0 || S_ISREG(info.st_mode), ErrorCode::Io,
            "cannot write '", path, "': it exists and is not a regular file");
    return real.get();
}

} // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
    // O_NONBLOCK: opening a FIFO must not hang.
    Descriptor descriptor(open_readable(path, O_NONBLOCK));
    struct stat info = regular_file(descriptor.value(), path);
    std::shared_ptr<MappedFile> file(new MappedFile);
    file->path_ = path;
    file->bytes_ = map_file(descriptor.value(), info, path);
    guard_pages(file->bytes_, file->path_);
    return file;
}

std::shared_ptr<const MappedFile> MappedFile::open_beneath(const std::string& folder,
                                                           std::string_view relative) {
    check_path(folder);
    check_relative(relative);
    std::string name(relative);
    std::string path = str(folder, folder.back() == '/' ? "" : "/", name);
    Descriptor root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (root.value() < 0) {
        fail_io("open folder", folder, errno);
    }
    BeneathResult result = open_beneath_by_kernel(root.value(), name);
    if (result.error == ENOSYS || result.error == EPERM) {
        result = open_beneath_by_component(root.value(), name);
    }
    Descriptor descriptor(result.descriptor);
    require(!result.escape, ErrorCode::InvalidModel, "refused to open '", path,
            "': it is, or passes through, a symbolic link; copy the file itself there");
    if (descriptor.value() < 0) {
        fail_io("open", path, result.error);
    }
    struct stat info = regular_file(descriptor.value(), path);
    require(info.st_nlink <= 1, ErrorCode::InvalidModel, "refused to open '", path, "': it has ",
            info.st_nlink, " hard links, expected 1; copy the file itself there");
    std::shared_ptr<MappedFile> file(new MappedFile);
    file->path_ = path;
    file->bytes_ = map_file(descriptor.value(), info, path);
    guard_pages(file->bytes_, file->path_);
    return file;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        release_pages(bytes_);
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

void MappedFile::release(std::span<const std::byte> part) const {
    if (part.empty()) {
        return;
    }
    CHECK(part.data() >= bytes_.data() &&
              part.data() + part.size() <= bytes_.data() + bytes_.size(),
          "released bytes lie outside the map");
    auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    auto begin = static_cast<size_t>(part.data() - bytes_.data());
    size_t end = begin + part.size();
    // Whole pages only: what shares a page with other bytes stays.
    begin = (begin + page - 1) / page * page;
    end = end == bytes_.size() ? end : end / page * page;
    if (begin < end) {
        ::madvise(const_cast<std::byte*>(bytes_.data() + begin), end - begin, MADV_DONTNEED);
    }
}

namespace {

constexpr int max_attempts = 100; // to find an unused temporary name

/// A path beside the target, unique within this process.
std::string temporary_name(const std::string& target) {
    static std::atomic<uint32_t> counter{0};
    return str(target, ".", ::getpid(), "-", counter.fetch_add(1), ".tmp");
}

/// Whether `name` has the form that temporary_name() gives for `target`.
bool is_temporary_of(std::string_view name, std::string_view target) {
    constexpr std::string_view end = ".tmp";
    if (!name.starts_with(target) || !name.ends_with(end) ||
        name.size() < target.size() + end.size() + 4 || name[target.size()] != '.') {
        return false;
    }
    name = name.substr(target.size() + 1, name.size() - target.size() - 1 - end.size());
    return name.find_first_not_of("0123456789-") == std::string_view::npos &&
           std::count(name.begin(), name.end(), '-') == 1;
}

/// Removes the temporary files of killed writers. A live writer holds a lock on its own.
void collect_left_over(const std::string& target) {
    std::string folder = parent_folder(target);
    std::string_view own = std::string_view(target).substr(target.rfind('/') + 1);
    DIR* list = ::opendir(folder.c_str());
    if (list == nullptr) {
        return;
    }
    while (const dirent* entry = ::readdir(list)) {
        if (!is_temporary_of(static_cast<const char*>(entry->d_name), own)) {
            continue;
        }
        int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        Descriptor left(::openat(::dirfd(list), static_cast<const char*>(entry->d_name), flags));
        struct stat info {};
        if (left.value() >= 0 && ::fstat(left.value(), &info) == 0 && S_ISREG(info.st_mode) &&
            ::flock(left.value(), LOCK_EX | LOCK_NB) == 0) {
            ::unlinkat(::dirfd(list), static_cast<const char*>(entry->d_name), 0);
        }
    }
    ::closedir(list);
}

/// Blocks only while another process checks in collect_left_over() whether the file is in use.
void lock(int descriptor) {
    while (::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
    }
}

/// An unnamed file in the folder of `path`, which vanishes with the process; -1 where the file
/// system has none.
int open_unnamed(const std::string& path) {
    if (::access("/proc/self/fd", X_OK) != 0) {
        return -1; // no later way to give it a name
    }
    return ::open(parent_folder(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

} // namespace

AtomicFile::AtomicFile(std::string path) : path_(write_target(std::move(path))) {
    collect_left_over(path_);
    descriptor_ = open_unnamed(path_);
    if (descriptor_ >= 0) {
        lock(descriptor_);
        return;
    }
    for (int i = 0; i < max_attempts && descriptor_ < 0; ++i) {
        temporary_ = temporary_name(path_);
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0 && errno != EEXIST && errno != EINTR) {
            break;
        }
        if (descriptor_ >= 0) {
            lock(descriptor_);
            struct stat info {};
            if (::fstat(descriptor_, &info) == 0 && info.st_nlink == 0) {
                ::close(std::exchange(descriptor_,
                                      -1)); // removed by another process before it was locked
            }
        }
    }
    if (descriptor_ < 0) {
        fail_io("create", temporary_, errno);
    }
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
        if (!temporary_.empty()) {
            ::unlink(temporary_.c_str());
        }
    }
}

void AtomicFile::write(std::span<const std::byte> data) {
    CHECK(descriptor_ >= 0, "write after commit");
    for_pieces(data, [this](std::span<const std::byte> part) {
        while (!part.empty()) {
            ssize_t n = ::write(descriptor_, part.data(), part.size());
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                fail_io("write", path_, errno);
            }
            position_ += static_cast<uint64_t>(n);
            part = part.subspan(static_cast<size_t>(n));
        }
    });
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> data) {
    CHECK(descriptor_ >= 0, "write after commit");
    CHECK(offset <= position_ && data.size() <= position_ - offset, "write_at beyond the end");
    while (!data.empty()) {
        ssize_t n = ::pwrite(descriptor_, data.data(), data.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            fail_io("write", path_, errno);
        }
        offset += static_cast<uint64_t>(n);
        data = data.subspan(static_cast<size_t>(n));
    }
}

void AtomicFile::commit() {
    CHECK(descriptor_ >= 0, "second commit");
    // Some network and FUSE file systems cannot sync; their contents are as durable as they get.
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOSYS) {
        fail_io("write", path_, errno);
    }
    std::string own = str("/proc/self/fd/", descriptor_);
    bool named = !temporary_.empty();
    for (int i = 0; i < max_attempts && !named; ++i) {
        temporary_ = temporary_name(path_);
        named =
            ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
        if (!named && errno != EEXIST) {
            break;
        }
    }
    if (!named) {
        fail_io("create", std::exchange(temporary_, {}), errno);
    }
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail_io("replace", path_, errno);
    }
    ::close(std::exchange(descriptor_, -1));
    // Makes the rename durable; where a folder cannot be synced, the file is still whole.
    Descriptor folder(::open(parent_folder(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.value() >= 0) {
        ::fsync(folder.value());
    }
}

std::string read_text_file(const std::string& path, uint64_t limit_bytes) {
    Descriptor descriptor(open_readable(path, O_NONBLOCK));
    static_cast<void>(regular_file(descriptor.value(), path, "read"));
    std::string text;
    std::array<char, 1 << 16> buffer{};
    while (true) {
        ssize_t n = ::read(descriptor.value(), buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            fail_io("read", path, errno);
        }
        if (n == 0) {
            return text;
        }
        require(static_cast<uint64_t>(n) <= limit_bytes - text.size(), ErrorCode::Io,
                "cannot read '", path, "': it is larger than the limit of ", limit_bytes, " bytes");
        text.append(buffer.data(), static_cast<size_t>(n));
    }
}

std::vector<std::byte> read_file(const std::string& path, uint64_t limit_bytes) {
    Descriptor descriptor(open_readable(path, O_NONBLOCK));
    struct stat info = regular_file(descriptor.value(), path);
    auto check_size = [&](uint64_t size) {
        require(size <= limit_bytes, ErrorCode::Io, "cannot read '", path,
                "': it is larger than the limit of ", limit_bytes, " bytes");
    };
    check_size(static_cast<uint64_t>(info.st_size));
    constexpr size_t step = 1 << 16; // beyond the initial size: the file may grow
    std::vector<std::byte> bytes(static_cast<size_t>(info.st_size) + 1);
    size_t come = 0;
    while (true) {
        ssize_t n = ::read(descriptor.value(), bytes.data() + come, bytes.size() - come);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            fail_io("read", path, errno);
        }
        come += static_cast<size_t>(n);
        check_size(come);
        if (n == 0) {
            bytes.resize(come);
            return bytes;
        }
        if (come == bytes.size()) {
            bytes.resize(come + step);
        }
    }
}

void write_file(const std::string& path, std::span<const std::byte> data) {
    AtomicFile file(path);
    file.write(data);
    file.commit();
}

void write_file(const std::string& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

std::string parent_folder(const std::string& path) {
    size_t end = path.find_last_not_of('/');
    size_t slash = end == std::string::npos ? 0 : path.rfind('/', end);
    if (path.empty() || slash == std::string::npos) {
        return ".";
    }
    size_t last = path.find_last_not_of('/', slash);
    return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

bool file_exists(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

} // namespace ingot
