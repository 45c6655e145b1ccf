// SPDX-License-Identifier: Apache-2.0
// RunSettings: what a session's runs have in common, shared by the provider and its nodes.
#pragma once

#include "plugins/onnxruntime/log.h"
#include "plugins/onnxruntime/options.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ingot::ort {

/// A budget for weights that stay on the device: "0" is off, "-1" automatic, "1" the least; more
/// are bytes, with B, K, M or G behind them, or a percentage of the weights that can be streamed.
class StreamingBudget {
public:
    /// Errors: InvalidArgument.
    static StreamingBudget parse(std::string_view text);
    bool is_off() const { return kind_ == Kind::Off; }
    /// In bytes for an engine; nullopt: everything stays on the device.
    std::optional<int64_t> bytes(int64_t streamable, int64_t automatic) const;

private:
    enum class Kind { Off, Automatic, Least, Bytes, Percent };
    Kind kind_ = Kind::Off;
    double amount_ = 0;
};

/// Times of layers in all runs of a session, as a file that is written anew after every run.
/// Thread safe.
class ProfileFile {
public:
    /// "" for `path`: a name of its own in the current folder.
    ProfileFile(std::string path, Log log);
    /// The number of a new subgraph.
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
    std::shared_ptr<ProfileFile> profile; // null: not asked for
    std::mutex mutex;
    StreamingBudget budget;            // under the mutex
    bool low_priority = false;         // under the mutex
    std::atomic<uint64_t> changes = 0; // contexts made before the last one are not used again

    /// The profile that the run of this thread names; nullopt: it names none.
    std::optional<int64_t> profile_of_run() const;
    /// Set between the start and the end of a run on this thread.
    void set_profile_of_run(std::optional<int64_t> index) const;
};

} // namespace ingot::ort
