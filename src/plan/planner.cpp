// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include "ops/primitives.h"
#include "plan/copy.h"
#include "plan/device.h"
#include "plan/placement_check.h"
#include "plan/reference.h"
#include "plan/views.h"

#include <algorithm>
#include <atomic>

namespace ingot::plan {

namespace {

/// Values that depend on sizes alone are computed while planning, up to this many elements.
constexpr int64_t known_limit = 65536;

int64_t count_of_type(const Type& t, const Symbols& symbols) {
    return count_of(eval(t.dims, symbols));
}

Tensor known_host(const Graph& g, Value v, const Symbols& symbols) {
    HostRef host = g.host(v);
    if (host == nullptr) {
        return {};
    }
    DType t = g.type(v).dtype;
    Tensor out = Tensor::empty(t, host->shape);
    for (size_t i = 0; i < host->elements.size(); ++i) {
        const auto& e = host->elements[i];
        auto n = e ? e->numerator.try_eval(symbols) : std::nullopt;
        if (!n || (!is_float(t) && *n % e->denominator != 0)) {
            return {};
        }
        if (is_float(t)) {
            out.set_f64(static_cast<int64_t>(i),
                        static_cast<double>(*n) / static_cast<double>(e->denominator));
        } else {
            out.set_i64(static_cast<int64_t>(i), *n / e->denominator);
        }
    }
    return out;
}

/// Whether both views visit the same elements in the same order.
bool same_elements(const View& a, const View& b) {
    bool same = a.shape == b.shape && a.offset == b.offset;
    for (size_t i = 0; same && i < a.shape.size(); ++i) {
        same = a.shape[i] == 1 || a.strides[i] == b.strides[i];
    }
    return same;
}

View without_first_axis(View v) {
    v.shape.erase(v.shape.begin());
    v.strides.erase(v.strides.begin());
    return v;
}

View with_first_axis(View v, int64_t stride) {
    v.shape.insert(v.shape.begin(), 1);
    v.strides.insert(v.strides.begin(), stride);
    return v;
}

} // namespace

Planner::Planner(const Program& program, Device& device, int segment, Symbols symbols,
                 const SegmentPlan* before)
    : program_(program), device_(device), graph_(*program.graph),
      plan_(std::make_unique<SegmentPlan>()) {
    static std::atomic<uint64_t> plans{0};
    plan_->id = ++plans;
    plan_->segment = segment;
    plan_->symbols = std::move(symbols);
    size_t values = graph_.value_count();
    remaining_.assign(values, 0);
    for (size_t v = 0; v < values; ++v) {
        for (uint32_t user : program.users[v]) {
            remaining_[v] += program.nodes[user].segment >= segment ? 1 : 0;
        }
    }
    output_of_.resize(values);
    written_.assign(graph_.outputs().size(), 0);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
        output_of_[graph_.outputs()[i].id].push_back(i);
    }
    if (before != nullptr) {
        plan_->placed = before->placed;
        plan_->not_kept = before->not_kept;
        plan_->first_buffer = before->end_buffer();
        return;
    }
    plan_->placed.resize(values);
    plan_->first_buffer = static_cast<int>(graph_.inputs().size() + graph_.outputs().size());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
        Value v = graph_.inputs()[i];
        set_placed(v, {graph_.type(v).dtype, static_cast<int>(i), dense(shape_of(v))});
    }
}

std::unique_ptr<SegmentPlan> Planner::build() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
        const NodeInfo& info = program_.nodes[i];
        const Node& n = graph_.nodes()[i];
        if (info.binds && info.segment == plan_->segment - 1) {
            for (Value v : n.outputs) {
                plan_->placed[v.id].operand.view = dense(shape_of(v));
            }
        }
        if (info.segment == plan_->segment) {
            with_place([&n] { return str("node '", n.name, "' (", n.def->name, ")"); },
                       [&] { plan_node(static_cast<uint32_t>(i)); });
        }
    }
    finish_outputs();
    finish_copies();
    DeviceLaunches* launches = device_.parts().launches;
    if (launches != nullptr && uploads_.empty()) { // uploads go by the places of steps
        launches->join_steps(*plan_);
    }
    finish_arena();
    place_uploads();
    number_lifetimes();
    std::erase_if(plan_->steps, [](const StepEntry& e) { return e.step == nullptr; });
    return std::move(plan_);
}

