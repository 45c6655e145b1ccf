// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include "base/interrupt.h"
#include "base/trace.h"
#include "ops/evaluator.h"
#include "plan/copy.h"
#include "plan/plan_text.h"
#include "run/profiler_range.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace ingot::plan {

namespace {

constexpr int poison_byte = 0xCB;

/// Moves the entry at `it` to the front.
template <class List>
void move_to_front(List& list, typename List::iterator it) {
    std::rotate(list.begin(), it, it + 1);
}

} // namespace

std::string StepEntry::name() const {
    std::string all = node == nullptr ? std::string() : node->name;
    for (const StepEntry& part : parts) {
        std::string one = part.name();
        all += (all.empty() || one.empty() ? "" : " + ") + one;
    }
    return all;
}

Runner::Runner(std::shared_ptr<const Program> program, Device& device, Symbols outer)
    : program_(std::move(program)), device_(&device), outer_(std::move(outer)) {
    auto segments = static_cast<size_t>(program_->segments);
    for (size_t i = 0; i < segments; ++i) {
        arenas_.emplace_back(device);
    }
    bound_.assign(segments, nullptr);
    chain_.assign(segments, nullptr);
    has_bodies_ = std::any_of(program_->nodes.begin(), program_->nodes.end(),
                              [](const NodeInfo& n) { return !n.bodies.empty(); });
}

SegmentPlan* Runner::plan_root(std::span<const Shape> inputs) {
    auto it = std::find_if(roots_.begin(), roots_.end(), [&](const auto& r) {
        return std::equal(inputs.begin(), inputs.end(), r.first.begin(), r.first.end());
    });
    if (it != roots_.end()) {
        move_to_front(roots_, it);
        return roots_.front().second.get();
    }
    TraceSpan span("plan", program_->graph->name());
    const Graph& g = *program_->graph;
    require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "got ", inputs.size(),
            " inputs, expected ", g.inputs().size());
    Symbols symbols = outer_;
    for (size_t i = 0; i < inputs.size(); ++i) {
        Value v = g.inputs()[i];
        bind_symbols(g.type(v).dims, inputs[i], symbols, str("input '", g.value_name(v), "'"));
    }
    std::unique_ptr<SegmentPlan> plan =
        plan_segment(*program_, *device_, 0, std::move(symbols), nullptr);
    if (roots_.size() >= program_->options.cached_plans && !roots_.empty()) {
        std::replace(bound_.begin(), bound_.end(),
                     static_cast<const SegmentPlan*>(roots_.back().second.get()),
                     static_cast<const SegmentPlan*>(nullptr));
        std::fill(bound_.begin(), bound_.end(), nullptr);
        roots_.pop_back();
    }
    roots_.emplace(roots_.begin(), std::vector<Shape>(inputs.begin(), inputs.end()),
                   std::move(plan));
    return roots_.front().second.get();
}

void Runner::prepare(std::span<const Shape> inputs) {
    if (root_ != nullptr && !roots_.empty() && root_ == roots_.front().second.get() &&
        std::equal(inputs.begin(), inputs.end(), roots_.front().first.begin(),
                   roots_.front().first.end())) {
        return;
    }
    root_ = nullptr;
    root_ = plan_root(inputs);
    std::fill(chain_.begin(), chain_.end(), nullptr);
    chain_[0] = root_;
    arenas_[0].reserve(root_->arena_bytes);
    bound_[0] = nullptr;
}

std::optional<Shape> Runner::result_shape(size_t i) const {
    for (const OutputPlan& o : root_->outputs) {
        if (o.index == i) {
            return o.shape;
        }
    }
    const Graph& g = *program_->graph;
    Shape shape;
    for (const Dim& d : g.type(g.outputs()[i]).dims) {
        std::optional<int64_t> size = d.try_eval(root_->symbols);
        if (!size) {
            return std::nullopt;
        }
        shape.push_back(*size);
    }
    return shape;
}

