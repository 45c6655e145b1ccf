// SPDX-License-Identifier: Apache-2.0
// CompileOptions: how a graph is compiled, as every backend understands it. Options that one
// backend alone knows travel along as a value of that backend's type (backends/<name>/options.h).
#pragma once

#include "base/thread_pool.h"
#include "ir/profile.h"
#include "plan/run_settings.h"

#include <any>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

namespace ingot {

class Graph;

namespace plan {
class PluginHost;
} // namespace plan

/// Compiled kernels by the hash of their cache key (32 hex digits).
using KernelBinaries = std::map<std::string, std::string, std::less<>>;

/// A kernel of a plan, as a compiler gets it.
struct KernelUse {
    std::string entry;
    std::string text; // the whole program
    int launches = 0; // a run
};

struct CompileOptions {
    /// Loops on the host run on this pool; null means ThreadPool::shared().
    ThreadPool* pool = nullptr;
    /// Plans kept per execution and input shape, least recently used ones go first.
    size_t cached_plans = 16;
    /// Fills activation memory with 0xCB before every run, so that tests see reads of stale bytes.
    bool poison = false;
    /// Sums are added in an order that does not depend on how many rows a batch has: a row's result
    /// has the same bits at every place, with all neighbours. Slower.
    bool batch_invariant = false;
    /// Gives the memory for activations, and for weights and buffers on a device with memory of its
    /// own; null: the backend's own.
    std::shared_ptr<MemorySource> memory;
    /// Has the plugins that the graph names; null when there are none (run/plugin.h).
    std::shared_ptr<plan::PluginHost> plugins;
    /// The shapes that the engine was built for; a context fills them in.
    std::vector<Profile> profiles;
    /// Kernels that the engine brings along, compiled ahead of time; may be null.
    std::shared_ptr<const KernelBinaries> kernels;
    /// The most bytes of activation memory that one step may work in.
    int64_t workspace = std::numeric_limits<int64_t>::max();
    /// Told, by any thread, which choices a limit has ruled out; may be empty.
    std::function<void(std::string_view)> on_limit;
    /// RunSettings::ranges of an execution at first.
    Ranges ranges = Ranges::None;
    /// Lowering passes that are left out, by name.
    std::vector<std::string> disabled_passes;
    /// The graph is verified after each of them.
    bool verify_passes = false;
    /// Called with the graph after each lowering pass; may be empty.
    std::function<void(std::string_view pass, const Graph&)> after_pass;

    /// The options of one backend, by their type: the defaults where none were set.
    template <class T>
    const T& of() const {
        static const T defaults;
        auto it = own_.find(typeid(T));
        return it == own_.end() ? defaults : *std::any_cast<T>(&it->second);
    }
    /// The same, to be set. Valid as long as these options.
    template <class T>
    T& of() {
        std::any& own = own_[typeid(T)];
        return own.has_value() ? *std::any_cast<T>(&own) : own.emplace<T>();
    }

private:
    std::map<std::type_index, std::any> own_;
};

} // namespace ingot
