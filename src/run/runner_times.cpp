// SPDX-License-Identifier: Apache-2.0
// Times of steps: measured during the run, or marked and measured later.
#include "base/interrupt.h"
#include "run/runner.h"

#include <algorithm>
#include <chrono>

namespace ingot::plan {

/// Times recordable steps in groups, between marks of the device's clock and with the host running
/// ahead; a step lasts until the next one can start, so steps do not overlap.
void Runner::run_timed(SegmentPlan& plan, const RunContext& context, const RunWatch& watch) {
    constexpr size_t most_at_once = 64; // less than a driver's launch queue
    std::span<const StepEntry> steps = plan.steps;
    while (!steps.empty()) {
        check_interrupt();
        size_t n = 0;
        while (n < std::min(steps.size(), most_at_once) && !watch.observer &&
               steps[n].dynamic == nullptr && steps[n].step->recordable()) {
            ++n;
        }
        if (n == 0 || !time_together(steps.first(n), context, *watch.timer)) {
            n = 1;
            time_alone(steps[0], context, *watch.timer);
        }
        if (watch.observer) {
            observe(steps[0], steps_before(plan) + (plan.steps.size() - steps.size()), watch);
        }
        steps = steps.subspan(n);
    }
}

static StepInfo timed_info(const StepEntry& entry) {
    return {entry.name(), entry.kernel, entry.step->implementation(), {}, {}};
}

/// Puts marks of the device's clock between steps, without waiting. Without such a clock, a step
/// ends when its call returns.
void Runner::mark_steps(const SegmentPlan& plan, const RunContext& context) {
    DeviceClock* clock = device_->parts().clock;
    int before = clock == nullptr ? -1 : clock->mark();
    for (const StepEntry& entry : plan.steps) {
        check_interrupt();
        auto start = std::chrono::steady_clock::now();
        run_step(entry, context);
        std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        int after = clock == nullptr ? -1 : clock->mark();
        marked_.push_back({timed_info(entry), before, after, took.count()});
        before = after;
    }
}

bool Runner::report_times(StepTimer& timer) {
    double whole = 0;
    for (Marked& m : marked_) {
        if (m.to >= 0) {
            m.ms = device_->parts().clock->elapsed_ms(m.from, m.to);
        }
        whole += m.ms;
        timer.step(m.info, m.ms);
    }
    if (!marked_.empty()) {
        timer.run(whole);
    }
    return !marked_.empty();
}

bool Runner::time_together(std::span<const StepEntry> steps, const RunContext& context,
                           StepTimer& timer) {
    struct Held { // releases the device on every exit path
        DeviceClock& clock;
        explicit Held(DeviceClock& c) : clock(c) { clock.hold(); }
        ~Held() { clock.resume(); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
    };
    DeviceClock* clock = device_->parts().clock;
    if (clock == nullptr) {
        return false;
    }
    device_->synchronize();
    std::vector<int> marks;
    {
        Held held(*clock);
        marks.push_back(clock->mark());
        for (const StepEntry& entry : steps) {
            run_step(entry, context);
            marks.push_back(clock->mark());
        }
    }
    device_->synchronize();
    for (size_t i = 0; i < steps.size(); ++i) {
        timer.step(timed_info(steps[i]), clock->elapsed_ms(marks[i], marks[i + 1]));
    }
    timed_ms_ += clock->elapsed_ms(marks.front(), marks.back());
    return true;
}

void Runner::time_alone(const StepEntry& entry, const RunContext& context, StepTimer& timer) {
    device_->synchronize();
    auto start = std::chrono::steady_clock::now();
    run_step(entry, context);
    device_->synchronize();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    timer.step(timed_info(entry), took.count());
    timed_ms_ += took.count();
}

} // namespace ingot::plan