SegmentPlan* Runner::plan_next(SegmentPlan& before, const std::vector<const StepEntry*>& dynamic) {
    Shape key;
    for (const StepEntry* e : dynamic) {
        for (const std::string& s : e->dynamic->symbols) {
            key.push_back(dynamic_symbols_.at(s));
        }
    }
    auto it = std::find_if(before.next.begin(), before.next.end(),
                           [&key](const auto& n) { return n.first == key; });
    if (it != before.next.end()) {
        move_to_front(before.next, it);
        return before.next.front().second.get();
    }
    Symbols symbols = before.symbols;
    symbols.insert(dynamic_symbols_.begin(), dynamic_symbols_.end());
    auto plan = plan_segment(*program_, *device_, before.segment + 1, std::move(symbols), &before);
    if (before.next.size() >= program_->options.cached_plans && !before.next.empty()) {
        std::fill(bound_.begin() + before.segment + 1, bound_.end(), nullptr);
        before.next.pop_back();
    }
    before.next.emplace(before.next.begin(), std::move(key), std::move(plan));
    return before.next.front().second.get();
}

/// Those that an engine's load has brought are there already.
void Runner::bring_constants(const SegmentPlan& plan) {
    std::vector<StoredConstant> constants;
    for (const Storage& s : plan.storages) {
        if (s.kind == Storage::Kind::Constant && s.read && device_->keeps(s.constant)) {
            constants.push_back(s.constant);
        }
    }
    device_->bring(constants);
}

void Runner::activate(SegmentPlan& plan, std::span<ResultSlot> results) {
    auto segment = static_cast<size_t>(plan.segment);
    if (arenas_[segment].reserve(plan.arena_bytes)) {
        bound_[segment] = nullptr;
    }
    if (bound_[segment] != &plan) {
        auto end = static_cast<size_t>(plan.end_buffer());
        if (buffers_.size() < end) {
            buffers_.resize(end);
            dynamic_.resize(end);
        }
        if (!plan.has_run && !device_->is_host()) {
            bring_constants(plan);
        }
        for (size_t i = 0; i < plan.storages.size(); ++i) {
            const Storage& s = plan.storages[i];
            std::byte*& at = buffers_[static_cast<size_t>(plan.first_buffer) + i];
            if (s.kind == Storage::Kind::Arena) {
                at = arenas_[segment].data() + s.offset;
            } else if (s.kind == Storage::Kind::Constant && s.read && device_->keeps(s.constant)) {
                at = const_cast<std::byte*>(device_->constant(s.constant));
            }
        }
        bound_[segment] = &plan;
    }
    if (program_->options.poison && plan.arena_bytes > 0) {
        device_->fill(arenas_[segment].data(), poison_byte, static_cast<size_t>(plan.arena_bytes));
    }
    const Graph& g = *program_->graph;
    for (const OutputPlan& o : plan.outputs) {
        ResultSlot& slot = results[o.index];
        if (slot.data == nullptr) {
            slot.tensor = device_->tensor(g.type(g.outputs()[o.index]).dtype, o.shape);
            slot.data = slot.tensor.mutable_bytes().data();
        }
        buffers_[g.inputs().size() + o.index] = slot.data;
    }
}

void Runner::run(std::span<const std::byte* const> inputs, std::span<ResultSlot> results,
                 const RunWatch& watch) {
    CHECK(root_ != nullptr, "run before prepare");
    size_t fixed = inputs.size() + results.size();
    if (buffers_.size() < fixed) {
        buffers_.resize(fixed);
        dynamic_.resize(fixed);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        buffers_[i] = const_cast<std::byte*>(inputs[i]);
    }
    SegmentPlan* plan = root_;
    timed_ms_ = 0;
    inputs_event_ = watch.inputs_event;
    if (has_bodies_) {
        bodies_ = watch.for_bodies();
    }
    if (watch.timer != nullptr && watch.times_later) {
        marked_.clear();
    }
    while (true) {
        chain_[static_cast<size_t>(plan->segment)] = plan;
        activate(*plan, results);
        run_segment(*plan, watch);
        plan->has_run = true;
        if (plan->segment + 1 == program_->segments) {
            break;
        }
        std::vector<const StepEntry*> dynamic;
        for (const StepEntry& e : plan->steps) {
            if (e.dynamic != nullptr) {
                dynamic.push_back(&e);
            }
        }
        plan = plan_next(*plan, dynamic);
    }
    if (inputs_event_ != nullptr) {
        record_inputs_event();
    }
    if (watch.timer != nullptr && !watch.times_later) {
        watch.timer->run(timed_ms_);
    }
}

