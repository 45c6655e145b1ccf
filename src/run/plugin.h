// SPDX-License-Identifier: Apache-2.0
// Plugin steps of a plan. The code belongs to the application; a PluginHost finds it.
#pragma once

#include "ops/plugin.h"
#include "plan/kernel.h"

namespace ingot::plan {

/// An operand of a plugin, dense and row major. Sizes that the plugin computes are -1.
struct PluginTensor {
    DType dtype = DType::F32;
    Shape shape;
    Shape largest; // upper bound: the memory allocated for it
};
struct PluginTensors {
    std::vector<PluginTensor> in;
    std::vector<PluginTensor> out;
    std::vector<Shape> shape_inputs; // their elements
    std::vector<int64_t> most;       // upper bounds of sizes that the plugin computes
};

/// One plugin of one execution; used by one thread at a time. Throws the plugin's errors.
class PluginRun {
public:
    virtual ~PluginRun() = default;
    /// Call before the first run on these tensors, and when they change.
    virtual void set_tensors(const PluginTensors& t) = 0;
    /// Addresses are device addresses; `stream` is null on the host.
    virtual void enqueue(const PluginTensors& t, std::span<const void* const> in,
                         std::span<void* const> out, void* workspace, void* stream) = 0;
};

/// The host implementation of a kernel of source text. Called by several executions concurrently.
/// Throws its errors.
using HostKernel =
    std::function<void(const PluginTensors& t, std::span<const BoundSource::Argument> arguments,
                       std::span<const void* const> in, std::span<void* const> out)>;

/// Thread safe.
class PluginHost {
public:
    virtual ~PluginHost() = default;
    /// Bytes of workspace that the plugin requests for these tensors. Errors: Unsupported when
    /// there is no such plugin; InvalidArgument when it does not support them.
    virtual int64_t prepare(const Plugin& p, const PluginTensors& t) = 0;
    /// The plugin for one execution. Errors: as prepare().
    virtual std::shared_ptr<PluginRun> attach(const Plugin& p) = 0;
    /// Empty when the application has none.
    virtual HostKernel host_kernel(const SourceKernel& s) {
        (void)s;
        return {};
    }
};

/// plugin, for every backend.
extern const KernelTable plugin_kernels;

} // namespace ingot::plan
