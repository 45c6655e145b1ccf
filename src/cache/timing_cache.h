// SPDX-License-Identifier: Apache-2.0
// The timing cache: the fastest tactic for a problem on a device. A text file that any number of
// processes share; disk failures lose the cache and never fail the run.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::plan {

struct Timing {
    std::string tactic; // by name
    double us = 0;      // of one run
    bool operator==(const Timing&) const = default;
};

/// Thread safe.
class TimingCache {
public:
    /// Reads the file, if there is one; "" keeps everything in memory. A damaged file is ignored,
    /// with a warning, and replaced by the next save.
    explicit TimingCache(std::string path);
    ~TimingCache();
    TimingCache(const TimingCache&) = delete;
    TimingCache& operator=(const TimingCache&) = delete;

    /// `device` and `problem` hold no tabs or line breaks.
    std::optional<Timing> find(const std::string& device, const std::string& problem) const;
    void add(const std::string& device, const std::string& problem, Timing t);

    using Entries = std::map<std::string, Timing>; // by device, tab, problem
    Entries entries() const;
    /// Adds entries; existing ones stay.
    void merge(const Entries& entries);
    /// Replaces everything.
    void assign(Entries entries);
    /// Writes the added entries, merged with those of other processes. Failure is logged.
    void save() noexcept;
    size_t size() const;

private:
    struct Contents {
        Entries entries;
        bool foreign = false; // another program's file, which is not changed
    };
    Contents read() const;

    std::string path_;
    mutable std::mutex mutex_;
    Entries entries_;
    Entries added_; // since the last save
    bool foreign_ = false;
};

/// Entries as the text of a file, and back. nullopt for text that is damaged or of another version;
/// `why` gives the reason.
std::string print_timings(const TimingCache::Entries& entries);
std::optional<TimingCache::Entries> parse_timings(std::string_view text, std::string& why);

/// The name of a tactic known only by the hash of its name: '#' and 16 hexadecimal digits.
std::string hashed_tactic(uint64_t hash);
uint64_t tactic_hash(std::string_view tactic);
/// Whether `known`, a name or a hash, denotes the tactic.
bool names_tactic(std::string_view known, std::string_view tactic);

} // namespace ingot::plan
