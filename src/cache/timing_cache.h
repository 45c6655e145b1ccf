// SPDX-License-Identifier: Apache-2.0
// The timing cache: the fastest tactic for a problem on a device. A text file that any number of
// processes share; disk failures lose the cache and never fail the run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::plan {

struct Timing {
    std::string tactic; // by name
    double us = 0;      // of one run
    bool operator==(const Timing&) const = default;
};

/// A problem whose tactics were timed.
struct TimedProblem {
    struct Row {
        std::string tactic;     // by name, as Timing has it
        std::string kernel;     // as StepInfo::implementation has it when the layer uses it
        double us = 0;          // of one run
        double expected_us = 0; // by the cost model
    };
    std::string layer; // that has the problem
    std::string device;
    std::string problem;
    std::vector<Row> rows; // of those that could be timed
    size_t best = 0;       // the row that the cache keeps
};

/// Receives each timing. Called by the thread that times; may throw.
class TimingListener {
public:
    virtual ~TimingListener() = default;
    virtual void timed(const TimedProblem& p) = 0;
    /// The cache names a tactic that the layer does not have: it is chosen anew.
    virtual void missed(const std::string& layer, const std::string& tactic) = 0;
};

/// Thread safe.
class TimingCache {
public:
    /// Reads the file, if there is one; "" keeps everything in memory. A damaged file is ignored,
    /// with a warning, and replaced by the next save. `by_layer`: each layer has entries of its
    /// own, so that changing one changes no other layer.
    explicit TimingCache(std::string path, bool by_layer = false);
    ~TimingCache();
    TimingCache(const TimingCache&) = delete;
    TimingCache& operator=(const TimingCache&) = delete;

    /// `device` and `problem` hold no tabs or line breaks.
    std::optional<Timing> find(const std::string& device, const std::string& problem) const;
    void add(const std::string& device, const std::string& problem, Timing t);

    bool by_layer() const { return by_layer_; }
    /// Keeps the best row of `p`, and tells the listeners.
    void add(const TimedProblem& p);
    void miss(const std::string& layer, const std::string& tactic) const;
    /// `listener` is told while it lives. Users that share a cache hear each other.
    void listen(const std::shared_ptr<TimingListener>& listener);

    using Entries = std::map<std::string, Timing>; // by device, tab, problem
    Entries entries() const;
    /// Adds entries; existing ones stay.
    void merge(const Entries& entries);
    /// Replaces one of entries(), or drops it. False where there is none.
    bool change(const std::string& entry, const std::optional<Timing>& t);
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
    std::vector<std::shared_ptr<TimingListener>> listeners() const;

    std::string path_;
    mutable std::mutex mutex_;
    Entries entries_;
    Entries added_; // since the last save
    std::vector<std::weak_ptr<TimingListener>> listeners_;
    bool by_layer_ = false;
    bool foreign_ = false;
};

/// A problem as the key of one layer alone. `layer` may hold any characters.
std::string layer_problem(std::string_view layer, std::string_view problem);

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
