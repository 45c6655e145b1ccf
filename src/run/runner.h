// SPDX-License-Identifier: Apache-2.0
// Runner: the plans of one program, one per shapes seen, their memory, and the loop that runs
// steps.
#pragma once

#include "plan/device.h"
#include "plan/plan_report.h"
#include "plan/run_settings.h"
#include "plan/segment_plan.h"

#include <functional>

namespace ingot::plan {

/// The destination of a result: `data`, or a new tensor when that is null.
struct ResultSlot {
    std::byte* data = nullptr;
    Tensor tensor;
};

/// Not thread safe. `outer` binds the symbols that the program uses but does not define.
class Runner {
public:
    Runner(std::shared_ptr<const Program> program, Device& device, Symbols outer);

    /// Makes or finds the plan of the first segment for these input shapes. Errors: see Execution.
    void prepare(std::span<const Shape> inputs);
    /// The shape of a result under the last prepare, when it is known before the run.
    std::optional<Shape> result_shape(size_t i) const;
    /// Inputs are dense and row major, of the prepared shapes. Errors: thrown, with the node's
    /// name.
    void run(std::span<const std::byte* const> inputs, std::span<ResultSlot> results,
             const RunWatch& watch = {});

    /// Reports the times of a run that was timed for later. False when there is none.
    bool report_times(StepTimer& timer);

    Device& device() const { return *device_; }
    const Program& program() const { return *program_; }
    std::vector<StepInfo> steps() const;
    /// The plans that were prepared or run last, as text; where there are none, the first segment's
    /// for these shapes. Errors: as prepare.
    std::string plan_text(std::span<const Shape> inputs = {});
    /// The same plans as a report. Errors: as prepare.
    std::vector<StepReport> report(std::span<const Shape> inputs = {});
    int64_t arena_bytes() const;
    /// The largest scratch size of a step in the plans of the last run.
    int64_t scratch_bytes() const;
    /// The peak size of streamed constants on the device, in the plan made or found last.
    int64_t streamed_bytes() const;
    /// Whether a run with the shapes prepared last only enqueues work.
    bool recordable() const {
        return program_->segments == 1 && root_ != nullptr && root_->recordable();
    }
    /// Whether a run with these shapes does, and has everything that it needs from an earlier run.
    bool can_repeat(std::span<const Shape> inputs) const;
    /// The arena of the first segment.
    const GrowingBuffer& arena() const { return arenas_[0]; }
    /// Device memory of the first segment under these shapes: activations, inputs, known results
    /// and constants that are not uploaded yet. Call prepare() before the next run.
    int64_t needed_bytes(std::span<const Shape> inputs);
    /// Frees the arenas. Call prepare() before the next run.
    void give_back_memory();
    /// Activation bytes of the first segment under these shapes. Call prepare() before the next
    /// run.
    int64_t activation_bytes(std::span<const Shape> inputs);
    /// Sets the memory of the first segment's activations; null: memory of its own.
    void lend_memory(std::byte* memory, int64_t bytes);

private:
    void forget_prepared();
    std::vector<const SegmentPlan*> planned(std::span<const Shape> inputs);
    SegmentPlan* plan_root(std::span<const Shape> inputs);
    SegmentPlan* plan_next(SegmentPlan& before, const std::vector<const StepEntry*>& dynamic);
    void activate(SegmentPlan& plan, std::span<ResultSlot> results);
    void bring_constants(const SegmentPlan& plan);
    void run_segment(SegmentPlan& plan, const RunWatch& watch);
    void record_inputs_event();
    void run_timed(SegmentPlan& plan, const RunContext& context, const RunWatch& watch);
    bool time_together(std::span<const StepEntry> steps, const RunContext& context,
                       StepTimer& timer);
    void time_alone(const StepEntry& entry, const RunContext& context, StepTimer& timer);
    void mark_steps(const SegmentPlan& plan, const RunContext& context);
    void run_step(const StepEntry& entry, const RunContext& context);
    void run_dynamic(const StepEntry& entry, const RunContext& context);
    size_t steps_before(const SegmentPlan& plan) const;
    void observe(const StepEntry& entry, size_t step, const RunWatch& watch) const;
    [[noreturn]] void fail_step(const StepEntry& entry, Status status,
                                const ErrorText& error) const;

    std::shared_ptr<const Program> program_;
    Device* device_;
    Symbols outer_;
    std::vector<std::pair<std::vector<Shape>, std::unique_ptr<SegmentPlan>>> roots_;
    SegmentPlan* root_ = nullptr;
    std::vector<SegmentPlan*> chain_;       // plans of the last run, by segment
    std::vector<GrowingBuffer> arenas_;     // by segment
    std::vector<const SegmentPlan*> bound_; // by segment: the plan whose storages are in buffers_
    std::vector<std::byte*> buffers_;
    std::vector<Tensor> dynamic_; // by buffer: results of data-dependent size
    Symbols dynamic_symbols_;     // bound by the running segment
    double timed_ms_ = 0;         // elapsed in the run being timed
    struct Marked {
        StepInfo info;
        int from = -1; // marks of the device's clock
        int to = -1;
        double ms = 0; // used when the device has no clock
    };
    std::vector<Marked> marked_;   // of a run that is timed for later
    void* inputs_event_ = nullptr; // still to be recorded in this run
    bool has_bodies_ = false;
    RunWatch bodies_; // of this run, for bodies; unset where there are none
};

} // namespace ingot::plan