void Planner::plan_node(uint32_t index) {
    const Node& n = graph_.nodes()[index];
    const NodeInfo& info = program_.nodes[index];
    bool live = info.binds;
    for (Value v : n.outputs) {
        live = live || remaining_[v.id] > 0 || !output_of_[v.id].empty();
    }
    if (live) {
        if (n.is(constant_def)) {
            plan_->placed[n.outputs[0].id].known = n.as<Constant>().value;
            plan_->placed[n.outputs[0].id].immutable = true;
        } else if (info.binds || !plan_known(n)) {
            if (pads_nothing(n)) {
                set_placed(n.outputs[0], operand_of(n.inputs[0]));
                plan_->placed[n.outputs[0].id].immutable = plan_->placed[n.inputs[0].id].immutable;
            } else if (info.kernel == nullptr) {
                plan_view(n);
            } else if (n.is(concat_def) && !is_packed(graph_.type(n.outputs[0]).dtype)) {
                plan_concat(n);
            } else {
                plan_kernel(index);
            }
        }
    }
    for (Value v : n.inputs) {
        consume(v);
    }
}

bool Planner::plan_known(const Node& n) {
    if (n.outputs.size() == 1) {
        Tensor t = known_host(graph_, n.outputs[0], plan_->symbols);
        if (t.defined()) {
            plan_->placed[n.outputs[0].id].known = std::move(t);
            return true;
        }
    }
    if (n.def->eval == nullptr || n.is(fused_def) || n.is(random_def) || n.is(if_def) ||
        n.is(loop_def)) {
        return false;
    }
    std::vector<Tensor> in;
    for (Value v : n.inputs) {
        const Placed& p = plan_->placed[v.id];
        bool is_aliased_weight = p.immutable && is_view(graph_, n);
        if (!p.known.defined() || p.known.count() > known_limit || is_aliased_weight) {
            return false;
        }
        in.push_back(p.known);
    }
    for (Value v : n.outputs) {
        if (count_of_type(graph_.type(v), plan_->symbols) > known_limit) {
            return false;
        }
    }
    std::vector<Tensor> out = eval_node(graph_, n, in, plan_->symbols);
    for (size_t i = 0; i < out.size(); ++i) {
        plan_->placed[n.outputs[i].id].known = std::move(out[i]);
    }
    return true;
}

void Planner::plan_view(const Node& n) {
    ViewRule rule = find_view(*n.def);
    Operand in = operand_of(n.inputs[0]);
    const Type& type = graph_.type(n.outputs[0]);
    std::optional<Operand> out = rule(n, in, type, plan_->symbols);
    bool immutable = plan_->placed[n.inputs[0].id].immutable;
    if (!out) {
        Order order = order_to_view(n, in.view);
        std::optional<Operand> copy = aligned_copy(n, order);
        in = copy ? *copy : in_order(n.inputs[0], order);
        out = rule(n, in, type, plan_->symbols);
        CHECK(out.has_value(), "a row-major tensor has no view for ", n.def->name);
    }
    require(out->view.shape == shape_of(n.outputs[0]), ErrorCode::InvalidArgument, n.def->name,
            " of ", in.view.shape, " gives ", out->view.shape, ", expected ",
            shape_of(n.outputs[0]));
    set_placed(n.outputs[0], *out);
    plan_->placed[n.outputs[0].id].immutable = immutable;
}

void Planner::plan_concat(const Node& n) {
    Value result = n.outputs[0];
    auto axis = static_cast<size_t>(n.as<Concat>().axis);
    if (!concats_.contains(result)) {
        const Operand* largest = nullptr;
        for (Value v : n.inputs) {
            const Operand& o = operand_of(v);
            if (largest == nullptr || o.view.count() > largest->view.count()) {
                largest = &o;
            }
        }
        Order order = memory_order(largest->view).value_or(row_major(largest->view.rank()));
        std::optional<Operand> place = place_in_longer(n, order);
        concats_.emplace(result, place ? *place : place_result(n, 0, order, true));
    }
    Operand whole = concats_.at(result);
    set_placed(result, whole);
    Shape starts(whole.view.shape.size(), 0);
    for (Value v : n.inputs) {
        Operand from = operand_of(v);
        Operand part = whole;
        Shape expected = whole.view.shape;
        expected[axis] = from.view.shape[axis];
        require(from.view.shape == expected &&
                    starts[axis] + expected[axis] <= whole.view.shape[axis],
                ErrorCode::InvalidArgument, "concat along axis ", axis, " to ", whole.view.shape,
                ": an input has shape ", from.view.shape, ", expected ", expected);
        part.view = sliced(whole.view, starts, expected, Shape(starts.size(), 1));
        auto lies_there = [&part](const Operand& o) {
            return o.buffer == part.buffer && same_elements(o.view, part.view);
        };
        std::vector<Operand>& copies = in_concats_[v];
        if (!lies_there(from) && std::none_of(copies.begin(), copies.end(), lies_there)) {
            add_copy(from, part, &n);
            copies.push_back(part);
        }
        starts[axis] += expected[axis];
    }
}

