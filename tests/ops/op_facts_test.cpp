// SPDX-License-Identifier: Apache-2.0
// The facts of ops (ir/op_facts.h) hold for every op case: ops that move elements compute none,
// smooth ones answer small changes with small ones, and a narrowed op takes operands of the stated
// types.
#include "ir/rewrite.h"
#include "op_case.h"
#include "op_test.h"
#include "ops/op_table.h"
#include "source_dir.h"

#include <cmath>
#include <map>
#include <set>

namespace ingot::test {
namespace {

/// The op of a case on operands of its types, as `type_of` changes them.
template <class TypeOf>
Graph graph_of(const OpCase& c, const std::shared_ptr<const void>& attrs, TypeOf type_of) {
    Graph g(std::string(c.def->name));
    Values operands;
    for (const CaseInput& i : c.inputs) {
        Value v = g.add_input(str("x", g.inputs().size()),
                              i.operand ? type_of(operands.size(), i.type) : i.type);
        if (i.operand) {
            operands.push_back(v);
        }
    }
    g.reserve_symbols();
    Values out = g.add(*c.def, attrs, operands);
    for (size_t i = 0; i < out.size(); ++i) {
        g.add_output(str("y", i), out[i]);
    }
    return g;
}

Graph graph_of(const OpCase& c) {
    return graph_of(c, c.attrs, [](size_t, const Type& t) { return t; });
}

bool is_wide_float(DType t) {
    return t == DType::F32 || t == DType::F64;
}

const Node& node_of(const Graph& g) {
    return g.nodes().back();
}

/// f(case, its graph) for each case on a graph of one node.
template <class F>
void for_cases(F&& f) {
    for (const CaseLine& line : list_cases(source_dir() + "/tests/ops")) {
        SCOPED_TRACE(str(line.place, ": ", line.text));
        OpCase c = parse_case(line.place, line.text);
        Graph g = graph_of(c);
        if (!g.nodes().empty() && node_of(g).def == c.def) {
            f(c, g);
        }
    }
}

TEST(OpFacts, OpsThatMoveElementsMakeNone) {
    std::set<std::string_view> seen;
    for_cases([&](const OpCase& c, const Graph& g) {
        if (c.def->facts.rounding(node_of(g)) != Rounding::Moves ||
            !is_float(g.type(g.outputs()[0]).dtype)) {
            return;
        }
        for (size_t k = 0; k < evaluation_count(c); ++k) {
            std::vector<Tensor> inputs = inputs_of(c, k);
            std::set<double> elements;
            for (size_t i = 0; i < inputs.size(); ++i) {
                for (int64_t e = 0; c.inputs[i].operand && e < inputs[i].count(); ++e) {
                    elements.insert(inputs[i].get_f64(e));
                }
            }
            for (const Tensor& y : evaluate(g, inputs)) {
                for (int64_t e = 0; e < y.count(); ++e) {
                    ASSERT_TRUE(elements.contains(y.get_f64(e))) << "element " << e;
                }
            }
        }
        seen.insert(c.def->name);
    });
    EXPECT_GE(seen.size(), 8U);
}

Tensor changed(const Tensor& t, double factor) {
    Tensor out = t.clone();
    for (int64_t e = 0; e < out.count(); ++e) {
        out.set_f64(e, out.get_f64(e) * (e % 2 == 0 ? 1 + factor : 1 - factor));
    }
    return out;
}

TEST(OpFacts, SmoothOpsAnswerSmallChangesWithSmallOnes) {
    constexpr double change = 1e-6;
    constexpr double most = 2000; // times as large; products of rows of a few dozen elements
    std::set<std::string_view> seen;
    for_cases([&](const OpCase& c, const Graph& g) {
        // Reference cases are at ties and limits, where every function may jump.
        if (c.def->facts.rounding(node_of(g)) != Rounding::Smooth ||
            c.place.starts_with("reference.case")) {
            return;
        }
        EvalOptions f64;
        f64.f64 = true;
        std::vector<Tensor> inputs = inputs_of(c, 0);
        std::vector<Tensor> near = inputs;
        bool any = false;
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (c.inputs[i].operand && is_wide_float(inputs[i].dtype())) {
                near[i] = changed(inputs[i], change);
                any = true;
            }
        }
        if (!any) {
            return;
        }
        std::vector<Tensor> before = evaluate(g, inputs, f64);
        std::vector<Tensor> after = evaluate(g, near, f64);
        for (size_t i = 0; i < before.size(); ++i) {
            double largest = 1;
            for (int64_t e = 0; e < before[i].count(); ++e) {
                double v = std::abs(before[i].get_f64(e));
                largest = std::isfinite(v) ? std::max(largest, v) : largest;
            }
            for (int64_t e = 0; e < before[i].count(); ++e) {
                double difference = std::abs(after[i].get_f64(e) - before[i].get_f64(e));
                ASSERT_FALSE(difference > most * change * largest) << "element " << e;
            }
        }
        seen.insert(c.def->name);
    });
    EXPECT_GE(seen.size(), 13U);
}

/// Adds the op as the precision pass would: f32 becomes f16 except where the op's facts keep it.
TEST(OpFacts, NarrowedOpsTakeOperandsOfTheTypesThatTheySay) {
    std::set<std::string_view> seen;
    for_cases([&](const OpCase& c, const Graph& g) {
        const OperandTypes& types = c.def->facts.operands;
        InHalf half = c.def->facts.in_half(g, node_of(g));
        bool narrows = half == InHalf::Narrow || half == InHalf::AsOperands;
        if (!narrows || types.keeps(0)) {
            return;
        }
        AttrMap map;
        map.dtype = [](DType t) { return t == DType::F32 ? DType::F16 : t; };
        Graph narrow("narrow");
        ASSERT_NO_THROW(
            narrow = graph_of(c, map_attrs(*c.def, c.attrs.get(), map), [&](size_t k, Type t) {
                bool stays = types.keeps(k) || types.takes_either(k);
                t.dtype = stays ? t.dtype : map.dtype(t.dtype);
                return t;
            }));
        for (size_t i = 0; i < g.outputs().size(); ++i) {
            EXPECT_EQ(narrow.type(narrow.outputs()[i]).dtype,
                      map.dtype(g.type(g.outputs()[i]).dtype));
        }
        seen.insert(c.def->name);
    });
    EXPECT_GE(seen.size(), 25U);
}

} // namespace
} // namespace ingot::test
