// SPDX-License-Identifier: Apache-2.0
// KernelFile: a runtime cache that is one file. It is read when opened; what is added stays in
// memory until it is written, together with what other processes wrote meanwhile, by one rename.
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

/// Thread safe. Failing to read or write is logged and costs what the file would have kept.
class KernelFile {
public:
    /// "": kept in memory only.
    explicit KernelFile(std::string path);

    /// An undamaged entry as encode_entry made it.
    std::optional<std::string> find(const Hash128& key) const;
    void add(const Hash128& key, std::string entry);
    /// Writes what was added since it was last written.
    void write() noexcept;
    /// What the file would hold; for those that are kept in memory only.
    std::string bytes() const;
    /// Adds what bytes() gave. False, and nothing is added, when that is damaged.
    bool merge(std::span<const std::byte> bytes);

    struct Item {
        std::string name; // the key, or the place of what cannot be read
        std::string entry;
        std::string problem; // "" when whole
    };
    /// What the file holds, as it is on disk, and what was added.
    std::vector<Item> list() const;
    int clear();

private:
    using Entries = std::map<std::pair<uint64_t, uint64_t>, std::string>;
    struct Contents {
        Entries entries;
        std::vector<Item> faults;
        bool foreign = false; // not a file that this class wrote
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
