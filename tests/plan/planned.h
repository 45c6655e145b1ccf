// SPDX-License-Identifier: Apache-2.0
// Plans of graphs on the CPU, or on a GPU that runs nothing, without executions.
#pragma once

#include "plan/segment_plan.h"

#include <memory>

namespace ingot::test {

/// A program with the plans of its segments so far.
class Planned {
public:
    virtual ~Planned() = default;
    virtual const plan::Program& program() const = 0;
    virtual plan::Device& device() = 0;
    /// Plans the next segment; `symbols` has the sizes of the inputs, and those that the previous
    /// segment binds. Errors: those of plan_segment().
    const plan::SegmentPlan& plan(const Symbols& symbols);
    const std::vector<const plan::SegmentPlan*>& segments() const { return segments_; }

protected:
    /// Destroys plans before their device.
    void forget() {
        segments_.clear();
        own_.clear();
    }

private:
    Symbols symbols_;
    std::vector<std::unique_ptr<plan::SegmentPlan>> own_;
    std::vector<const plan::SegmentPlan*> segments_;
};

/// Lowered by the backend's list; without oneDNN.
std::unique_ptr<Planned> planned_for_cpu(const Graph& g, const CompileOptions& options = {});
/// For compute capability 9.0.
std::unique_ptr<Planned> planned_for_gpu(const Graph& g, const CompileOptions& options = {});

} // namespace ingot::test