Planner::Layouts Planner::wanted_layouts(const Node& n, const NodeInfo& info,
                                         std::span<const View> views) const {
    Layouts out;
    std::vector<char> constant;
    for (Value v : n.inputs) {
        constant.push_back(is_constant(v) ? 1 : 0);
    }
    out.want.resize(views.size());
    std::vector<Shape> shapes;
    for (Value v : n.outputs) {
        shapes.push_back(info.binds ? Shape() : shape_of(v));
        out.orders.push_back(row_major(graph_.type(v).rank()));
    }
    if (info.kernel->layout == nullptr) {
        for (size_t i = 0; i < views.size(); ++i) {
            out.want[i] = row_major(views[i].rank());
        }
        return out;
    }
    Group group = group_of(graph_, n);
    LayoutArgs args{group, plan_->symbols, views, shapes, out.want, out.orders, constant};
    info.kernel->layout(args);
    return out;
}

void Planner::plan_kernel(uint32_t index) {
    const Node& n = graph_.nodes()[index];
    const NodeInfo& info = program_.nodes[index];
    const Kernel& kernel = *info.kernel;
    std::vector<View> views;
    for (Value v : n.inputs) {
        views.push_back(operand_of(v).view);
    }
    auto [want, orders] = wanted_layouts(n, info, views);
    std::vector<Operand> in;
    for (size_t i = 0; i < views.size(); ++i) {
        in.push_back(want[i] ? in_order(n.inputs[i], *want[i]) : operand_of(n.inputs[i]));
    }
    std::vector<Operand> out;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        if (info.binds) {
            Storage s;
            s.kind = Storage::Kind::Dynamic;
            out.push_back({graph_.type(n.outputs[i]).dtype, new_storage(std::move(s)), {}});
            continue;
        }
        std::optional<Operand> placed;
        if (i == 0 && kernel.in_place && !unwritten_output(n.outputs[i]) &&
            !(kernel.strided_results && concat_use(n.outputs[i]).concat != nullptr)) {
            placed = place_in_dead_input(n, orders[i], in);
        }
        out.push_back(placed ? *placed : place_result(n, i, orders[i], kernel.strided_results));
    }
    add_step(n, info, in, out);
    for (size_t i = 0; i < out.size(); ++i) {
        set_placed(n.outputs[i], out[i]);
    }
}

void Planner::add_step(const Node& n, const NodeInfo& info, std::vector<Operand> in,
                       std::vector<Operand> out) {
    bool empty = !info.binds && !out.empty();
    for (const Operand& o : out) {
        empty = empty && o.view.count() == 0;
    }
    if (empty) {
        return;
    }
    for (Operand& o : in) {
        o = streamed(o);
    }
    std::vector<const StoredConstant*> constants;
    for (size_t i = 0; i < in.size(); ++i) {
        const Storage* s = storage_of(in[i].buffer);
        bool fixed = s != nullptr && s->kind == Storage::Kind::Constant &&
                     plan_->placed[n.inputs[i].id].immutable;
        constants.push_back(fixed ? &s->constant : nullptr);
    }
    StepArgs args{*info.kernel,
                  group_of(graph_, n),
                  n,
                  plan_->symbols,
                  in,
                  out,
                  constants,
                  info.bodies,
                  *program_.packs,
                  device_,
                  program_.pool(),
                  program_.options};
    StepEntry entry;
    entry.step = info.kernel->prepare(args);
    entry.kernel = std::string(info.kernel->name);
    entry.node = &n;
    if (info.binds) {
        entry.dynamic = &info;
        for (const Operand& o : out) {
            entry.dynamic_buffers.push_back(o.buffer);
        }
    }
    for (const Operand& o : in) {
        touch(o);
    }
    for (const Operand& o : out) {
        touch(o);
    }
    if (int64_t bytes = entry.step->scratch_bytes(); bytes > 0) {
        require(bytes <= program_.options.workspace, ErrorCode::OutOfMemory, "node '",
                entry.node == nullptr ? std::string() : entry.node->name, "' needs ", bytes,
                " bytes of workspace, the limit is ", program_.options.workspace);
        Storage s;
        s.bytes = bytes;
        entry.step->scratch = new_storage(std::move(s));
    }
    entry.in = std::move(in);
    entry.out = std::move(out);
    plan_->steps.push_back(std::move(entry));
}

