// SPDX-License-Identifier: Apache-2.0
// Settings of a run: where they hold, and what they do.
#include "ops/ops.h"
#include "run/running.h"

#include <gtest/gtest.h>

namespace ingot::plan {
namespace {

/// if (c) { if (c) { x + x } else { x } } else { x }
Graph nested_branches() {
    auto branch = [](bool twice) {
        auto g = std::make_shared<Graph>();
        Value x = g->add_input("x", parse_type("f32[3]"));
        g->add_output("y", twice ? ops::add(*g, x, x) : ops::maximum(*g, x, 0.0));
        return g;
    };
    auto outer = std::make_shared<Graph>();
    Value c = outer->add_input("c", parse_type("bool[]"));
    Value x = outer->add_input("x", parse_type("f32[3]"));
    outer->add_output("y", outer->add1(if_def, If{branch(true), branch(false), {}}, {c, x}));
    auto other = std::make_shared<Graph>();
    other->add_input("c", parse_type("bool[]"));
    other->add_output("y", ops::maximum(*other, other->add_input("x", parse_type("f32[3]")), 0.0));
    Graph g;
    Value condition = g.add_input("c", parse_type("bool[]"));
    Value in = g.add_input("x", parse_type("f32[3]"));
    g.add_output("y", g.add1(if_def, If{outer, other, {}}, {condition, condition, in}));
    return g;
}

/// A new setting holds in bodies by itself; a timer, an observer and an event are the whole run's.
TEST(RunSettings, HoldInBodies) {
    Running r(nested_branches());
    Tensor yes = Tensor::zeros(DType::Bool, {});
    yes.set_i64(0, 1);
    int marker = 0;
    RunWatch watch;
    watch.communicator = &marker;
    r.check({yes, numbers({3})}, watch);
    // The whole, its branch, and the branch of that one, which has no bodies.
    EXPECT_EQ(r.device.communicators, (std::vector<void*>{&marker, &marker, nullptr}));
    r.device.communicators.clear();
    r.check({yes, numbers({3})});
    EXPECT_EQ(r.device.communicators, std::vector<void*>(3));

    struct : StepTimer {
        void step(const StepInfo&, double) noexcept override {}
    } timer;
    watch.timer = &timer;
    watch.times_later = true;
    watch.observer = [](const ObservedValue&) {};
    watch.ranges = Ranges::Detailed;
    watch.inputs_event = &marker;
    watch.cache_limit = 7;
    watch.replay = false;
    RunWatch bodies = watch.for_bodies();
    EXPECT_EQ(bodies.timer, nullptr);
    EXPECT_FALSE(bodies.times_later || bodies.observer || bodies.replay);
    EXPECT_EQ(bodies.ranges, Ranges::None);
    EXPECT_EQ(bodies.inputs_event, nullptr);
    EXPECT_EQ(bodies.communicator, &marker);
    EXPECT_EQ(bodies.cache_limit, 7);
}

} // namespace
} // namespace ingot::plan
