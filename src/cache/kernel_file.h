// SPDX-License-Identifier: Apache-2.0
// KernelFile: a runtime cache in one file. Opening reads it; added entries stay in memory until one
// rename writes them, merged with the entries of other processes.
#pragma once

#include "base/hash.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ingot::plan {

/// Thread safe. Read and write failures are logged and lose only the cached kernels.
class KernelFile {
public:
    /// "": kept in memory only.
    explicit KernelFile(std::string path);

    /// An undamaged entry in encode_entry's format.
    std::optional<std::string> find(const Hash128& key) const;
    void add(const Hash128& key, std::string entry);
    /// Writes the entries added since the last write.
    void write() noexcept;
    /// The contents of the file; for caches in memory only.
    std::string bytes() const;
    /// Adds the entries of bytes(). Returns false and adds nothing when they are damaged.
    bool merge(std::span<const std::byte> bytes);

    struct Item {
        std::string name; // the key, or the position of unreadable bytes
        std::string entry;
        std::string problem; // "" when whole
    };
    /// Whether it was read without an entry, and none was added.
    bool is_empty() const;
    /// The entries on disk, and those added since.
    std::vector<Item> list() const;
    int clear();

private:
    using Entries = std::map<std::pair<uint64_t, uint64_t>, std::string>;
    struct Contents {
        Entries entries;
        std::vector<Item> faults;
        bool foreign = false; // written by another program
    };
    Contents read() const;
    static std::string encode(const Entries& entries);
    static void parse(std::span<const std::byte> bytes, Contents& c);

    std::string path_;
    mutable std::mutex mutex_;
    Entries entries_;
    bool changed_ = false;
    bool foreign_ = false;
};

} // namespace ingot::plan
