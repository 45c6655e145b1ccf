// SPDX-License-Identifier: Apache-2.0
// The timing cache: which tactic was the fastest for a problem on a device. A text file that any
// number of processes share; a disk that fails costs the cache, never the run.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace ingot::cuda {

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
    /// Writes what was added, with what other processes wrote meanwhile. Failing is logged.
    void save() noexcept;
    size_t size() const;

private:
    using Entries = std::map<std::string, Timing>; // by device, tab, problem
    struct Contents {
        Entries entries;
        bool foreign = false; // a file of something else, which is left alone
    };
    Contents read() const;

    std::string path_;
    mutable std::mutex mutex_;
    Entries entries_;
    Entries added_; // since the last save
    bool foreign_ = false;
};

} // namespace ingot::cuda
