// SPDX-License-Identifier: Apache-2.0
// Joins small independent steps of a plan into one launch: rotations of queries and keys, and
// appends to a cache.
#include "backends/cuda/run/kept_launches.h"
#include "backends/cuda/run/steps.h"
#include "base/log.h"
#include "kernels/common/joined_launch.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ingot::cuda {

namespace {

constexpr size_t most_parts = 8;
constexpr size_t farthest = 8; // entries between the first part and a later one

class JoinedStep : public Step, public ReadyStep, public plan::LaunchReporter {
public:
    JoinedStep(std::shared_ptr<LaunchList> launches, std::vector<std::unique_ptr<Step>> parts)
        : launches_(std::move(launches)), parts_(std::move(parts)) {}

    bool get_ready() noexcept override {
        auto compiled = [this] {
            if (!compiled_) {
                compile();
            }
            launches_->make_state();
        };
        auto is_ready = [](const std::unique_ptr<Step>& part) {
            auto* step = dynamic_cast<ReadyStep*>(part.get());
            return step != nullptr && step->get_ready();
        };
        return succeeds(compiled) &&
               (!apart_ || std::all_of(parts_.begin(), parts_.end(), is_ready));
    }

    Status run(const RunContext& c) noexcept override {
        if (!compiled_) {
            Status s = launched(c, [this] { compile(); });
            if (!s.ok()) {
                return s;
            }
        }
        Status status;
        if (!apart_) {
            return launched(c, [&] { launches_->run(c.buffers, nullptr); });
        }
        for (size_t i = 0; i < parts_.size() && status.ok(); ++i) {
            status = parts_[i]->run(c);
        }
        return status;
    }

    std::string implementation() const override {
        std::string all;
        for (const auto& p : parts_) {
            append(all, str(all.empty() ? "" : " + ", p->implementation()));
        }
        return all;
    }
    bool recordable() const override { return true; }

    void report(plan::StepReport& to) override {
        for (const auto& p : parts_) {
            plan::StepReport part;
            if (auto* reporter = dynamic_cast<plan::LaunchReporter*>(p.get())) {
                reporter->report(part);
            }
            to.choices.insert(to.choices.end(), part.choices.begin(), part.choices.end());
            if (apart_) {
                to.launches.insert(to.launches.end(), part.launches.begin(), part.launches.end());
            }
        }
        if (!apart_) {
            launches_->report(to.launches);
        }
    }

private:
    void compile() {
        try {
            launches_->wait();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::Internal) {
                throw;
            }
            log(LogLevel::Warning, "cuda: joined steps run one by one: ", e.what());
            apart_ = true;
        }
        compiled_ = true;
    }

    std::shared_ptr<LaunchList> launches_;
    std::vector<std::unique_ptr<Step>> parts_;
    bool compiled_ = false;
    bool apart_ = false;
};

/// The sizes of two views along the axes of one stride.
struct Axis {
    int64_t stride = 1;
    int64_t a = 1;
    int64_t b = 1;
};

/// Adds a view's axes. Returns whether their strides differ.
bool add_axes(std::vector<Axis>& axes, const View& v, int64_t Axis::*size) {
    for (size_t i = 0; i < v.shape.size(); ++i) {
        if (v.shape[i] <= 1) {
            continue;
        }
        auto it = std::find_if(axes.begin(), axes.end(),
                               [&](const Axis& x) { return x.stride == v.strides[i]; });
        if (it == axes.end()) {
            it = axes.insert(axes.end(), Axis{v.strides[i]});
        }
        if ((*it).*size != 1) {
            return false;
        }
        (*it).*size = v.shape[i];
    }
    return true;
}

