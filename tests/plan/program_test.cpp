// SPDX-License-Identifier: Apache-2.0
// Programs: the kernel and segment of a node, and packing once.
#include "base/error.h"
#include "error_of.h"
#include "ops/ops.h"
#include "plan/memory_source.h"
#include "plan/planned.h"
#include "plan/program.h"

#include <gtest/gtest.h>

#include <thread>

namespace ingot::plan {
namespace {

using test::error_of;

std::optional<std::string> accept(const Group&) {
    return std::nullopt;
}

std::optional<std::string> refuse_wide(const Group& g) {
    const Type& t = g.graph.type(g.first().outputs[0]);
    return t.dtype == DType::F64 ? std::optional<std::string>("it is f64") : std::nullopt;
}

/// Maps except f64 ones, no consumers of slices: two tables, searched in order.
KernelSet kernels() {
    static const Kernel first[] = {{.name = "map", .refuse = refuse_wide, .prepare = nullptr}};
    static const Kernel second[] = {{.name = "map", .refuse = accept, .prepare = nullptr},
                                    {.name = "nonzero", .refuse = accept, .prepare = nullptr},
                                    {.name = "gather", .refuse = refuse_wide, .prepare = nullptr},
                                    {.name = "if", .refuse = accept, .prepare = nullptr}};
    static const KernelTable a = first;
    static const KernelTable b = second;
    static const KernelTable* const tables[] = {&a, &b};
    return {"test", [] { return std::span<const KernelTable* const>(tables); }, nullptr};
}

std::shared_ptr<const Program> program_of(Graph g) {
    static const KernelSet set = kernels();
    return make_program(std::make_shared<const Graph>(std::move(g)), set,
                        std::make_shared<PackCache>(), {});
}

/// x, its nonzero elements' columns, and the values gathered by them.
Graph found(DType t) {
    Graph g;
    Value x = g.add_input("x", {t, {4, 8}});
    Value y = ops::unary(g, ExprOp::Neg, x);
    Value where = g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {y});
    Value columns = ops::squeeze(g, ops::slice(g, where, 0, 1, 1), {0});
    g.set_origin("rows");
    g.add_output("rows", ops::gather(g, ops::permute(g, y, {1, 0}), columns, 0));
    return g;
}

TEST(Program, SegmentsEndWhereASizeIsFound) {
    auto p = program_of(found(DType::F32));
    EXPECT_EQ(p->segments, 2);
    EXPECT_TRUE(p->outer_symbols.empty());
    for (size_t i = 0; i < p->nodes.size(); ++i) {
        const Node& n = p->graph->nodes()[i];
        const NodeInfo& info = p->nodes[i];
        bool finds = n.is(nonzero_def);
        EXPECT_EQ(info.binds, finds) << n.def->name;
        EXPECT_EQ(info.symbols.size(), finds ? 1U : 0U) << n.def->name;
        bool late = n.is(gather_def) || n.is(slice_def) || n.is(reshape_def);
        EXPECT_EQ(info.segment, late ? 1 : 0) << n.def->name;
        bool is_view = n.is(slice_def) || n.is(reshape_def) || n.is(permute_def);
        EXPECT_EQ(info.kernel == nullptr, is_view) << n.def->name;
        for (Value v : n.outputs) {
            EXPECT_EQ(p->value_segment[v.id], late || finds ? 1 : 0) << n.def->name;
        }
    }
    Value y = p->graph->nodes()[0].outputs[0];
    EXPECT_EQ(p->users[y.id].size(), 2U); // nonzero and permute
}

TEST(Program, TheFirstKernelThatTakesANodeRunsIt) {
    for (DType t : {DType::F32, DType::F64}) {
        Graph g;
        g.add_output("y", ops::unary(g, ExprOp::Neg, g.add_input("x", {t, {4}})));
        auto p = program_of(std::move(g));
        KernelSet set = kernels();
        const Kernel* want = &(*set.tables()[t == DType::F32 ? 0 : 1])[0];
        EXPECT_EQ(p->nodes[0].kernel, want) << name(t);
    }
}

TEST(Program, NodesWithoutAKernelAreNamedWithTheLastRefusal) {
    EXPECT_EQ(error_of([] { program_of(found(DType::F64)); }),
              "node 'rows' (gather): no kernel of the test backend runs it: it is f64");
    Graph g;
    g.set_origin("sum");
    g.add_output("y", ops::reduce_sum(g, g.add_input("x", {DType::F32, {4}}), {0}));
    EXPECT_EQ(error_of([&] { program_of(std::move(g)); }),
              "node 'sum' (reduce): no kernel of the test backend runs it: there is none of that "
              "name");
}

// A body may name sizes that only the graph around it defines.
TEST(Program, BodiesAreProgramsThatNameSizesOfTheOuterGraph) {
    Graph g;
    Value c = g.add_input("c", parse_type("bool[]"));
    Value x = g.add_input("x", parse_type("f32[N]"));
    Value u = g.add_input("u", parse_type("f32[1]"));
    auto branch = [&](ExprOp op) {
        Graph b = g.sibling("branch");
        Value in = b.add_input("in", parse_type("f32[1]"));
        b.add_output("r", ops::broadcast_to(b, ops::unary(b, op, in), {Dim::symbol("N")}));
        return std::make_shared<const Graph>(std::move(b));
    };
    GraphRef then = branch(ExprOp::Exp);
    GraphRef other = branch(ExprOp::Neg);
    Value y = g.add1(if_def, If{then, other, {}}, {c, u});
    g.add_output("y", ops::add(g, y, x));
    auto p = program_of(std::move(g));
    EXPECT_TRUE(p->outer_symbols.empty());
    ASSERT_EQ(p->nodes[0].bodies.size(), 2U);
    EXPECT_EQ(p->nodes[0].bodies[0]->outer_symbols, std::vector<std::string>{"N"});
    EXPECT_EQ(p->nodes[0].bodies[1]->graph, other);
    EXPECT_EQ(p->nodes[0].bodies[0]->packs, p->packs);
}

TEST(PackCache, MakesEachEntryOnce) {
    PackCache packs;
    int made = 0;
    auto make = [&made] {
        ++made;
        return std::pair(std::make_shared<int>(made), size_t{100});
    };
    std::shared_ptr<int> first = packs.get<int>("a", make);
    EXPECT_EQ(packs.get<int>("a", make), first);
    EXPECT_EQ(*packs.get<int>("b", make), 2);
    EXPECT_EQ(made, 2);
    EXPECT_EQ(packs.bytes(), 200U);
}

// Two threads may both make an entry: all get the same one, and it is counted once.
TEST(PackCache, ThreadsShareOneEntry) {
    PackCache packs;
    std::vector<std::shared_ptr<int>> got(8);
    std::vector<std::thread> threads;
    for (std::shared_ptr<int>& slot : got) {
        threads.emplace_back([&packs, &slot] {
            slot =
                packs.get<int>("a", [] { return std::pair(std::make_shared<int>(1), size_t{9}); });
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    for (const std::shared_ptr<int>& p : got) {
        EXPECT_EQ(p, got[0]);
    }
    EXPECT_EQ(packs.bytes(), 9U);
}

struct Counted : MemorySource {
    int live = 0;
    bool empty = false;
    std::byte* allocate(int64_t bytes) noexcept override {
        if (empty) {
            return nullptr;
        }
        ++live;
        return static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(bytes), std::align_val_t{256}));
    }
    void release(std::byte* memory) noexcept override {
        --live;
        ::operator delete (memory, std::align_val_t{256});
    }
};

TEST(PackCache, TakesMemoryFromTheApplication) {
    auto source = std::make_shared<Counted>();
    {
        PackCache packs(source);
        std::shared_ptr<std::byte> memory = packs.allocate(1000);
        EXPECT_EQ(source->live, 1);
        source->empty = true;
        EXPECT_EQ(error_of([&] { packs.allocate(1000); }),
                  "packed weights need 1000 bytes, which the allocator does not give");
    }
    EXPECT_EQ(source->live, 0);
}

} // namespace
} // namespace ingot::plan