void Planner::add_copy(const Operand& source, const Operand& to, const Node* n) {
    if (to.view.count() == 0) {
        return;
    }
    Operand from = streamed(source);
    touch(from);
    touch(to);
    if (joins_earlier_copy(from, to)) {
        return;
    }
    StepEntry entry;
    entry.kernel = "copy";
    entry.node = n;
    entry.in = {from};
    entry.out = {to};
    plan_->steps.push_back(std::move(entry));
}

/// Merges a copy into an earlier one that it repeats at equal distances, such as the next layer's
/// part of a cache, unless its source has been written since.
bool Planner::joins_earlier_copy(const Operand& from, const Operand& to) {
    if (is_packed(from.dtype)) {
        return false;
    }
    std::vector<size_t>& open = open_copies_[{from.buffer, to.buffer}];
    for (size_t index : open) {
        View& a = plan_->steps[index].in[0].view;
        View& b = plan_->steps[index].out[0].view;
        bool grown = a.rank() == from.view.rank() + 1;
        View first_a = grown ? without_first_axis(a) : a;
        View first_b = grown ? without_first_axis(b) : b;
        int64_t count = grown ? a.shape[0] : 1;
        int64_t step_a = grown ? a.strides[0] : from.view.offset - a.offset;
        int64_t step_b = grown ? b.strides[0] : to.view.offset - b.offset;
        first_a.offset += count * step_a;
        first_b.offset += count * step_b;
        bool rewritten = std::any_of(
            plan_->steps.begin() + static_cast<ptrdiff_t>(index) + 1, plan_->steps.end(),
            [&from](const StepEntry& e) {
                return std::any_of(e.out.begin(), e.out.end(),
                                   [&from](const Operand& o) { return o.buffer == from.buffer; });
            });
        if (!rewritten && step_a > 0 && step_b > 0 && same_elements(first_a, from.view) &&
            same_elements(first_b, to.view)) {
            a = grown ? a : with_first_axis(a, step_a);
            b = grown ? b : with_first_axis(b, step_b);
            a.shape[0] = b.shape[0] = count + 1;
            return true;
        }
    }
    open.push_back(plan_->steps.size());
    return false;
}

void Planner::finish_copies() {
    for (StepEntry& entry : plan_->steps) {
        if (entry.step == nullptr) {
            entry.step = program_.kernels->make_copy(entry.in[0], entry.out[0], device_);
        }
    }
}

void Planner::finish_outputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
        Value v = graph_.outputs()[i];
        if (program_.value_segment[v.id] != plan_->segment) {
            continue;
        }
        Shape shape = shape_of(v);
        if (written_[i] == 0) {
            Operand to{graph_.type(v).dtype, static_cast<int>(graph_.inputs().size() + i),
                       dense(shape)};
            add_copy(operand_of(v), to, nullptr);
        }
        plan_->outputs.push_back({i, std::move(shape)});
    }
}

void Planner::finish_arena() {
    planned_steps_ = now();
    std::vector<Block> blocks;
    std::vector<size_t> index;
    bool last = plan_->segment + 1 == program_.segments;
    for (size_t i = 0; i < plan_->storages.size(); ++i) {
        Storage& s = plan_->storages[i];
        if (s.kind == Storage::Kind::Constant && !last) {
            s.read = true; // the reader is not known yet
            if (!device_.keeps(s.constant)) {
                plan_->not_kept.emplace(plan_->first_buffer + static_cast<int>(i), s.constant);
            }
        }
        if (s.kind != Storage::Kind::Arena) {
            continue;
        }
        if (pending_[i] > 0) {
            s.last = now();
        }
        blocks.push_back({s.bytes, s.first, s.last});
        index.push_back(i);
    }
    ArenaPlan arena = plan_arena(blocks);
    for (size_t k = 0; k < index.size(); ++k) {
        plan_->storages[index[k]].offset = arena.offsets[k];
    }
    plan_->arena_bytes = arena.bytes;
}

std::unique_ptr<SegmentPlan> plan_segment(const Program& program, Device& device, int segment,
                                          Symbols symbols, const SegmentPlan* before) {
    DeviceLaunches* launches = device.parts().launches;
    auto build = [&] {
        if (launches != nullptr) {
            launches->begin_plan();
        }
        return Planner(program, device, segment, symbols, before).build();
    };
    std::unique_ptr<SegmentPlan> plan = build();
    if (launches != nullptr && launches->settle()) {
        plan = build();
    }
    verify_placement(program, *plan);
    return plan;
}

} // namespace ingot::plan
