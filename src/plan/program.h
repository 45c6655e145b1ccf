// SPDX-License-Identifier: Apache-2.0
// Program: a lowered graph with the facts that all its plans need: the kernel and segment
// of each node, the users of each value. Immutable and shared.
#pragma once

#include "plan/compile_options.h"
#include "plan/kernel.h"

#include <map>
#include <mutex>

namespace ingot::plan {

/// Weights in a kernel's packed form, made once per executable. Thread safe.
class PackCache {
public:
    /// `source` allocates the packed weights; null: the system.
    explicit PackCache(std::shared_ptr<MemorySource> source = nullptr)
        : source_(std::move(source)) {}
    /// The entry of that key. On a miss, `make` returns it with its size in bytes.
    template <class T>
    std::shared_ptr<T> get(const std::string& key,
                           const std::function<std::pair<std::shared_ptr<T>, size_t>()>& make) {
        std::shared_ptr<void> found = find(key);
        if (found == nullptr) {
            auto [made, bytes] = make();
            found = insert(key, made, bytes);
        }
        return std::static_pointer_cast<T>(found);
    }
    /// Uninitialised memory for an entry, 64-byte aligned. Errors: OutOfMemory with what was
    /// needed.
    std::shared_ptr<std::byte> allocate(size_t bytes) const;
    size_t bytes() const;

private:
    std::shared_ptr<void> find(const std::string& key) const;
    std::shared_ptr<void> insert(const std::string& key, std::shared_ptr<void> v, size_t bytes);
    std::shared_ptr<MemorySource> source_;
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<void>> entries_;
    size_t bytes_ = 0;
};

struct NodeInfo {
    const Kernel* kernel = nullptr; // null for constants and views
    int segment = 0;                // the segment in which it runs
    bool binds = false; // declares symbols: runs last in its segment, result sizes dynamic
    std::vector<std::string> symbols; // the declared symbols
    std::vector<std::shared_ptr<const Program>> bodies;
};

struct Program {
    GraphRef graph;
    const KernelSet* kernels = nullptr;
    std::vector<NodeInfo> nodes;              // parallel to graph->nodes()
    std::vector<int> value_segment;           // the first segment that can read the value
    std::vector<std::vector<uint32_t>> users; // per value: nodes that read it, once per operand
    std::vector<std::string> outer_symbols;   // used, but neither declared nor sizes of inputs
    int segments = 1;
    std::shared_ptr<PackCache> packs;
    CompileOptions options;

    ThreadPool& pool() const {
        return options.pool != nullptr ? *options.pool : ThreadPool::shared();
    }
};

/// Finds kernels and segments. Errors: Unsupported naming a node that no kernel runs.
std::shared_ptr<const Program> make_program(GraphRef lowered, const KernelSet& kernels,
                                            std::shared_ptr<PackCache> packs,
                                            const CompileOptions& options);

} // namespace ingot::plan
