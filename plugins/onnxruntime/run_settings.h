// SPDX-License-Identifier: Apache-2.0
// RunSettings: settings of a session's runs, shared by the provider and its nodes.
#pragma once

#include "plugins/onnxruntime/log.h"
#include "plugins/onnxruntime/options.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ingot::ort {

/// A budget for weights on the device: "0" is off, "-1" automatic, "1" the minimum; other values
/// are bytes, with the suffix B, K, M or G, or a percentage of the streamable weights.
class StreamingBudget {
public:
    /// Errors: InvalidArgument.
    static StreamingBudget parse(std::string_view text);
    bool is_off() const { return kind_ == Kind::Off; }
    /// In bytes for an engine; nullopt: all weights stay on the device.
    std::optional<int64_t> bytes(int64_t streamable, int64_t automatic) const;

private:
    enum class Kind { Off, Automatic, Least, Bytes, Percent };
    Kind kind_ = Kind::Off;
    double amount_ = 0;
};

/// Layer times of all runs of a session, as a file that each run rewrites. Thread safe.
class ProfileFile {
public:
    /// For an empty `path`, makes a name in the current folder.
    ProfileFile(std::string path, Log log);
    /// The index of a new subgraph.
    size_t add_subgraph(const std::string& name);
    struct Layer {
        std::string name;
        double us = 0;
    };
    void add_run(size_t subgraph, const std::vector<Layer>& layers);

private:
    std::string path_;
    Log log_;
    std::mutex mutex_;
    std::string events_;
    std::vector<size_t> runs_; // by subgraph
    bool warned_ = false;
};

struct RunSettings {
    Options options;
    std::shared_ptr<ProfileFile> profile; // null: not requested
    std::mutex mutex;
    StreamingBudget budget;            // under the mutex
    bool low_priority = false;         // under the mutex
    std::atomic<uint64_t> changes = 0; // contexts made before the last change are not reused

    /// The profile of this thread's run; nullopt: not given.
    std::optional<int64_t> profile_of_run() const;
    /// Set on this thread for the duration of a run.
    void set_profile_of_run(std::optional<int64_t> index) const;
};

} // namespace ingot::ort
