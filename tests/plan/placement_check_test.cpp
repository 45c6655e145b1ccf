// SPDX-License-Identifier: Apache-2.0
// Faults of plans that are made by hand, by the text of their errors; and that planning looks for
// them where it is asked to.
#include "error_of.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "plan/device.h"
#include "plan/placement_check.h"
#include "plan/planned.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

class ScratchStep : public plan::Step {
public:
    explicit ScratchStep(int64_t bytes, int buffer) : bytes_(bytes) { scratch = buffer; }
    Status run(const plan::RunContext&) noexcept override { return {}; }
    int64_t scratch_bytes() const override { return bytes_; }

private:
    int64_t bytes_;
};

plan::Operand floats(int buffer, int64_t count) {
    return {DType::F32, buffer, plan::dense({count})};
}

/// Input b0 -> b2, with scratch memory b3 -> b4 -> output b1.
struct ByHand {
    Graph graph;
    plan::SegmentPlan plan;

    ByHand() {
        Value x = graph.add_input("x", parse_type("f32[16]"));
        for (const char* name : {"first", "second", "third"}) {
            graph.set_origin(name);
            x = ops::unary(graph, ExprOp::Tanh, x);
        }
        plan.first_buffer = 2;
        add_step(0, floats(0, 16), floats(2, 16));
        plan.steps[0].step = std::make_unique<ScratchStep>(128, 3);
        add_step(1, floats(2, 16), floats(4, 16));
        add_step(2, floats(4, 16), floats(1, 16));
        add_buffer(64, 0, 0, 1);
        add_buffer(128, 64, 0, 0);
        add_buffer(64, 64, 1, 2);
        plan.arena_bytes = 192;
    }
    void add_step(size_t node, const plan::Operand& in, const plan::Operand& out) {
        plan::StepEntry e;
        e.kernel = "map";
        e.node = &graph.nodes()[node];
        e.in = {in};
        e.out = {out};
        plan.steps.push_back(std::move(e));
    }
    void add_buffer(int64_t bytes, int64_t offset, int64_t first, int64_t last) {
        plan::Storage s;
        s.bytes = bytes;
        s.offset = offset;
        s.first = first;
        s.last = last;
        plan.storages.push_back(std::move(s));
    }
    std::string fault() const { return plan::placement_fault(plan); }
};

TEST(PlacementCheck, AcceptsBuffersThatTakeTurns) {
    EXPECT_EQ(ByHand().fault(), "");
}

TEST(PlacementCheck, NamesTwoResultsThatShareBytes) {
    ByHand p;
    p.plan.storages[2].offset = 32;
    EXPECT_EQ(
        p.fault(),
        "segment 0, step 1 (map 'second'): b4 (written by step 1 (map 'second'), bytes 32 to 95, "
        "alive from step 1 to 2), and b2 (written by step 0 (map 'first'), bytes 0 to 63, alive "
        "from step 0 to 1), share bytes 32 to 63 while both live");
    p.plan.storages[1].offset = 0;
    EXPECT_TRUE(p.fault().ends_with(" while both live (the first of 2 such pairs)")) << p.fault();
}

TEST(PlacementCheck, NamesScratchMemoryUnderAResult) {
    ByHand p;
    p.plan.storages[1].offset = 0;
    EXPECT_EQ(
        p.fault(),
        "segment 0, step 0 (map 'first'): b3 (scratch memory of step 0 (map 'first'), bytes 0 to "
        "127, alive at step 0), and b2 (written by step 0 (map 'first'), bytes 0 to 63, alive from "
        "step 0 to 1), share bytes 0 to 63 while both live");
}

