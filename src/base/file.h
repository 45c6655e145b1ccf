// SPDX-License-Identifier: Apache-2.0
// Files: read-only maps, atomic writes, and opening strictly inside a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

/// A read-only map of a whole regular file. Shared, immutable, thread safe. Other processes may
/// write to the file meanwhile: read a length once, or use a copy (read_file.h). Truncation:
/// page_guard.h.
class MappedFile {
public:
    /// Errors (Io): missing, not a regular file, unreadable; the message names path and reason.
    static std::shared_ptr<const MappedFile> open(const std::string& path);
    /// Opens `relative` strictly inside `folder`: no absolute path, no "..", no symbolic link in
    /// any component, no hard link (link count above 1), regular files only, checked again on the
    /// open descriptor. Errors: InvalidModel for an escape, Io otherwise.
    static std::shared_ptr<const MappedFile> open_beneath(const std::string& folder,
                                                          std::string_view relative);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    std::span<const std::byte> bytes() const { return bytes_; }
    const std::string& path() const { return path_; }
    /// Tells the kernel that these pages are no longer needed; they can be read again.
    void release(std::span<const std::byte> part) const;

private:
    MappedFile() = default;
    std::span<const std::byte> bytes_;
    std::string path_;
};

/// Writes a file whole or not at all: an unnamed file in the same folder (a temporary name where
/// the file system has none), fsync, one rename. The previous file at `path` stays until the
/// rename. Nothing uncommitted is left; the next writer removes the leftovers of a killed process.
class AtomicFile {
public:
    explicit AtomicFile(std::string path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    /// More than 16 MiB can be stopped: Error(Interrupted).
    void write(std::span<const std::byte> data);
    void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
    /// Overwrites bytes that were already written (for headers).
    void write_at(uint64_t offset, std::span<const std::byte> data);
    uint64_t position() const { return position_; }
    void commit();

private:
    std::string path_;
    std::string temporary_;
    int descriptor_ = -1;
    uint64_t position_ = 0;
};

std::string read_text_file(const std::string& path, uint64_t limit_bytes = 64ULL << 20);
void write_file(const std::string& path, std::span<const std::byte> data); // atomic
void write_file(const std::string& path, std::string_view text);           // atomic
std::string parent_folder(const std::string& path);                        // "." when none
bool file_exists(const std::string& path);

} // namespace ingot
