// SPDX-License-Identifier: Apache-2.0
// The steps of CUDA plans: launches of a family, and host work between them.
#pragma once

#include "backends/cuda/run/device.h"
#include "base/error.h"

namespace ingot::cuda {

/// Per input, as kernels::Problem has it: null where it is no graph constant.
inline std::vector<const std::byte*> constant_marks(const StepArgs& a) {
    std::vector<const std::byte*> marks;
    for (const StoredConstant* c : a.constants) {
        const void* mark = c == nullptr ? nullptr : c->source().identity();
        marks.push_back(static_cast<const std::byte*>(mark));
    }
    return marks;
}

class MadeLaunches;

/// A step that can be recorded, its first run too.
class ReadyStep {
public:
    /// Waits for, or makes, all that the first run would (compiled kernels). False: it failed,
    /// which the run will tell.
    virtual bool get_ready() noexcept = 0;
    /// A recording of it is replayed for the first time.
    virtual void repeats() noexcept {}

protected:
    ~ReadyStep() = default;
};

/// A step of one small launch, which waits until the plan is complete: then it starts alone or
/// joins another.
class JoinableStep : public Step {
public:
    /// Its launch (MadeLaunches::joinable) while it waits; null when it cannot be joined, or has
    /// started.
    virtual std::shared_ptr<const MadeLaunches> waiting() const = 0;
    /// Requests its kernels.
    virtual void start() = 0;
};
/// Joins independent steps that are close together in a plan, before it has memory; starts the
/// others. Joined entries lose their step.
void join_steps(plan::SegmentPlan& plan, CudaDevice& device);

/// Prepares a node claimed by a family (StepArgs::kernel.family).
std::unique_ptr<Step> make_family_step(const StepArgs& args);
/// nonzero and nms: results of data-dependent sizes.
std::unique_ptr<Step> make_dynamic_step(const StepArgs& args);
/// cuda_source: a kernel from the graph.
std::unique_ptr<Step> make_source_step(const StepArgs& args);
/// collective: an exchange with other GPUs.
std::unique_ptr<Step> make_collective_step(const StepArgs& args);
/// A copy between operands on the device.
std::unique_ptr<Step> make_device_copy(const Operand& from, const Operand& to, Device& device);

/// Launches through `f`; an exception becomes the step's status, with its text in the context.
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

/// Whether `f` did not throw.
template <class F>
bool succeeds(const F& f) noexcept {
    try {
        f();
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

} // namespace ingot::cuda
