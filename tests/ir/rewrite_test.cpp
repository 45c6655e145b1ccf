// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/interrupt.h"
#include "ir/rewrite.h"
#include "ir/sample_graphs.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/evaluator.h"
#include "ops/op_table.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

const ParseOptions ops_only{find_op, {}};

std::string full(const Graph& g) {
    PrintOptions o;
    o.full = true;
    return print(g, o);
}

TEST(Rewrite, CopyingEveryNodeChangesNothing) {
    for (const Graph& g : test::sample_graphs()) {
        Graph copy = rewrite(g, [](Rewriter&, const Node&, std::span<const Value>) {
            return std::optional<Values>();
        });
        EXPECT_EQ(full(copy), full(g));
        EXPECT_EQ(full(rewrite_bodies(g, [](const Graph& b) { return b; })), full(g));
    }
}

TEST(Rewrite, AGraphThatStaysIsShared) {
    Rule keep = [](Rewriter&, const Node&, std::span<const Value>) {
        return std::optional<Values>();
    };
    for (const Graph& g : test::sample_graphs()) {
        Graph clean = rewrite(dead_code(g), keep); // inputs first
        EXPECT_TRUE(rewrite(clean, keep).shares_all(clean)) << g.name();
        EXPECT_TRUE(dead_code(clean).shares_all(clean)) << g.name();
        auto same = [](const Graph& b) { return dead_code(b); };
        EXPECT_TRUE(rewrite_all(clean, same).shares_all(clean)) << g.name();
    }
}

TEST(Rewrite, AChangeLeavesTheOldGraphAsItWas) {
    for (const Graph& g : test::sample_graphs()) {
        std::string before = full(g);
        for (size_t at = 0; at < g.nodes().size(); ++at) {
            size_t i = 0;
            Graph other = rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                if (i++ != at) {
                    return std::optional<Values>();
                }
                r.out().add_input("extra", {DType::F32, {}});
                return std::optional(r.out().add(*n.def, n.attrs, in));
            });
            EXPECT_EQ(full(g), before);
            EXPECT_FALSE(other.shares_all(g));
            EXPECT_EQ(other.inputs().size(), g.inputs().size() + 1);
            EXPECT_EQ(other.nodes().size(), g.nodes().size());
            verify(other);
        }
    }
}

TEST(Rewrite, ValuesAreTheirOwnUntilTheFirstDifference) {
    Graph g = rewrite(test::primitives_graph(), [](Rewriter&, const Node&, std::span<const Value>) {
        return std::optional<Values>();
    });
    for (size_t at = 0; at < g.nodes().size(); ++at) {
        Rewriter r(g);
        for (size_t i = 0; i < g.nodes().size(); ++i) {
            const Node& n = g.nodes()[i];
            EXPECT_EQ(r.is_same(), i <= at);
            EXPECT_EQ(r.share(n) && i != at, i < at);
            if (i != at) {
                r.replace(n, i < at ? n.outputs : r.copy(n));
            } else { // as rules do that have looked at the copy
                r.out().set_origin(n.name);
                r.replace(n, r.out().add(*n.def, n.attrs, r.mapped(n.inputs)));
            }
            for (Value v : n.outputs) {
                EXPECT_TRUE(r.is_mapped(v));
                EXPECT_EQ(r.mapped(v) == v, i < at);
            }
        }
        Graph out = r.finish();
        verify(out);
        if (declared_symbols(g.nodes()[at]).empty()) { // a first definition is never dead
            EXPECT_EQ(full(dead_code(out)), full(dead_code(g))) << at;
        }
    }
}

TEST(Rewrite, WhatFollowsACopyHasItsOrigin) {
    Graph g = dead_code(test::primitives_graph());
    Rewriter r(g);
    for (const Node& n : g.nodes()) {
        r.replace(n, r.copy(n));
        EXPECT_EQ(r.out().origin(), n.name);
    }
}

TEST(Rewrite, WhatIsNotYetWrittenHasNoValue) {
    Graph g = parse_graph("graph a(%x: f32[2]) { %y = reshape(%x) {dims=[2]}\n"
                          "%z = reshape(%y) {dims=[2,1]} return %z }",
                          ops_only);
    Rewriter r(g);
    EXPECT_TRUE(r.is_same() && r.is_mapped(g.inputs()[0]));
    EXPECT_FALSE(r.is_mapped(g.nodes()[0].outputs[0]));
    EXPECT_TRUE(r.share(g.nodes()[0]));
    EXPECT_FALSE(r.is_mapped(g.nodes()[0].outputs[0])) << "a rule may still replace it";
    EXPECT_FALSE(r.share(g.nodes()[0])) << "it is there";
    r.replace(g.nodes()[0], r.out().inputs());
    EXPECT_FALSE(r.is_same());
}

