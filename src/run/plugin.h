// SPDX-License-Identifier: Apache-2.0
// Plugins while a plan is made and run: the step is here, their code is the application's, which a
// PluginHost finds.
#pragma once

#include "ops/plugin.h"
#include "plan/kernel.h"

namespace ingot::plan {

/// An operand of a plugin, dense and row major. Sizes that it finds out itself are -1.
struct PluginTensor {
    DType dtype = DType::F32;
    Shape shape;
    Shape largest; // what memory there is for
};
struct PluginTensors {
    std::vector<PluginTensor> in;
    std::vector<PluginTensor> out;
    std::vector<Shape> shape_inputs; // their elements
    std::vector<int64_t> most;       // of sizes that it finds out
};

/// One plugin of one execution; used by one thread at a time. Errors are thrown: what the plugin
/// reports.
class PluginRun {
public:
    virtual ~PluginRun() = default;
    /// Before the first run on these, and when they change.
    virtual void set_tensors(const PluginTensors& t) = 0;
    /// Addresses are of the device; `stream` is null on the host.
    virtual void enqueue(const PluginTensors& t, std::span<const void* const> in,
                         std::span<void* const> out, void* workspace, void* stream) = 0;
};

/// What stands for a kernel of source text on the host. Called by several executions at once.
/// Errors are thrown.
using HostKernel =
    std::function<void(const PluginTensors& t, std::span<const BoundSource::Argument> arguments,
                       std::span<const void* const> in, std::span<void* const> out)>;

/// Thread safe.
class PluginHost {
public:
    virtual ~PluginHost() = default;
    /// Bytes of workspace that the plugin wants for these. Errors: Unsupported when there is no
    /// such plugin; InvalidArgument when these are not what it takes and gives.
    virtual int64_t prepare(const Plugin& p, const PluginTensors& t) = 0;
    /// The plugin for one execution. Errors: as prepare().
    virtual std::shared_ptr<PluginRun> attach(const Plugin& p) = 0;
    /// Empty when there is none.
    virtual HostKernel host_kernel(const SourceKernel& s) {
        (void)s;
        return {};
    }
};

/// plugin, for every backend.
extern const KernelTable plugin_kernels;

} // namespace ingot::plan