void Runner::run_segment(SegmentPlan& plan, const RunWatch& watch) {
    ErrorText error;
    RunContext context{buffers_.data(), program_->pool(), error, *device_, &watch, &bodies_};
    dynamic_symbols_.clear();
    if (watch.timer != nullptr && watch.times_later && !watch.observer) {
        mark_steps(plan, context);
        return;
    }
    if (watch.timer != nullptr) {
        run_timed(plan, context, watch);
        return;
    }
    DeviceLaunches* launches = device_->parts().launches;
    bool may_replay = launches != nullptr && watch.replay && !watch.observer;
    if (may_replay && launches->replay(plan, context)) {
        return;
    }
    size_t reading =
        inputs_event_ == nullptr || program_->segments > 1
            ? std::numeric_limits<size_t>::max()
            : plan.steps_until_read(static_cast<int>(program_->graph->inputs().size()));
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        check_interrupt();
        if (i == reading) {
            record_inputs_event();
        }
        run_step(plan.steps[i], context);
        if (watch.observer) {
            observe(plan.steps[i], steps_before(plan) + i, watch);
        }
    }
}

void Runner::record_inputs_event() {
    void* event = std::exchange(inputs_event_, nullptr);
    if (CallerStreams* streams = device_->parts().streams) {
        streams->record(event);
    }
}

/// "conv1 (conv, tile 64x64): f32[1,3,8,8], f32[4,3,3,3] -> f32[1,4,8,8]".
static std::string detailed(const StepEntry& entry, const std::string& name) {
    std::string text = str(name, " (", entry.kernel);
    std::string how = entry.step->implementation();
    text += how.empty() ? "): " : str(", ", how, "): ");
    for (const Operand& o : entry.in) {
        text += str(&o == entry.in.data() ? "" : ", ", describe(o));
    }
    for (const Operand& o : entry.out) {
        text += str(&o == entry.out.data() ? " -> " : ", ", describe(o));
    }
    return text;
}

void Runner::run_step(const StepEntry& entry, const RunContext& context) {
    Ranges ranges = context.run->ranges;
    ProfilerRange range(device_->parts().ranges, ranges, [&] {
        std::string name = entry.name().empty() ? entry.kernel : entry.name();
        return ranges == Ranges::Names ? name : detailed(entry, name);
    });
    if (entry.dynamic != nullptr) {
        run_dynamic(entry, context);
        return;
    }
    Status status = entry.step->run(context);
    if (!status.ok()) [[unlikely]] {
        fail_step(entry, status, context.error);
    }
}

void Runner::run_dynamic(const StepEntry& entry, const RunContext& context) {
    DynamicResults results;
    auto place = [&entry] { return str("node '", entry.node->name, "' (", entry.kernel, ")"); };
    with_place(place, [&] { entry.step->run_dynamic(context, results); });
    const Graph& g = *program_->graph;
    for (size_t i = 0; i < results.tensors.size(); ++i) {
        Tensor& t = results.tensors[i];
        with_place(place, [&] {
            Symbols known = chain_[static_cast<size_t>(entry.dynamic->segment)]->symbols;
            known.insert(dynamic_symbols_.begin(), dynamic_symbols_.end());
            known.insert(results.symbols.begin(), results.symbols.end());
            bind_symbols(g.type(entry.node->outputs[i]).dims, t.shape(), known, str("result ", i));
            for (const std::string& s : entry.dynamic->symbols) {
                if (auto it = known.find(s); it != known.end()) {
                    dynamic_symbols_[s] = it->second;
                }
            }
        });
        auto buffer = static_cast<size_t>(entry.dynamic_buffers[i]);
        buffers_[buffer] = const_cast<std::byte*>(t.bytes().data());
        dynamic_[buffer] = std::move(t);
    }
    for (const std::string& s : entry.dynamic->symbols) {
        auto it = results.symbols.find(s);
        // A symbol that no result uses (the count of a loop without scanned results) is 0.
        dynamic_symbols_.emplace(s, it == results.symbols.end() ? 0 : it->second);
    }
}

