// SPDX-License-Identifier: Apache-2.0
// CompileOptions: settings of compilation that every backend understands. Options that one
// backend alone knows travel along as a value of that backend's type (backends/<name>/options.h).
#pragma once

#include "base/thread_pool.h"
#include "ir/profile.h"
#include "plan/step_info.h"

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
struct MemorySource;

namespace plan {
class PluginHost;
} // namespace plan

/// Compiled kernels by the hash of their cache key (32 hex digits).
using KernelBinaries = std::map<std::string, std::string, std::less<>>;

/// A kernel of a plan in a compiler's input.
struct KernelUse {
    std::string entry;
    std::string text; // the whole program
    int launches = 0; // per run
};

struct CompileOptions {
    /// Loops on the host run on this pool; null means ThreadPool::shared().
    ThreadPool* pool = nullptr;
    /// Plans kept per execution and input shape; the least recently used are dropped first.
    size_t cached_plans = 16;
    /// Fills activation memory with 0xCB before every run, so that tests detect reads of stale
    /// bytes.
    bool poison = false;
    /// The order of sums does not depend on the batch size: a row's result has the same bits at
    /// every position and among all neighbours. Slower.
    bool batch_invariant = false;
    /// Allocates activations, and weights and buffers on a device with memory of its own; null: the
    /// backend allocates.
    std::shared_ptr<MemorySource> memory;
    /// The plugins that the graph names; null without plugins (run/plugin.h).
    std::shared_ptr<plan::PluginHost> plugins;
    /// The shapes that the engine was built for; a context fills them in.
    std::vector<Profile> profiles;
    /// Kernels that the engine contains, compiled ahead of time; may be null.
    std::shared_ptr<const KernelBinaries> kernels;
    /// The limit on activation memory of one step, in bytes.
    int64_t workspace = std::numeric_limits<int64_t>::max();
    /// Called from any thread with the choices that a limit excluded; may be empty.
    std::function<void(std::string_view)> on_limit;
    /// The initial RunSettings::ranges of an execution.
    Ranges ranges = Ranges::None;
    /// Lowering passes to leave out, by name.
    std::vector<std::string> disabled_passes;
    /// Verifies the graph after each lowering pass, and the memory of each plan.
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
    /// The same, for setting. Valid as long as these options.
    template <class T>
    T& of() {
        std::any& own = own_[typeid(T)];
        return own.has_value() ? *std::any_cast<T>(&own) : own.emplace<T>();
    }

private:
    std::map<std::type_index, std::any> own_;
};

} // namespace ingot