/// Whether two views are disjoint boxes of one larger tensor, such as parts of a cache. Their
/// offsets are then coordinates in a mixed-radix system given by the strides.
bool are_apart(const View& a, const View& b) {
    std::vector<Axis> axes;
    if (!add_axes(axes, a, &Axis::a) || !add_axes(axes, b, &Axis::b)) {
        return false;
    }
    std::sort(axes.begin(), axes.end(),
              [](const Axis& x, const Axis& y) { return x.stride > y.stride; });
    int64_t at_a = a.offset;
    int64_t at_b = b.offset;
    int64_t outer = 0; // stride
    bool apart = false;
    for (const Axis& x : axes) {
        if (x.stride <= 0 || outer % x.stride != 0) {
            return false;
        }
        int64_t first_a = at_a / x.stride;
        int64_t first_b = at_b / x.stride;
        int64_t most = outer == 0 ? std::numeric_limits<int64_t>::max() : outer / x.stride;
        if (std::max(first_a + x.a, first_b + x.b) > most) {
            return false;
        }
        apart = apart || first_a + x.a <= first_b || first_b + x.b <= first_a;
        at_a %= x.stride;
        at_b %= x.stride;
        outer = x.stride;
    }
    return apart;
}

/// Whether two operands may share an element.
bool overlap(const Operand& a, const Operand& b) {
    auto range = [](const Operand& o) {
        std::pair<int64_t, int64_t> r{o.view.offset, o.view.offset + 1};
        for (size_t i = 0; i < o.view.shape.size(); ++i) {
            int64_t length = (o.view.shape[i] - 1) * o.view.strides[i];
            (length < 0 ? r.first : r.second) += length;
        }
        return r;
    };
    if (a.buffer != b.buffer) {
        return false;
    }
    if (bit_width(a.dtype) != bit_width(b.dtype)) {
        return true;
    }
    auto [from_a, to_a] = range(a);
    auto [from_b, to_b] = range(b);
    return from_a < to_b && from_b < to_a && !are_apart(a.view, b.view);
}

bool depends(const StepEntry& a, const StepEntry& b) {
    auto any = [](const std::vector<Operand>& x, const std::vector<Operand>& y) {
        return std::any_of(x.begin(), x.end(), [&y](const Operand& o) {
            return std::any_of(y.begin(), y.end(),
                               [&o](const Operand& other) { return overlap(o, other); });
        });
    };
    return any(a.out, b.in) || any(a.in, b.out) || any(a.out, b.out);
}

class Joiner {
public:
    Joiner(SegmentPlan& plan, CudaDevice& device)
        : plan_(plan), device_(device), most_blocks_(kernels::most_joined_blocks(device.arch())) {}

    void run() {
        places_.resize(plan_.steps.size());
        std::iota(places_.begin(), places_.end(), size_t{0});
        for (size_t i = 0; i < plan_.steps.size(); ++i) {
            if (launch_of(i) != nullptr && !joins_earlier(i)) {
                groups_.push_back({{i}, launch_of(i)->grid[0]});
            }
        }
        for (const Group& g : groups_) {
            if (g.entries.size() > 1) {
                join(g.entries);
            }
        }
        for (const StepEntry& e : plan_.steps) {
            if (auto* s = dynamic_cast<JoinableStep*>(e.step.get())) {
                s->start();
            }
        }
    }

private:
    struct Group {
        std::vector<size_t> entries; // ascending; they run at the position of the first
        int64_t blocks = 0;
    };

    std::shared_ptr<const MadeLaunches> waiting(size_t i) const {
        auto* s = dynamic_cast<const JoinableStep*>(plan_.steps[i].step.get());
        return s == nullptr ? nullptr : s->waiting();
    }
    const kernels::Launch* launch_of(size_t i) const {
        std::shared_ptr<const MadeLaunches> made = waiting(i);
        return made == nullptr ? nullptr : made->joinable(); // its step keeps it
    }

