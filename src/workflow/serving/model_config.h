// SPDX-License-Identifier: Apache-2.0
// config.pbtxt of a model that is published: what the engine takes and gives, and how it is served.
#pragma once

#include "engine/engine.h"

#include <optional>
#include <string>
#include <vector>

namespace ingot::serving {

/// An input or output as configurations call it.
struct InterfaceTensor {
    std::string name;
    std::string type;          // "TYPE_FP32"
    std::vector<int64_t> dims; // the whole shape; -1 for a size that is open
    bool optional = false;     // an input with a default, which requests may leave out
    bool operator==(const InterfaceTensor&) const = default;
};
struct Interface {
    std::vector<InterfaceTensor> inputs, outputs;
    int64_t most_rows = 0; // of a batch, by the profile; 0: nothing bounds them

    /// Whether every input and output begins with a size that is open: rows of a batch. Never with
    /// an optional input, whose default has no rows.
    bool takes_batches() const;
};
/// Errors: Unsupported for a type that the server does not have.
Interface interface_of(const Engine& engine);
/// Each difference in a sentence; none when clients notice nothing.
std::vector<std::string> differences(const Interface& served, const Interface& next);

/// Where instances run.
struct Placement {
    enum class Kind { Auto, Cpu, Gpu } kind = Kind::Auto;
    std::vector<int> gpus; // of Gpu; empty: all
    int64_t instances = 0; // 0: as the server chooses
};

struct ServedModel {
    std::string name;
    int64_t version = 1;
    int64_t max_batch = 0; // 0: requests are not batched
    std::vector<int64_t> buckets;
    int64_t queue_delay_us = 0;
    Placement placement;
    bool warm_up = false;
};

/// Rows that the backend prepares when it is told nothing: 1, 2, 4, ... and the limit.
std::vector<int64_t> default_buckets(int64_t max_batch);
/// From "1,4,16". Errors: InvalidArgument where the backend would refuse them.
std::vector<int64_t> parse_buckets(const std::string& list, int64_t max_batch);

/// The text of config.pbtxt. It serves `version` alone, so that the change of this one file
/// publishes. Errors: InvalidArgument for a warm-up whose shapes are not known.
std::string config_text(const ServedModel& model, const Interface& interface);
/// The version that config_text() has put into a text; nothing for a text that it has not written.
std::optional<int64_t> version_in(const std::string& config_text);

} // namespace ingot::serving
