// SPDX-License-Identifier: Apache-2.0
#include "plan/placement_check.h"

#include "base/text.h"
#include "ir/verify.h"

#include <algorithm>
#include <optional>

namespace ingot::plan {

namespace {

/// "step 3 (conv 'Conv_64')".
std::string step_text(const SegmentPlan& plan, size_t index) {
    const StepEntry& e = plan.steps[index];
    std::string name = e.name();
    return str("step ", index, " (", e.kernel, name.empty() ? "" : str(" '", name, "'"), ")");
}

class PlacementCheck {
public:
    explicit PlacementCheck(const SegmentPlan& plan)
        : plan_(plan), writers_(plan.storages.size()) {}

    std::string fault() {
        for (size_t i = 0; i < plan_.steps.size(); ++i) {
            if (std::string text = step_fault(i); !text.empty()) {
                return str("segment ", plan_.segment, ", ", step_text(plan_, i), ": ", text);
            }
        }
        return sharing_fault();
    }

private:
    struct Writer {
        size_t step = 0;
        bool scratch = false;
    };

    /// The buffer's place among the segment's, where that is in the arena.
    std::optional<size_t> arena_index(int buffer) const {
        if (buffer < plan_.first_buffer || buffer >= plan_.end_buffer()) {
            return std::nullopt;
        }
        auto index = static_cast<size_t>(buffer - plan_.first_buffer);
        bool arena = plan_.storages[index].kind == Storage::Kind::Arena;
        return arena ? std::optional(index) : std::nullopt;
    }

    std::string step_fault(size_t step) {
        const StepEntry& e = plan_.steps[step];
        for (const Operand& o : e.in) {
            std::optional<size_t> index = arena_index(o.buffer);
            if (index && !writers_[*index] && o.view.count() > 0) {
                return str("reads ", described(*index), ", which no step before has written");
            }
        }
        for (const std::vector<Operand>* list : {&e.in, &e.out}) {
            for (const Operand& o : *list) {
                if (std::string text = use_fault(step, o, false); !text.empty()) {
                    return text;
                }
            }
        }
        if (e.step == nullptr || e.step->scratch < 0) {
            return "";
        }
        Operand scratch{DType::U8, e.step->scratch, dense({e.step->scratch_bytes()})};
        return use_fault(step, scratch, true);
    }

    /// The fault of one use of a buffer. Notes its first user, which is the step that writes it.
    std::string use_fault(size_t step, const Operand& o, bool scratch) {
        std::optional<size_t> index = arena_index(o.buffer);
        if (!index || o.view.shape.size() != o.view.strides.size() || o.view.count() == 0) {
            return "";
        }
        if (!writers_[*index]) {
            writers_[*index] = Writer{step, scratch};
        }
        const Storage& s = plan_.storages[*index];
        auto at = static_cast<int64_t>(step);
        if (at < s.first || at > s.last) {
            return str("uses ", described(*index), ", outside of its lifetime");
        }
        int64_t low = o.view.offset;
        int64_t high = o.view.offset;
        for (size_t i = 0; i < o.view.shape.size(); ++i) {
            int64_t reach = o.view.strides[i] * (o.view.shape[i] - 1);
            (reach < 0 ? low : high) += reach;
        }
        int64_t bits = bit_width(o.dtype);
        if (low < 0 || ((high + 1) * bits + 7) / 8 > s.bytes) {
            return str("uses elements ", low, " to ", high, " of ", o.dtype, " in ",
                       described(*index), ", beyond its bytes");
        }
        return "";
    }

    /// Two buffers that live at one step and share bytes; the one whose step comes first.
    std::string sharing_fault() const {
        std::vector<size_t> by_start;
        for (size_t i = 0; i < plan_.storages.size(); ++i) {
            const Storage& s = plan_.storages[i];
            if (s.kind == Storage::Kind::Arena && s.bytes > 0 && s.first <= s.last) {
                by_start.push_back(i);
                if (s.offset < 0 || s.offset + s.bytes > plan_.arena_bytes) {
                    return str("segment ", plan_.segment, ": ", described(i),
                               ", is not within the segment's ", plan_.arena_bytes, " bytes");
                }
            }
        }
        auto starts = [this](size_t i) { return plan_.storages[i].first; };
        std::stable_sort(by_start.begin(), by_start.end(),
                         [&](size_t a, size_t b) { return starts(a) < starts(b); });
        std::vector<size_t> live;
        std::string text;
        size_t pairs = 0;
        for (size_t i : by_start) {
            const Storage& s = plan_.storages[i];
            std::erase_if(live, [&](size_t j) { return plan_.storages[j].last < s.first; });
            for (size_t j : live) {
                const Storage& o = plan_.storages[j];
                if (s.offset < o.offset + o.bytes && o.offset < s.offset + s.bytes) {
                    text = ++pairs == 1 ? shared_text(i, j) : text;
                }
            }
            live.push_back(i);
        }
        return pairs < 2 ? text : str(text, " (the first of ", pairs, " such pairs)");
    }

    /// Names both buffers, and the step from which on both live.
    std::string shared_text(size_t later, size_t earlier) const {
        const Storage& a = plan_.storages[later];
        const Storage& b = plan_.storages[earlier];
        int64_t last = std::min(a.offset + a.bytes, b.offset + b.bytes) - 1;
        auto step = static_cast<size_t>(a.first);
        std::string where = step < plan_.steps.size() ? step_text(plan_, step) : "the end";
        return str("segment ", plan_.segment, ", ", where, ": ", described(later), ", and ",
                   described(earlier), ", share bytes ", std::max(a.offset, b.offset), " to ", last,
                   " while both live");
    }

    /// "b45 (scratch of step 3 (conv 'x'), bytes 0 to 63, steps 3 to 4)".
    std::string described(size_t index) const {
        const Storage& s = plan_.storages[index];
        std::string of;
        if (writers_[index]) {
            of = str(writers_[index]->scratch ? "scratch memory of " : "written by ",
                     step_text(plan_, writers_[index]->step), ", ");
        }
        auto end = static_cast<int64_t>(plan_.steps.size());
        std::string lives = s.first > s.last    ? std::string("never alive")
                            : s.last >= end     ? str("alive from step ", s.first, " to the end")
                            : s.first == s.last ? str("alive at step ", s.first)
                                                : str("alive from step ", s.first, " to ", s.last);
        return str("b", static_cast<size_t>(plan_.first_buffer) + index, " (", of, "bytes ",
                   s.offset, " to ", s.offset + s.bytes - 1, ", ", lives, ")");
    }

    const SegmentPlan& plan_;
    std::vector<std::optional<Writer>> writers_; // by storage: the first step that uses it
};

} // namespace

std::string placement_fault(const SegmentPlan& plan) {
    return PlacementCheck(plan).fault();
}

void verify_placement(const Program& program, const SegmentPlan& plan) {
    if (!program.options.verify_passes && !is_always_verified()) {
        return;
    }
    std::string fault = placement_fault(plan);
    require(fault.empty(), ErrorCode::Internal,
            "the plan is wrong, and results would be too: ", fault,
            "; this is a fault of Ingot: please report it with the model and with what 'ingot "
            "inspect MODEL --plan' prints");
}

} // namespace ingot::plan
