// SPDX-License-Identifier: Apache-2.0
// The runtime cache: compiled kernels in a folder (one file per entry) or in one file, shared by
// any number of processes. A full or read-only disk disables the cache and never fails the run.
#pragma once

#include "base/file_lock.h"
#include "base/hash.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::plan {

/// Part of every key of kernels and timings; incremented when the calling convention changes.
inline constexpr uint32_t kernel_abi = 1;

class KernelFile;

struct CacheKey {
    Hash128 hash;
    std::string compiler; // stored in the entry, compared on lookup
};
/// `compiler`: the text of Gpu::compiler(). Tests give the `abi` of another release.
CacheKey cache_key(std::string_view text, std::string_view compiler, uint32_t abi = kernel_abi);

/// Thread safe; other processes may change the disk contents meanwhile.
class RuntimeCache {
public:
    enum class Kind { Folder, File, Memory };
    /// Folder: created with the first entry. File: read now, written by flush() and by the
    /// destructor, merged with entries of other processes. Memory: has no path; bytes() returns its
    /// contents, merge() adds to them.
    explicit RuntimeCache(std::string path, Kind kind = Kind::Folder);
    ~RuntimeCache();
    RuntimeCache(const RuntimeCache&) = delete;
    RuntimeCache& operator=(const RuntimeCache&) = delete;
    /// Under the user's cache folder: INGOT_RUNTIME_CACHE, else XDG_CACHE_HOME/ingot/kernels, else
    /// ~/.cache/ingot/kernels; "" when none is known or INGOT_RUNTIME_CACHE is "none".
    static std::string default_folder();

    const std::string& path() const { return path_; }
    bool is_file() const { return file_ != nullptr; }
    /// The whole contents of a file or memory cache.
    std::string bytes() const;
    /// Adds the entries of bytes(). Returns false and adds nothing when they are damaged.
    bool merge(std::span<const std::byte> bytes);
    /// The binary of an undamaged entry. A damaged entry is removed.
    std::optional<std::string> find(const CacheKey& key);
    /// Published by one rename; `nvrtc` is the version that compiled it. Failure is logged once.
    void add(const CacheKey& key, std::string_view binary, const std::string& nvrtc) noexcept;

    /// Lets one of the processes that lack an entry make it: the others wait until it has added the
    /// entry or has ended, then find() it. Without effect for File and Memory, and where the
    /// folder cannot be written. Waits until `gives_up` returns true.
    std::unique_ptr<KeyLock> claim(const CacheKey& key, const std::function<bool()>& gives_up);

    /// Writes the entries that a single file lacks; a folder is always complete.
    void flush() noexcept;

    struct Entry {
        std::string file; // name within the folder; within a file, the key
        uint64_t bytes = 0;
        std::string compiler;
        std::string nvrtc;   // the version that compiled it
        std::string problem; // why it is unusable; "" when whole
    };
    /// Whether it has no entry, whole or not.
    bool is_empty() const;
    /// Every entry of the file, or every file of the folder with an entry's name, sorted by name.
    std::vector<Entry> list() const;
    /// Removes all entries; returns how many.
    int clear();

private:
    std::vector<Entry> list_folder() const;

    std::string path_;
    std::unique_ptr<KernelFile> file_; // null: a folder
};

} // namespace ingot::plan
