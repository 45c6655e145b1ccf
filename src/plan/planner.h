// SPDX-License-Identifier: Apache-2.0
// The planner's working state: storages with their lifetimes, and values placed in them.
#pragma once

#include "plan/segment_plan.h"

namespace ingot::plan {

/// Builds one segment's plan, node by node in graph order.
class Planner {
public:
    Planner(const Program& program, Device& device, int segment, Symbols symbols,
            const SegmentPlan* before);
    std::unique_ptr<SegmentPlan> build();

private:
    // planner.cpp: the walk
    void plan_node(uint32_t index);
    void plan_view(const Node& n);
    bool plan_known(const Node& n);
    void plan_concat(const Node& n);
    void plan_kernel(uint32_t index);
    /// The layouts that a kernel asks for: orders of operands, as in LayoutArgs, and of results.
    struct Layouts {
        std::vector<std::optional<Order>> want;
        std::vector<Order> orders;
    };
    /// `views`: of the node's operands.
    Layouts wanted_layouts(const Node& n, const NodeInfo& info, std::span<const View> views) const;
    void add_step(const Node& n, const NodeInfo& info, std::vector<Operand> in,
                  std::vector<Operand> out);
    void add_copy(const Operand& from, const Operand& to, const Node* n);
    bool joins_earlier_copy(const Operand& from, const Operand& to);
    void finish_copies();
    void finish_outputs();
    void finish_arena();

    // streamed.cpp: constants that the device does not keep
    /// The operand, or, where it is such a constant, a place that a step before fills with it.
    Operand streamed(const Operand& o);
    void place_uploads();
    void number_lifetimes();

    // placement.cpp: where values go
    Shape shape_of(Value v) const;
    const Operand& operand_of(Value v);
    /// Whether its result is its operand: a pad whose sizes turn out to be 0.
    bool pads_nothing(const Node& n) const;
    Order order_to_view(const Node& n, const View& view) const;
    /// Whether a placed value's bytes are a graph constant's, in any order.
    bool is_constant(Value v) const;
    Operand in_order(Value v, const Order& order);
    StoredConstant constant_in_order(const StoredConstant& c, const Operand& view,
                                     const Order& order) const;
    Operand place_result(const Node& n, size_t result, const Order& order, bool strided);
    std::optional<Operand> place_in_dead_input(const Node& n, const Order& order,
                                               std::span<const Operand> in);
    std::optional<Operand> place_in_concat(Value v, const Order& order);
    /// A place of a concat that lies whole in a longer one, which will hold its operands too.
    std::optional<Operand> place_in_longer(const Node& n, const Order& order);
    std::optional<Operand> part_of_concat(const Node& concat, const Shape& starts,
                                          const Shape& shape, const Order& order);
    /// A result of the graph that v is, or becomes by a reshape, and that has no place yet.
    std::optional<size_t> unwritten_output(Value v) const;
    std::optional<Operand> place_in_output(Value v, const Order& order);
    struct ConcatUse {
        const Node* concat = nullptr;
        Value operand; // v, or v reshaped by axes of size 1
    };
    /// The longest concat of v, where the operands of its other ones follow each other there too.
    ConcatUse concat_use(Value v) const;
    // aligned_rows.cpp: rows with gaps behind them
    /// How the readers of a value take a view of it.
    enum class Readers : uint8_t { Any, Aligned, Dense };
    /// Dense where one of them would copy it, Aligned where one gains by aligned rows.
    Readers readers_of(Value v, const View& view, int chain) const;
    Readers reader_of(uint32_t user, Value v, const View& view, int chain) const;
    /// The view in that order for a value whose readers gain by aligned rows, if they do.
    std::optional<View> aligned_rows(Value v, const Order& order) const;
    /// A copy with aligned rows of what the view op n reads, if those who read n gain by them.
    std::optional<Operand> aligned_copy(const Node& n, const Order& order);

    void set_placed(Value v, Operand o);
    void consume(Value v);
    int new_storage(Storage s);
    Operand new_arena(DType t, const Shape& shape, const Order& order);
    Operand new_arena(DType t, const View& view);
    Storage* storage_of(int buffer) const;
    void touch(const Operand& o);
    int64_t now() const { return static_cast<int64_t>(plan_->steps.size()); }

    const Program& program_;
    Device& device_;
    const Graph& graph_;
    std::unique_ptr<SegmentPlan> plan_;
    std::vector<int64_t> remaining_; // per value: reads that are not planned yet
    std::vector<int64_t> pending_;   // per storage of this segment: sum over the values in it
    std::map<std::pair<Value, Order>, Operand> copies_;
    std::map<Value, Operand> concats_; // results of concats that have a place already
    std::map<Value, std::vector<Operand>> in_concats_; // copies of operands in them
    /// Steps that copy, by the buffers between which they do.
    std::map<std::pair<int, int>, std::vector<size_t>> open_copies_;
    struct Upload {
        size_t step = 0;   // its position in order: directly before the reading step
        size_t anchor = 0; // its start when it runs concurrently with earlier steps
        bool beside = false;
        size_t storage = 0;
    };
    std::vector<Upload> uploads_; // in the order of steps
    /// Per step: its position while planning, once uploads have moved steps; else empty.
    std::vector<int64_t> moved_;
    int64_t planned_steps_ = 0;
    std::vector<std::vector<size_t>> output_of_; // per value: graph outputs it is
    std::vector<char> written_;                  // per graph output of this segment: done
};

} // namespace ingot::plan