void Runner::fail_step(const StepEntry& entry, Status status, const ErrorText& error) const {
    std::string message = error.text[0] != 0 ? std::string(error.text) : std::string(status.text());
    auto fail_here = [&] { fail(status.code(), message); };
    if (entry.node != nullptr || !entry.parts.empty()) {
        with_place([&] { return str("node '", entry.name(), "' (", entry.kernel, ")"); },
                   fail_here);
    }
    fail_here();
    std::abort(); // not reached: fail_here throws
}

/// Bytes from the start of a buffer to the end of the last element of a view.
static size_t reach(const Operand& o) {
    int64_t last = o.view.offset;
    for (size_t i = 0; i < o.view.shape.size(); ++i) {
        last += std::max<int64_t>(o.view.strides[i], 0) * (o.view.shape[i] - 1);
    }
    return byte_size(o.dtype, last + 1);
}

/// The number of the run's steps in segments before this one.
size_t Runner::steps_before(const SegmentPlan& plan) const {
    size_t n = 0;
    for (auto i = static_cast<size_t>(plan.segment); i-- > 0;) {
        n += chain_[i]->steps.size();
    }
    return n;
}

void Runner::observe(const StepEntry& entry, size_t step, const RunWatch& watch) const {
    for (const StepEntry& part : entry.parts) {
        observe(part, step, watch);
    }
    if (entry.node == nullptr || entry.kernel == "copy") {
        return;
    }
    const Graph& g = *program_->graph;
    for (size_t i = 0; i < entry.node->outputs.size(); ++i) {
        const std::string& name = g.value_name(entry.node->outputs[i]);
        if (name.empty()) {
            continue;
        }
        if (entry.dynamic != nullptr) {
            const Tensor& there = dynamic_[static_cast<size_t>(entry.dynamic_buffers[i])];
            Tensor here = Tensor::empty(there.dtype(), there.shape());
            device_->read(here.mutable_bytes().data(), there.bytes().data(), there.bytes().size());
            watch.observer({name, entry.node->name, step, here});
            continue;
        }
        const Operand& from = entry.out[i];
        Tensor t = Tensor::empty(from.dtype, from.view.shape);
        Operand to{from.dtype, 0, dense(from.view.shape)};
        if (t.count() != 0) {
            std::vector<std::byte> all(reach(from));
            device_->read(all.data(), buffers_[static_cast<size_t>(from.buffer)], all.size());
            copy_elements(from, all.data(), to, t.mutable_bytes().data(), program_->pool());
        }
        watch.observer({name, entry.node->name, step, t});
    }
}

bool Runner::can_repeat(std::span<const Shape> inputs) const {
    auto it = std::find_if(roots_.begin(), roots_.end(), [&](const auto& r) {
        return std::equal(inputs.begin(), inputs.end(), r.first.begin(), r.first.end());
    });
    return it != roots_.end() && program_->segments == 1 && it->second->recordable() &&
           it->second->has_run && it->second->arena_bytes <= arenas_[0].bytes();
}

void Runner::give_back_memory() {
    root_ = nullptr;
    std::fill(chain_.begin(), chain_.end(), nullptr);
    std::fill(bound_.begin(), bound_.end(), nullptr);
    for (GrowingBuffer& a : arenas_) {
        a.give_back();
    }
}

void Runner::forget_prepared() {
    root_ = nullptr;
    std::fill(chain_.begin(), chain_.end(), nullptr);
    std::fill(bound_.begin(), bound_.end(), nullptr);
}

int64_t Runner::activation_bytes(std::span<const Shape> inputs) {
    forget_prepared();
    return plan_root(inputs)->arena_bytes;
}

void Runner::lend_memory(std::byte* memory, int64_t bytes) {
    forget_prepared();
    arenas_[0].lend(memory, bytes);
}

} // namespace ingot::plan