TEST(Rewrite, WhatHasNoDeadCodeIsNotSearchedAgain) {
    for (const Graph& g : test::sample_graphs()) {
        Graph clean = dead_code(g);
        EXPECT_TRUE(clean.is_live());
        Graph kept = rewrite(clean, [](Rewriter&, const Node&, std::span<const Value>) {
            return std::optional<Values>();
        });
        EXPECT_EQ(kept.is_live(), kept.shares_all(clean));
        Graph grown = clean;
        ops::constant(grown, Tensor::i64({1}));
        EXPECT_FALSE(grown.is_live());
        EXPECT_TRUE(clean.is_live());
        EXPECT_EQ(full(dead_code(grown)), full(clean));
        Graph less = rewrite(clean, [&clean](Rewriter& r, const Node& n, std::span<const Value>) {
            bool is_last = &n == &clean.nodes().back();
            return is_last ? std::optional(r.out().add(*n.def, n.attrs, r.mapped(n.inputs)))
                           : std::nullopt;
        });
        EXPECT_FALSE(less.is_live());
    }
}

TEST(Rewrite, ANameGoesToTheReplacementOnly) {
    Graph g =
        parse_graph("graph a(%x: f32[2]) { %y = reshape(%x) {dims=[1,2]} return %y }", ops_only);
    g.set_value_name(g.nodes()[0].outputs[0], "named");
    Graph out = rewrite(g, [](Rewriter& r, const Node& n, std::span<const Value>) {
        Values kept = r.copy(n); // a part of its own replacement
        Value flat = ops::reshape(r.out(), kept[0], {2});
        return std::optional<Values>({ops::reshape(r.out(), flat, {1, 2})});
    });
    ASSERT_EQ(out.nodes().size(), 3U);
    EXPECT_EQ(out.value_name(out.nodes()[0].outputs[0]), "");
    EXPECT_EQ(out.value_name(out.outputs()[0]), "named");
    EXPECT_EQ(g.value_name(g.outputs()[0]), "named");
}

TEST(Rewrite, CopiesGrowApart) {
    Graph a = test::primitives_graph();
    std::string before = full(a);
    Graph b = a;
    EXPECT_TRUE(b.shares_all(a));
    Value more = ops::reshape(b, ops::constant(b, Tensor::i64({1, 2})), {2, 1});
    b.set_value_name(more, "more");
    EXPECT_EQ(full(a), before);
    EXPECT_EQ(b.nodes().size(), a.nodes().size() + 2);
    EXPECT_EQ(b.value_count(), a.value_count() + 2);
    std::string grown = full(b);
    a.set_value_name(a.nodes()[0].outputs[0], "renamed");
    EXPECT_EQ(full(b), grown);
    verify(a);
    verify(b);
    Graph c = std::move(b);
    EXPECT_EQ(full(c), grown);
    EXPECT_TRUE(b.nodes().empty()); // NOLINT(bugprone-use-after-move): valid, without nodes
}

/// A graph of a million nodes takes seconds for each of these: none waits for its end.
TEST(Rewrite, EachWalkSeesAnInterrupt) {
    Graph g =
        parse_graph("graph a(%x: f32[2]) { %y = reshape(%x) {dims=[1,2]} return %y }", ops_only);
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    auto is_interrupted = [](const std::function<void()>& f) {
        try {
            f();
        } catch (const Error& e) {
            return e.code() == ErrorCode::Interrupted;
        }
        return false;
    };
    request_interrupt();
    Rule keep = [](Rewriter&, const Node&, std::span<const Value>) {
        return std::optional<Values>();
    };
    EXPECT_TRUE(is_interrupted([&] { rewrite(g, keep); }));
    EXPECT_TRUE(is_interrupted([&] { dead_code(g); }));
    EXPECT_TRUE(is_interrupted([&] { verify(g); }));
    clear_interrupt();
    EXPECT_FALSE(is_interrupted([&] { verify(rewrite(dead_code(g), keep)); }));
}

TEST(Rewrite, WrongTypesAreRefused) {
    Graph g =
        parse_graph("graph a(%x: f32[2]) { %y = reshape(%x) {dims=[1,2]} return %y }", ops_only);
    Rule rule = [](Rewriter&, const Node&, std::span<const Value> in) {
        return std::optional(Values{in[0]});
    };
    EXPECT_THROW(rewrite(g, rule), Error);
}

