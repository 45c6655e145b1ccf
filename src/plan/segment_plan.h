// SPDX-License-Identifier: Apache-2.0
// SegmentPlan: the steps of one segment of a program for concrete sizes, and the placement of every
// value.
#pragma once

#include "plan/memory_planner.h"
#include "plan/program.h"
#include "plan/stored_constant.h"

#include <algorithm>

namespace ingot::plan {

/// The placement of a value. A value whose contents are known while planning may have no buffer
/// yet.
struct Placed {
    Operand operand;
    Tensor known;           // the contents, when they depend on sizes and constants alone
    bool immutable = false; // bytes of a graph constant: equal in every plan
    bool valid() const { return operand.buffer >= 0 || known.defined(); }
};

/// A buffer of one segment. Buffers are numbered in order: inputs, outputs, then segment by
/// segment.
struct Storage {
    enum class Kind { Arena, Constant, Dynamic };
    Kind kind = Kind::Arena;
    int64_t bytes = 0;
    int64_t first = 0; // the lifetime of an arena block, in steps
    int64_t last = 0;
    int64_t offset = 0;      // in the segment's arena
    StoredConstant constant; // keeps the source's bytes alive
    bool read = false;       // a step uses it, here or in a later segment
};

struct StepEntry {
    std::unique_ptr<Step> step;
    std::string kernel;
    const Node* node = nullptr;        // null for copies that the planner added
    const NodeInfo* dynamic = nullptr; // set for nodes that declare symbols
    std::vector<int> dynamic_buffers;  // one per result
    std::vector<Operand> in;
    std::vector<Operand> out;
    /// Where one step runs several entries: these, without steps. `in` and `out` hold all their
    /// operands.
    std::vector<StepEntry> parts;

    /// The name of the node, or of the parts' nodes; empty for copies.
    std::string name() const;
};

struct OutputPlan {
    size_t index = 0; // among the graph's outputs
    Shape shape;
};

/// The steps refer to the program, and run on the device that prepared them.
struct SegmentPlan {
    uint64_t id = 0; // unique in this process
    int segment = 0;
    bool has_run = false;
    Symbols symbols; // bound at planning
    std::vector<StepEntry> steps;
    std::vector<OutputPlan> outputs; // the outputs that this segment writes
    int first_buffer = 0;
    std::vector<Storage> storages;
    int64_t arena_bytes = 0;
    int64_t streamed_bytes = 0; // part of the arena: room for constants that are not kept
    std::vector<Placed> placed; // per value of the graph, for later segments
    /// By buffer: constants of this and earlier segments that the device does not keep.
    std::map<int, StoredConstant> not_kept;
    /// Plans of the next segment by the symbols that this one binds; most recent first.
    std::vector<std::pair<Shape, std::unique_ptr<SegmentPlan>>> next;

    /// Whether every step can be recorded.
    bool recordable() const {
        return !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const StepEntry& e) {
            return e.dynamic == nullptr && e.step->recordable();
        });
    }
    /// The number of steps, from the first, after which no step reads the first buffers, which are
    /// the inputs.
    size_t steps_until_read(int inputs) const {
        size_t n = steps.size();
        auto reads = [inputs](const Operand& o) { return o.buffer >= 0 && o.buffer < inputs; };
        while (n > 0 && std::none_of(steps[n - 1].in.begin(), steps[n - 1].in.end(), reads)) {
            --n;
        }
        return n;
    }
    int end_buffer() const { return first_buffer + static_cast<int>(storages.size()); }
};

/// Plans the segment of that index. `before` is the plan of the previous segment, or null for the
/// first; `symbols` has every symbol bound so far. Errors: Unsupported, InvalidArgument for
/// contradictory sizes, OutOfMemory.
std::unique_ptr<SegmentPlan> plan_segment(const Program& program, Device& device, int segment,
                                          Symbols symbols, const SegmentPlan* before);

} // namespace ingot::plan
