// SPDX-License-Identifier: Apache-2.0
// The part of compiling that executables of one graph share: the lowered graph, its packed
// constants and the weights in device memory.
#pragma once

#include "backends/cuda/run/device.h"

namespace ingot::cuda {

struct LoweredGraph {
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<PackCache> packs;
    std::shared_ptr<DeviceWeights> device;
};

/// The lowered graphs that executables use. Thread safe.
class LoweredGraphs {
public:
    explicit LoweredGraphs(Gpu& gpu) : gpu_(gpu) {}
    /// Lowers `graph` unless an executable uses it already with options that lower it alike and
    /// take the same memory. Errors: Unsupported with the node.
    std::shared_ptr<const LoweredGraph> find(const std::shared_ptr<const Graph>& graph,
                                             const CompileOptions& options);

private:
    struct Key {
        const MemorySource* memory = nullptr; // the lowered graph keeps it alive
        int64_t memory_limit = 0;
        int64_t weight_budget = 0;
        bool tf32 = false;
        bool batch_invariant = false;
        bool poison = false;
        std::string force_tactic;
        int64_t workspace = 0;
        int64_t shared_memory = 0;
        int arch = 0;
        std::vector<std::string> disabled_passes;
        bool operator==(const Key&) const = default;
    };
    static Key key_of(const CompileOptions& o);
    struct Entry {
        std::weak_ptr<const Graph> source;
        Key key;
        std::weak_ptr<const LoweredGraph> lowered;
    };
    Gpu& gpu_;
    std::shared_ptr<SharedSlabs> slabs_ = std::make_shared<SharedSlabs>();
    std::mutex mutex_;
    std::vector<Entry> entries_;
};

/// Copies constants to the device (backends/device_memory.h).
void upload_weights(Gpu& gpu, const LoweredGraph& lowered, const CompileOptions& options);

} // namespace ingot::cuda
