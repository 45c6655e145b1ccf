// SPDX-License-Identifier: Apache-2.0
// A runner's answers about its plans: steps, the plan as text, sizes of memory.
#include "plan/plan_report.h"
#include "plan/plan_text.h"
#include "run/runner.h"

#include <algorithm>

namespace ingot::plan {

std::vector<StepInfo> Runner::steps() const {
    std::vector<StepInfo> out;
    for (const SegmentPlan* plan : chain_) {
        if (plan == nullptr) {
            break;
        }
        for (const StepEntry& e : plan->steps) {
            out.push_back(step_info(*program_, e));
        }
    }
    return out;
}

std::vector<const SegmentPlan*> Runner::planned(std::span<const Shape> inputs) {
    std::vector<const SegmentPlan*> planned;
    for (const SegmentPlan* plan : chain_) {
        if (plan == nullptr) {
            break;
        }
        planned.push_back(plan);
    }
    if (planned.empty() && inputs.size() == program_->graph->inputs().size()) {
        planned.push_back(plan_root(inputs));
    }
    return planned;
}

std::string Runner::plan_text(std::span<const Shape> inputs) {
    return plan::plan_text(*program_, planned(inputs));
}

std::vector<StepReport> Runner::report(std::span<const Shape> inputs) {
    return report_of(*program_, planned(inputs));
}

int64_t Runner::arena_bytes() const {
    int64_t n = 0;
    for (const GrowingBuffer& a : arenas_) {
        n += a.bytes();
    }
    return n;
}

int64_t Runner::streamed_bytes() const {
    return roots_.empty() ? 0 : roots_.front().second->streamed_bytes;
}

int64_t Runner::scratch_bytes() const {
    int64_t most = 0;
    auto add = [&most](const SegmentPlan& plan) {
        for (const StepEntry& e : plan.steps) {
            most = std::max(most, e.step->scratch_bytes());
        }
    };
    for (const SegmentPlan* plan : chain_) {
        if (plan == nullptr) {
            break;
        }
        add(*plan);
    }
    if (chain_.front() == nullptr && !roots_.empty()) { // planned, but not prepared
        add(*roots_.front().second);
    }
    return most;
}

int64_t Runner::needed_bytes(std::span<const Shape> inputs) {
    forget_prepared();
    const SegmentPlan* plan = plan_root(inputs);
    const Graph& g = *program_->graph;
    int64_t bytes = plan->arena_bytes;
    for (size_t i = 0; i < inputs.size(); ++i) {
        bytes += static_cast<int64_t>(byte_size(g.type(g.inputs()[i]).dtype, count_of(inputs[i])));
    }
    for (const OutputPlan& o : plan->outputs) {
        bytes +=
            static_cast<int64_t>(byte_size(g.type(g.outputs()[o.index]).dtype, count_of(o.shape)));
    }
    const DeviceBudget* budget = device_->parts().budget;
    for (const Storage& s : plan->storages) {
        if (s.kind == Storage::Kind::Constant && s.read) {
            bytes += budget == nullptr ? 0 : budget->missing_bytes(s.constant);
        }
    }
    return bytes;
}

} // namespace ingot::plan
