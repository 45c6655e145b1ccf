// SPDX-License-Identifier: Apache-2.0
// The steps of CUDA plans: launches of a family, and work that the host does in between.
#pragma once

#include "backends/cuda/run/device.h"
#include "base/error.h"

namespace ingot::cuda {

/// A step of one small launch, which waits until the plan is complete: then it starts on its own,
/// or becomes a part of another.
class JoinableStep : public Step {
public:
    /// Its launch while it waits; null when it cannot be joined, or has started.
    virtual const kernels::Launch* waiting() const = 0;
    /// Asks for its kernels.
    virtual void start() = 0;
};
/// Joins steps of a plan without memory yet that do not depend on each other, where they are a few
/// places apart; all others start. The entries of what became a part have no step any more.
void join_steps(plan::SegmentPlan& plan, CudaDevice& device);

/// Prepares a node that a family claimed (StepArgs::kernel.family).
std::unique_ptr<Step> make_family_step(const StepArgs& args);
/// nonzero and nms: results of sizes that depend on data.
std::unique_ptr<Step> make_dynamic_step(const StepArgs& args);
/// cuda_source: the kernel that the graph brings.
std::unique_ptr<Step> make_source_step(const StepArgs& args);
/// collective: an exchange with other GPUs.
std::unique_ptr<Step> make_collective_step(const StepArgs& args);
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