TEST(PlacementCheck, NamesUsesOutsideOfALifetime) {
    ByHand p;
    p.plan.storages[0].last = 0;
    EXPECT_EQ(
        p.fault(),
        "segment 0, step 1 (map 'second'): uses b2 (written by step 0 (map 'first'), bytes 0 to "
        "63, alive at step 0), outside of its lifetime");
    ByHand s;
    s.plan.storages[1].first = s.plan.storages[1].last = 2;
    EXPECT_EQ(s.fault(), "segment 0, step 0 (map 'first'): uses b3 (scratch memory of step 0 (map "
                         "'first'), bytes 64 to 191, alive at step 2), outside of its lifetime");
}

TEST(PlacementCheck, NamesBytesBeyondABufferAndTheArena) {
    ByHand p;
    p.plan.steps[1].in[0].view.offset = 1;
    EXPECT_EQ(
        p.fault(),
        "segment 0, step 1 (map 'second'): uses elements 1 to 16 of f32 in b2 (written by step 0 "
        "(map 'first'), bytes 0 to 63, alive from step 0 to 1), beyond its bytes");
    ByHand a;
    a.plan.arena_bytes = 191;
    EXPECT_EQ(a.fault(),
              "segment 0: b3 (scratch memory of step 0 (map 'first'), bytes 64 to 191, alive "
              "at step 0), is not within the segment's 191 bytes");
}

TEST(PlacementCheck, NamesWhatIsReadBeforeItIsWritten) {
    ByHand p;
    p.plan.steps[0].in[0] = floats(4, 16);
    EXPECT_EQ(p.fault(),
              "segment 0, step 0 (map 'first'): reads b4 (bytes 64 to 127, alive from step 1 "
              "to 2), which no step before has written");
}

/// The host's memory, on which lifetimes end too early.
class Careless final : public plan::Device, private plan::DeviceLaunches {
public:
    Careless() : Device(true) {
        plan::DeviceParts parts;
        parts.launches = this;
        set_parts(parts);
    }
    ~Careless() override { release_spare(); }
    Careless(const Careless&) = delete;
    Careless& operator=(const Careless&) = delete;
    std::byte* allocate(int64_t bytes) override { return host_.allocate(bytes); }
    void release(std::byte* memory) noexcept override { host_.release(memory); }
    void set_memory(std::shared_ptr<MemorySource>) override {}
    const std::byte* constant(const plan::StoredConstant& c) override { return host_.constant(c); }
    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        host_.copy(to, from, bytes);
    }
    void fill(std::byte* to, int byte, size_t bytes) override { host_.fill(to, byte, bytes); }
    void read(void* to, const std::byte* from, size_t bytes) override {
        host_.read(to, from, bytes);
    }
    void write(std::byte* to, const void* from, size_t bytes) override {
        host_.write(to, from, bytes);
    }
    void synchronize() override {}

private:
    void begin_plan() override {}
    void join_steps(plan::SegmentPlan& plan) override {
        for (plan::Storage& s : plan.storages) {
            s.last = s.first;
        }
    }
    bool settle() override { return false; }
    bool replay(plan::SegmentPlan&, const plan::RunContext&) override { return false; }

    plan::Device& host_ = plan::host_device();
};

TEST(PlacementCheck, PlanningLooksForFaultsWhereItIsAsked) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,8]"));
    g.set_origin("rows");
    Value rows = ops::softmax(g, x, 1);
    g.set_origin("columns");
    g.add_output("y", ops::softmax(g, rows, 0));
    CompileOptions options;
    options.verify_passes = true;
    Careless device;
    std::unique_ptr<Planned> p = planned_for_cpu(g, options);
    EXPECT_EQ(error_of([&] {
                  plan::plan_segment(p->program(), device, 0, {{"N", 4}}, nullptr);
              }),
              "the plan is wrong, and results would be too: segment 0, step 1 (copy): uses b2 "
              "(written by "
              "step 0 (softmax 'rows'), bytes 0 to 127, alive at step 0), outside of its lifetime; "
              "this is a "
              "fault of Ingot: please report it with the model and with what 'ingot inspect MODEL "
              "--plan' "
              "prints");
}

} // namespace
} // namespace ingot::test
