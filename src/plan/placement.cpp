// SPDX-License-Identifier: Apache-2.0
// Planner, part two: storages, and the assignment of values to them.
#include "ops/primitives.h"
#include "plan/copy.h"
#include "plan/device.h"
#include "plan/planner.h"

#include <algorithm>
#include <iterator>

namespace ingot::plan {

namespace {

Shape without_ones(const Shape& shape) {
    Shape out;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(out),
                 [](int64_t d) { return d != 1; });
    return out;
}

/// How many operands of `whole` come before those of `part`, where these follow each other there.
std::optional<size_t> start_of_run(const Node& part, const Node& whole) {
    if (part.as<Concat>().axis != whole.as<Concat>().axis) {
        return std::nullopt;
    }
    auto at = std::search(whole.inputs.begin(), whole.inputs.end(), part.inputs.begin(),
                          part.inputs.end());
    return at != whole.inputs.end() ? std::optional(static_cast<size_t>(at - whole.inputs.begin()))
                                    : std::nullopt;
}

} // namespace

Shape Planner::shape_of(Value v) const {
    const Type& t = graph_.type(v);
    Shape shape = eval(t.dims, plan_->symbols);
    static_cast<void>(byte_size(t.dtype, count_of(shape))); // views of it are no larger
    return shape;
}

int Planner::new_storage(Storage s) {
    s.first = now();
    s.last = now();
    plan_->storages.push_back(std::move(s));
    pending_.push_back(0);
    return plan_->end_buffer() - 1;
}

Operand Planner::new_arena(DType t, const Shape& shape, const Order& order) {
    return new_arena(t, dense(shape, order));
}

Storage* Planner::storage_of(int buffer) const {
    return buffer < plan_->first_buffer
               ? nullptr
               : &plan_->storages[static_cast<size_t>(buffer - plan_->first_buffer)];
}

void Planner::touch(const Operand& o) {
    if (Storage* s = storage_of(o.buffer)) {
        s->last = std::max(s->last, now());
        s->read = true;
    }
}

void Planner::set_placed(Value v, Operand o) {
    if (o.buffer >= plan_->first_buffer) {
        // An output in this storage is read once more, at the end.
        pending_[static_cast<size_t>(o.buffer - plan_->first_buffer)] +=
            remaining_[v.id] + static_cast<int64_t>(output_of_[v.id].size());
    }
    plan_->placed[v.id].operand = std::move(o);
}

void Planner::consume(Value v) {
    remaining_[v.id]--;
    int buffer = plan_->placed[v.id].operand.buffer;
    if (buffer >= plan_->first_buffer) {
        pending_[static_cast<size_t>(buffer - plan_->first_buffer)]--;
    }
}

const Operand& Planner::operand_of(Value v) {
    Placed& p = plan_->placed[v.id];
    if (p.operand.buffer < 0) {
        CHECK(p.known.defined(), "value ", v.id, " is used before it has a place");
        Storage s;
        s.kind = Storage::Kind::Constant;
        s.constant = p.known;
        int buffer = new_storage(std::move(s));
        set_placed(v, {p.known.dtype(), buffer, dense(p.known.shape())});
    }
    return p.operand;
}

/// The host's steps read its bytes; other devices gather them when they take them.
StoredConstant Planner::constant_in_order(const StoredConstant& c, const Operand& view,
                                          const Order& order) const {
    Tensor bytes = c.source();
    if (c.is_gathered()) { // a view of what was gathered
        bytes = packed_constant(*program_.packs, c.view(), bytes.bytes().data(), c.order());
    } else if (!device_.is_host()) {
        return {c.source(), view, order};
    }
    return packed_constant(*program_.packs, view, bytes.bytes().data(), order);
}

bool Planner::is_constant(Value v) const {
    const Placed& p = plan_->placed[v.id];
    const Storage* s = storage_of(p.operand.buffer);
    return p.immutable && s != nullptr && s->kind == Storage::Kind::Constant;
}

