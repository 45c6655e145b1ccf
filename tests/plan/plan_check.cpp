// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_check.h"

#include "base/text.h"
#include "plan/placement_check.h"

#include <algorithm>
#include <map>

namespace ingot::test {

using namespace plan;

namespace {

struct Fault {
    std::string text;
};

/// The bytes of a buffer, or of an arena that several share, with each byte's writer: -1 none.
using Space = std::vector<int>;

class Paper {
public:
    explicit Paper(const Program& program) : program_(program) {}

    void run(const SegmentPlan& plan) {
        plans_.push_back(&plan);
        arenas_.emplace_back(static_cast<size_t>(plan.arena_bytes), -1);
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            at_ = str("segment ", plan.segment, ", step ", i, " (", plan.steps[i].kernel, ")");
            step(plan, plan.steps[i], static_cast<int64_t>(i));
        }
        for (const OutputPlan& o : plan.outputs) {
            at_ = str("output ", o.index);
            const Graph& g = *program_.graph;
            Operand all{g.type(g.outputs()[o.index]).dtype,
                        static_cast<int>(g.inputs().size() + o.index), dense(o.shape)};
            read(all);
        }
    }

private:
    [[noreturn]] void fail(std::string text) const { throw Fault{at_ + ": " + std::move(text)}; }

    struct Place {
        Space* space = nullptr; // null: inputs, constants and values without a known size
        int64_t first = 0;
        int64_t bytes = -1; // not known
    };

    Place find(int buffer) {
        const Graph& g = *program_.graph;
        auto inputs = static_cast<int>(g.inputs().size());
        auto fixed = inputs + static_cast<int>(g.outputs().size());
        if (buffer < 0) {
            fail("an operand without a buffer");
        }
        if (buffer < inputs) {
            return {};
        }
        if (buffer < fixed) {
            return {&outputs_[buffer], 0, -1};
        }
        for (size_t segment = 0; segment < plans_.size(); ++segment) {
            const SegmentPlan& p = *plans_[segment];
            if (buffer < p.first_buffer || buffer >= p.end_buffer()) {
                continue;
            }
            const Storage& s = p.storages[static_cast<size_t>(buffer - p.first_buffer)];
            if (s.kind == Storage::Kind::Arena) {
                if (s.offset < 0 || s.offset + s.bytes > p.arena_bytes) {
                    fail(str("b", buffer, " is not in the arena"));
                }
                return {&arenas_[segment], s.offset, s.bytes};
            }
            return {nullptr, 0,
                    s.kind == Storage::Kind::Constant ? static_cast<int64_t>(s.constant.size())
                                                      : -1};
        }
        fail(str("b", buffer, " is not there"));
    }

    /// Calls f(space, byte) for each byte that an operand names; checks that they are within.
    template <class F>
    void for_each_byte(const Operand& o, const F& f) {
        if (o.view.shape.size() != o.view.strides.size() || o.view.count() == 0) {
            return;
        }
        Place p = find(o.buffer);
        int64_t width = bit_width(o.dtype);
        for (int64_t element : offsets_of(o.view.shape, o.view.strides)) {
            int64_t bit = (o.view.offset + element) * width;
            int64_t last = bit / 8 + std::max<int64_t>(width / 8, 1);
            if (bit < 0 || (p.bytes >= 0 && last > p.bytes)) {
                fail(str("byte ", last - 1, " of b", o.buffer, " is beyond its ", p.bytes));
            }
            if (p.space == nullptr) {
                continue;
            }
            if (static_cast<int64_t>(p.space->size()) < p.first + last) {
                p.space->resize(static_cast<size_t>(p.first + last), -1);
            }
            for (int64_t byte = bit / 8; byte < last; ++byte) {
                f(*p.space, p.first + byte);
            }
        }
    }

    void read(const Operand& o) {
        for_each_byte(o, [&](Space& space, int64_t byte) {
            int owner = space[static_cast<size_t>(byte)];
            if (owner != o.buffer) {
                fail(str("reads b", o.buffer, ", whose byte ", byte,
                         owner < 0 ? std::string(" nobody has written") : str(" holds b", owner)));
            }
            reading_[{&space, byte}] = o.buffer;
        });
    }

    void write(const Operand& o) {
        for_each_byte(o, [&](Space& space, int64_t byte) {
            auto it = reading_.find({&space, byte});
            if (it != reading_.end() && it->second != o.buffer) {
                fail(str("writes b", o.buffer, " over b", it->second, ", which it reads"));
            }
            space[static_cast<size_t>(byte)] = o.buffer;
        });
    }

    void step(const SegmentPlan& plan, const StepEntry& e, int64_t index) {
        reading_.clear();
        for (const Operand& o : e.in) {
            read(o);
            check_lifetime(plan, o.buffer, index);
        }
        for (const Operand& o : e.out) {
            write(o);
            check_lifetime(plan, o.buffer, index);
        }
        if (e.step != nullptr && e.step->scratch >= 0) {
            use_scratch(plan, e, index);
        }
    }

    void use_scratch(const SegmentPlan& plan, const StepEntry& e, int64_t index) {
        int buffer = e.step->scratch;
        Place p = find(buffer);
        check_lifetime(plan, buffer, index);
        if (p.space == nullptr || p.bytes != e.step->scratch_bytes()) {
            fail(str("scratch b", buffer, " has ", p.bytes, " bytes"));
        }
        for (int64_t byte = p.first; byte < p.first + p.bytes; ++byte) {
            int owner = (*p.space)[static_cast<size_t>(byte)];
            bool written = std::any_of(e.out.begin(), e.out.end(),
                                       [owner](const Operand& o) { return o.buffer == owner; });
            if (written || reading_.contains({p.space, byte})) {
                fail(str("scratch b", buffer, " lies over an operand"));
            }
            (*p.space)[static_cast<size_t>(byte)] = buffer;
        }
    }

    void check_lifetime(const SegmentPlan& plan, int buffer, int64_t index) const {
        if (buffer < plan.first_buffer) {
            return;
        }
        const Storage& s = plan.storages[static_cast<size_t>(buffer - plan.first_buffer)];
        if (s.kind == Storage::Kind::Arena && (index < s.first || index > s.last)) {
            fail(str("b", buffer, " is used at step ", index, ", but lives from ", s.first, " to ",
                     s.last));
        }
    }

    const Program& program_;
    std::vector<const SegmentPlan*> plans_;
    std::vector<Space> arenas_;
    std::map<int, Space> outputs_;
    std::map<std::pair<Space*, int64_t>, int> reading_; // by the step, and as which buffer
    std::string at_;
};

} // namespace

std::string plan_fault(const Program& program, std::span<const SegmentPlan* const> segments) {
    Paper paper(program);
    try {
        for (const SegmentPlan* s : segments) {
            if (std::string fault = placement_fault(*s); !fault.empty()) {
                return fault;
            }
            paper.run(*s);
        }
    } catch (const Fault& f) {
        return f.text;
    }
    return "";
}

} // namespace ingot::test