    /// Whether an entry can run at an earlier entry's position, after everything that it depends
    /// on.
    bool joins_earlier(size_t i) {
        int64_t blocks = launch_of(i)->grid[0];
        size_t first = i - std::min(i, farthest);
        for (size_t k = first; k < i; ++k) {
            if (depends(plan_.steps[k], plan_.steps[i])) {
                first = std::max(first, places_[k] + 1);
            }
        }
        for (Group& g : groups_) {
            if (g.entries[0] >= first && g.entries.size() < most_parts &&
                g.blocks + blocks <= most_blocks_) {
                g.entries.push_back(i);
                g.blocks += blocks;
                places_[i] = g.entries[0];
                return true;
            }
        }
        return false;
    }

    /// The launches of these entries as one; null where it would have to be compiled while a run
    /// waits.
    std::shared_ptr<LaunchList> list_of(const std::vector<size_t>& entries) {
        KeptLaunches::Parts parts;
        std::string tactics;
        for (size_t i : entries) {
            parts.push_back(waiting(i));
            append(tactics,
                   str(tactics.empty() ? "" : " + ", plan_.steps[i].step->implementation()));
        }
        const ProfilePrograms* profile = device_.state().profile_programs.get();
        bool keeps = device_.timeline() == nullptr;
        auto make = [&]() -> std::shared_ptr<LaunchList> {
            std::vector<const kernels::Launch*> launches;
            for (const auto& part : parts) {
                launches.push_back(part->joinable());
            }
            auto list = std::make_shared<LaunchList>(device_, "joined steps");
            std::shared_ptr<PendingKernel>& kernel = device_.kept_launches().joined_kernel(parts);
            if (keeps && kernel != nullptr) {
                list->set(kernels::joined_arguments(launches), kernel);
                return list;
            }
            kernels::Emitted e;
            e.launches.push_back(kernels::joined(launches));
            if (profile != nullptr && !profile->is_open() && !profile->has(e)) {
                return nullptr;
            }
            list->set(e, Specialise::None, tactics);
            kernel = list->first_kernel();
            return list;
        };
        return keeps ? device_.kept_launches().find_joined(parts, make) : make();
    }

    void join(const std::vector<size_t>& entries) {
        std::shared_ptr<LaunchList> launches = list_of(entries);
        if (launches == nullptr) {
            return;
        }
        const ProfilePrograms* profile = device_.state().profile_programs.get();
        StepEntry whole;
        std::vector<std::unique_ptr<Step>> steps;
        for (size_t i : entries) {
            StepEntry& entry = plan_.steps[i];
            if (profile != nullptr) { // other shapes may keep them apart
                static_cast<JoinableStep&>(*entry.step).start();
            }
            steps.push_back(std::move(entry.step));
            append(whole.kernel, str(whole.kernel.empty() ? "" : " + ", entry.kernel));
            whole.in.insert(whole.in.end(), entry.in.begin(), entry.in.end());
            whole.out.insert(whole.out.end(), entry.out.begin(), entry.out.end());
            for (const Operand& o : entry.out) {
                begin_at(o, static_cast<int64_t>(entries[0]));
            }
            whole.parts.push_back(std::move(entry));
            entry = {};
        }
        whole.step = std::make_unique<JoinedStep>(std::move(launches), std::move(steps));
        plan_.steps[entries[0]] = std::move(whole);
    }

    void begin_at(const Operand& o, int64_t place) {
        if (o.buffer >= plan_.first_buffer) {
            plan::Storage& s = plan_.storages[static_cast<size_t>(o.buffer - plan_.first_buffer)];
            s.first = std::min(s.first, place);
        }
    }

    SegmentPlan& plan_;
    CudaDevice& device_;
    int64_t most_blocks_;
    std::vector<Group> groups_;
    std::vector<size_t> places_; // the position of each entry
};

} // namespace

void join_steps(SegmentPlan& plan, CudaDevice& device) {
    Joiner(plan, device).run();
}

void CudaDevice::join_steps(SegmentPlan& plan) {
    cuda::join_steps(plan, *this);
}

} // namespace ingot::cuda
