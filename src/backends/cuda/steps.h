// SPDX-License-Identifier: Apache-2.0
// The steps of CUDA plans: launches of a family, and work that the host does in between.
#pragma once

#include "backends/cuda/device.h"
#include "base/error.h"

namespace ingot::cuda {

/// Prepares a node that a family claimed (StepArgs::kernel.family).
std::unique_ptr<Step> make_family_step(const StepArgs& args);
/// nonzero and nms: results of sizes that depend on data.
std::unique_ptr<Step> make_dynamic_step(const StepArgs& args);
/// cuda_source: the kernel that the graph brings.
std::unique_ptr<Step> make_source_step(const StepArgs& args);
/// A copy between operands on the device.
std::unique_ptr<Step> make_device_copy(const Operand& from, const Operand& to, Device& device);
/// Evaluates the node on the host: operands are read back, results written.
std::unique_ptr<Step> make_host_step(const StepArgs& args);

/// Launches by `f`; what it throws becomes the step's status, with the words in the context.
template <class F>
Status launched(const RunContext& c, const F& f) noexcept {
    try {
        f();
        return {};
    } catch (const Error& e) {
        c.error.set("%s", e.what());
        return {e.code(), "a kernel could not be launched"};
    } catch (const std::exception& e) {
        c.error.set("%s", e.what());
        return {ErrorCode::OutOfMemory, "a kernel could not be launched"};
    }
}

} // namespace ingot::cuda