Operand Planner::in_order(Value v, const Order& order) {
    Operand from = operand_of(v);
    if (is_dense(from.view, order)) {
        from.view.strides = dense(from.view.shape, order).strides;
        return from;
    }
    auto key = std::make_pair(v, order);
    auto it = copies_.find(key);
    if (it != copies_.end()) {
        return it->second;
    }
    Operand to;
    if (is_constant(v)) {
        Storage packed;
        packed.kind = Storage::Kind::Constant;
        packed.constant = constant_in_order(storage_of(from.buffer)->constant, from, order);
        to = {from.dtype, new_storage(std::move(packed)), dense(from.view.shape, order)};
    } else {
        to = new_arena(from.dtype, from.view.shape, order);
        add_copy(from, to, nullptr);
    }
    copies_.emplace(key, to);
    return to;
}

Planner::ConcatUse Planner::concat_use(Value v) const {
    std::vector<ConcatUse> uses;
    if (!output_of_[v.id].empty()) {
        return {};
    }
    for (uint32_t user : program_.users[v.id]) {
        const Node& n = graph_.nodes()[user];
        if (program_.nodes[user].segment != plan_->segment) {
            continue;
        }
        if (n.is(concat_def)) {
            uses.push_back({&n, v});
        } else if (n.is(reshape_def) &&
                   without_ones(shape_of(v)) == without_ones(shape_of(n.outputs[0]))) {
            ConcatUse use = concat_use(n.outputs[0]);
            if (use.concat != nullptr) {
                uses.push_back(use);
            }
        }
    }
    auto longest =
        std::max_element(uses.begin(), uses.end(), [](const ConcatUse& a, const ConcatUse& b) {
            return a.concat->inputs.size() < b.concat->inputs.size();
        });
    bool fits = std::all_of(uses.begin(), uses.end(), [&longest](const ConcatUse& use) {
        return start_of_run(*use.concat, *longest->concat).has_value();
    });
    return fits && !uses.empty() ? *longest : ConcatUse();
}

std::optional<Operand> Planner::place_in_longer(const Node& n, const Order& order) {
    if (!output_of_[n.outputs[0].id].empty()) {
        return std::nullopt;
    }
    const Node* longer = nullptr;
    for (size_t i = 0; longer == nullptr && i < n.inputs.size(); ++i) {
        ConcatUse use = concat_use(n.inputs[i]);
        longer = use.operand == n.inputs[i] && use.concat != &n ? use.concat : nullptr;
    }
    std::optional<size_t> before = longer != nullptr ? start_of_run(n, *longer) : std::nullopt;
    if (!before) {
        return std::nullopt;
    }
    Shape shape = shape_of(n.outputs[0]);
    Shape starts(shape.size(), 0);
    auto axis = static_cast<size_t>(n.as<Concat>().axis);
    for (size_t i = 0; i < *before; ++i) {
        starts[axis] += shape_of(longer->inputs[i])[axis];
    }
    return part_of_concat(*longer, starts, shape, order);
}

std::optional<Operand> Planner::place_in_concat(Value v, const Order& order) {
    ConcatUse use = concat_use(v);
    bool reshaped_first = use.operand != v;
    if (use.concat == nullptr || is_packed(graph_.type(v).dtype) ||
        (reshaped_first && order != row_major(graph_.type(v).rank()))) {
        return std::nullopt;
    }
    Value result = use.concat->outputs[0];
    auto axis = static_cast<size_t>(use.concat->as<Concat>().axis);
    Order whole_order = reshaped_first ? row_major(graph_.type(result).rank()) : order;
    Shape shape = shape_of(use.operand);
    Shape starts(shape.size(), 0);
    for (Value in : use.concat->inputs) {
        if (in == use.operand) {
            break;
        }
        starts[axis] += shape_of(in)[axis];
    }
    std::optional<Operand> part = part_of_concat(*use.concat, starts, shape, whole_order);
    if (part && reshaped_first) {
        part->view = *reshaped(part->view, shape_of(v));
    }
    return part;
}

