// SPDX-License-Identifier: Apache-2.0
// Runner: plans of one program for the shapes that occur, their memory, and the loop that runs
// steps.
#pragma once

#include "plan/device.h"
#include "plan/run_settings.h"
#include "plan/segment_plan.h"

#include <functional>

namespace ingot::plan {

/// Where a result goes: to `data`, or, when that is null, to a new tensor.
struct ResultSlot {
    std::byte* data = nullptr;
    Tensor tensor;
};

/// One run's.
struct RunWatch : RunSettings {
    bool replay = true; // segments may be recorded and replayed
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

    /// Tells the timer what a run that was timed for later has taken. False when there is none.
    bool report_times(StepTimer& timer);

    Device& device() const { return *device_; }
    const Program& program() const { return *program_; }
    std::vector<StepInfo> steps() const;
    int64_t arena_bytes() const;
    /// The most that a step of the plans of the last run takes.
    int64_t scratch_bytes() const;
    /// The most that constants which are uploaded for steps take at once, in the plan that was made
    /// or found last.
    int64_t streamed_bytes() const;
    /// Whether a run of the shapes prepared last only enqueues work.
    bool recordable() const {
        return program_->levels == 1 && root_ != nullptr && root_->recordable();
    }
    /// Whether that of these shapes does, and has all that it needs from a run before.
    bool can_repeat(std::span<const Shape> inputs) const;
    /// Of the first segment.
    const GrowingBuffer& arena() const { return arenas_[0]; }
    /// Device memory that the first segment takes under these shapes: activations, inputs, known
    /// results and constants that are not there yet. The next run has to be prepared again.
    int64_t needed_bytes(std::span<const Shape> inputs);
    /// The arenas; the next run has to be prepared again.
    void give_back_memory();
    /// Activations of the first segment under these shapes. The next run has to be prepared again.
    int64_t activation_bytes(std::span<const Shape> inputs);
    /// Where the first segment's activations lie from now on; null: in memory of its own.
    void lend_memory(std::byte* memory, int64_t bytes);

private:
    void forget_prepared();
    SegmentPlan* plan_root(std::span<const Shape> inputs);
    SegmentPlan* plan_next(SegmentPlan& before, const std::vector<const StepEntry*>& dynamic);
    void activate(SegmentPlan& plan, std::span<ResultSlot> results);
    void run_segment(SegmentPlan& plan, const RunWatch& watch);
    void run_timed(SegmentPlan& plan, const RunContext& context, const RunWatch& watch);
    bool time_together(std::span<const StepEntry> steps, const RunContext& context,
                       StepTimer& timer);
    void time_alone(const StepEntry& entry, const RunContext& context, StepTimer& timer);
    void mark_steps(const SegmentPlan& plan, const RunContext& context);
    void run_step(const StepEntry& entry, const RunContext& context);
    void run_dynamic(const StepEntry& entry, const RunContext& context);
    void observe(const StepEntry& entry, const RunWatch& watch) const;
    [[noreturn]] void fail_step(const StepEntry& entry, Status status,
                                const ErrorText& error) const;

    std::shared_ptr<const Program> program_;
    Device* device_;
    Symbols outer_;
    std::vector<std::pair<std::vector<Shape>, std::unique_ptr<SegmentPlan>>> roots_;
    SegmentPlan* root_ = nullptr;
    std::vector<SegmentPlan*> chain_;       // plans of the last run, by level
    std::vector<GrowingBuffer> arenas_;     // by level
    std::vector<const SegmentPlan*> bound_; // by level: whose storages the table has
    std::vector<std::byte*> buffers_;
    std::vector<Tensor> dynamic_; // by buffer: results of data-dependent size
    Symbols dynamic_symbols_;     // bound by the segment that runs
    double timed_ms_ = 0;         // of the run that is timed, so far
    struct Marked {
        StepInfo info;
        int from = -1; // marks of the device's clock
        int to = -1;
        double ms = 0; // where it has none
    };
    std::vector<Marked> marked_;   // of a run that is timed for later
    void* inputs_event_ = nullptr; // still to be recorded in this run
    Ranges ranges_ = Ranges::None; // of this run
};

/// "f32[1,64,56,56]", with strides unless row major.
std::string describe(const Operand& o);

} // namespace ingot::plan
