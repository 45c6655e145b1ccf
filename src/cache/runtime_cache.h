// SPDX-License-Identifier: Apache-2.0
// The runtime cache: compiled kernels in a folder, one file an entry, or all in one file; shared by
// any number of processes. A full or read-only disk costs the cache, never the run.
#pragma once

#include "base/hash.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::plan {

/// Part of every key, of kernels and of timings: counts changes of how kernels are called.
inline constexpr uint32_t kernel_abi = 1;

class KernelFile;

struct CacheKey {
    Hash128 hash;
    std::string compiler; // kept in the entry, compared when it is found
};
/// `compiler`: what Gpu::compiler() says. Kernels' ABI version is part of the key.
CacheKey cache_key(std::string_view text, std::string_view compiler);

/// Thread safe; what is on disk may change under it.
class RuntimeCache {
public:
    enum class Kind { Folder, File, Memory };
    /// The folder is made when the first entry is added. A file is read now, and written by flush
    /// and by the destructor together with what others wrote meanwhile. Memory has no place:
    /// bytes() gives what it holds, merge() adds to it.
    explicit RuntimeCache(std::string place, Kind kind = Kind::Folder);
    ~RuntimeCache();
    RuntimeCache(const RuntimeCache&) = delete;
    RuntimeCache& operator=(const RuntimeCache&) = delete;
    /// Under the user's cache folder: INGOT_RUNTIME_CACHE, else XDG_CACHE_HOME/ingot/kernels, else
    /// ~/.cache/ingot/kernels; "" when none is known or INGOT_RUNTIME_CACHE is "none".
    static std::string default_folder();

    const std::string& place() const { return place_; }
    bool is_file() const { return file_ != nullptr; }
    /// Everything that a file or memory holds.
    std::string bytes() const;
    /// Adds what bytes() gave. False, and nothing is added, when that is damaged.
    bool merge(std::span<const std::byte> bytes);
    /// The binary of an undamaged entry. A damaged one is removed.
    std::optional<std::string> find(const CacheKey& key);
    /// Published by one rename; `nvrtc` names the version that compiled it. Failing is logged once.
    void add(const CacheKey& key, std::string_view binary, const std::string& nvrtc) noexcept;

    /// Writes what a single file does not have yet; a folder always has everything.
    void flush() noexcept;

    struct Entry {
        std::string file; // name within the folder; within a file, the key
        uint64_t bytes = 0;
        std::string compiler;
        std::string nvrtc;   // the version that compiled it
        std::string problem; // why it cannot be used; "" when whole
    };
    /// Every file of the folder that has an entry's name, or every entry of the file, in order of
    /// names.
    std::vector<Entry> list() const;
    /// Removes all entries; returns how many.
    int clear();

private:
    std::vector<Entry> list_folder() const;

    std::string place_;
    std::unique_ptr<KernelFile> file_; // null: a folder
};

} // namespace ingot::plan