std::optional<Operand> Planner::part_of_concat(const Node& concat, const Shape& starts,
                                               const Shape& shape, const Order& order) {
    Value result = concat.outputs[0];
    Shape steps(shape.size(), 1);
    auto it = concats_.find(result);
    if (it == concats_.end()) {
        View whole = dense(shape_of(result), order);
        if (!follows(sliced(whole, starts, shape, steps), order)) {
            return std::nullopt;
        }
        it = concats_.emplace(result, place_result(concat, 0, order, true)).first;
    }
    Operand part = it->second;
    part.view = sliced(part.view, starts, shape, steps);
    return follows(part.view, order) ? std::optional(part) : std::nullopt;
}

bool Planner::pads_nothing(const Node& n) const {
    if (!n.is(pad_def)) {
        return false;
    }
    const auto& a = n.as<Pad>();
    auto none = [this](const Dim& d) { return d.eval(plan_->symbols) == 0; };
    return std::all_of(a.low.begin(), a.low.end(), none) &&
           std::all_of(a.high.begin(), a.high.end(), none);
}

/// The order in which to copy `view` so that n is a view of the copy.
Order Planner::order_to_view(const Node& n, const View& view) const {
    bool reshapes = n.is(reshape_def) && output_of_[n.outputs[0].id].empty();
    return reshapes ? order_to_reshape(view, shape_of(n.outputs[0])) : row_major(view.rank());
}

std::optional<size_t> Planner::unwritten_output(Value v) const {
    auto unwritten = [this](Value x) -> std::optional<size_t> {
        for (size_t i : output_of_[x.id]) {
            if (written_[i] == 0) {
                return i;
            }
        }
        return std::nullopt;
    };
    std::optional<size_t> found = unwritten(v);
    bool packed = is_packed(graph_.type(v).dtype);
    for (uint32_t user : program_.users[v.id]) {
        const Node& n = graph_.nodes()[user];
        const NodeInfo& info = program_.nodes[user];
        bool view = n.is(reshape_def) && info.kernel == nullptr && info.segment == plan_->segment;
        found = !found && view && !packed ? unwritten(n.outputs[0]) : found;
    }
    return found;
}

std::optional<Operand> Planner::place_in_output(Value v, const Order& order) {
    View view = dense(shape_of(v), order);
    std::optional<size_t> i = is_dense(view) ? unwritten_output(v) : std::nullopt;
    if (!i) {
        return std::nullopt;
    }
    written_[*i] = 1;
    return Operand{graph_.type(v).dtype, static_cast<int>(graph_.inputs().size() + *i),
                   dense(view.shape)};
}

std::optional<Operand> Planner::place_in_dead_input(const Node& n, const Order& order,
                                                    std::span<const Operand> in) {
    Value v = n.outputs[0];
    DType t = graph_.type(v).dtype;
    View want = dense(shape_of(v), order);
    for (const Operand& o : in) {
        const Storage* s = storage_of(o.buffer);
        if (s == nullptr || s->kind != Storage::Kind::Arena || !(o.view == want) ||
            bit_width(o.dtype) != bit_width(t) || is_packed(t) ||
            s->bytes != static_cast<int64_t>(byte_size(t, want.count()))) {
            continue;
        }
        int64_t own = 0;
        bool alike = true;
        for (size_t i = 0; i < in.size(); ++i) {
            own += plan_->placed[n.inputs[i].id].operand.buffer == o.buffer ? 1 : 0;
            alike = alike && (in[i].buffer != o.buffer || in[i].view == want);
        }
        if (alike && own > 0 &&
            pending_[static_cast<size_t>(o.buffer - plan_->first_buffer)] == own) {
            return Operand{t, o.buffer, want};
        }
    }
    return std::nullopt;
}

Operand Planner::place_result(const Node& n, size_t result, const Order& order, bool strided) {
    Value v = n.outputs[result];
    if (strided) {
        if (auto o = place_in_concat(v, order)) {
            return *o;
        }
    }
    if (auto o = place_in_output(v, order)) {
        return *o;
    }
    // Further results are moments of rows, which lie densely.
    bool may_have_gaps = strided && result == 0;
    std::optional<View> aligned = may_have_gaps ? aligned_rows(v, order) : std::nullopt;
    return aligned ? new_arena(graph_.type(v).dtype, *aligned)
                   : new_arena(graph_.type(v).dtype, shape_of(v), order);
}

} // namespace ingot::plan