TEST(Rewrite, SymbolsAreReplacedInWhatFollows) {
    Graph g = parse_graph(R"(graph a(%s: i64[1], %x: f32[1]) {
        %t = tensor_to_dims(%s) {symbols=[?0]}
        %b = broadcast(%x) {dims=[?0]}
        return %b as b
    })",
                          ops_only);
    Graph fixed = rewrite(g, [](Rewriter& r, const Node& n, std::span<const Value> in) {
        if (!n.is(tensor_to_dims_def)) {
            return std::optional<Values>();
        }
        r.replace_symbol("?0", 5);
        return std::optional(Values{in[0]});
    });
    verify(fixed);
    EXPECT_EQ(to_text(fixed.type(fixed.outputs()[0])), "f32[5]");
}

TEST(Rewrite, DeadCodeKeepsWhatDefinesSizes) {
    Graph g = parse_graph(R"(graph a(%s: i64[1], %x: f32[1]) {
        %unused = map(%x) {body="0=in(0):f32; 1=exp(0):f32", dtype=f32}
        %t = tensor_to_dims(%s) {symbols=[?0]}
        %u = tensor_to_dims(%s) {symbols=[?1]}
        %b = broadcast(%x) {dims=[?0]}
        return %b as b
    })",
                          ops_only);
    Graph clean = dead_code(g);
    verify(clean);
    ASSERT_EQ(clean.nodes().size(), 2U);
    EXPECT_TRUE(clean.nodes()[0].is(tensor_to_dims_def));
    EXPECT_EQ(clean.inputs().size(), 2U);
    EXPECT_EQ(full(dead_code(clean)), full(clean));
}

TEST(Rewrite, ExpandedCompositesComputeTheSame) {
    Graph g = test::composites_graph();
    Graph flat = expand_composites(g, [](const Graph&, const Node&) { return false; });
    verify(flat);
    for (const Node& n : flat.nodes()) {
        EXPECT_FALSE(n.def->is_composite()) << n.def->name;
    }
    Graph some =
        expand_composites(g, [](const Graph&, const Node& n) { return n.is(ops::conv_def); });
    EXPECT_EQ(some.nodes()[1].def, &ops::conv_def);
    Tensor x = Tensor::empty(DType::F32, {2, 4, 8, 8});
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_f64(i, static_cast<double>(i * 37 % 101) / 50 - 1);
    }
    std::vector<Tensor> want = evaluate(g, std::array{x});
    std::vector<Tensor> got = evaluate(flat, std::array{x});
    EXPECT_EQ(want, got);
}

TEST(Rewrite, InlinedBodiesTakeTheSizesOfTheirArguments) {
    Graph body = parse_graph(R"(graph b(%x: f32[M]) {
        %n = nonzero(%x) {count=?0}
        return %n
    })",
                             ops_only);
    Graph g = body.sibling("main");
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N") * Dim(2)}});
    Values once = inline_graph(g, body, std::array{x});
    Values twice = inline_graph(g, body, std::array{x});
    g.add_output("a", once[0]);
    g.add_output("b", twice[0]);
    verify(g);
    EXPECT_NE(to_text(g.type(once[0])), to_text(g.type(twice[0])));
}

TEST(Rewrite, InputSizesCanBeFixed) {
    int open = 0; // places with the size before
    for (const Graph& g : test::sample_graphs()) {
        visit_nodes(g, [&open](const Graph& one, const Node& n) {
            SymbolSet s;
            collect_symbols(one, n, s);
            open += s.contains("N") ? 1 : 0;
        });
        Graph fixed = substitute_symbols(g, {{"N", Dim(3)}});
        verify(fixed);
        visit_nodes(fixed, [](const Graph& one, const Node& n) {
            SymbolSet s;
            collect_symbols(one, n, s);
            EXPECT_FALSE(s.contains("N")) << n.def->name;
        });
    }
    EXPECT_GT(open, 10);
}

TEST(Rewrite, UsesAndNodesAreCounted) {
    Graph g = parse_graph(R"(graph a(%x: f32[2]) {
        %y = map(%x, %x) {body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32", dtype=f32}
        return %y as a, %y as b
    })",
                          ops_only);
    EXPECT_EQ(use_counts(g), (std::vector<uint32_t>{2, 2}));
    EXPECT_EQ(count_nodes(test::control_graph()), 11U);
}

} // namespace
} // namespace ingot
