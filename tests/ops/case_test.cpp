// SPDX-License-Identifier: Apache-2.0
// Runs every op case: inference against evaluation, the expansion of composites, sizes known at
// compile time against run time, the f64 evaluation, text and binary form, and every backend.
#include "case_backends.h"
#include "ir/binary.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "op_case.h"
#include "op_test.h"
#include "ops/op_table.h"
#include "ops/refusal.h"
#include "source_dir.h"
#include "tolerance.h"

#include <cmath>
#include <map>

namespace ingot::test {
namespace {

Graph graph_of(const OpCase& c) {
    Graph g(std::string(c.def->name));
    Values operands;
    for (const CaseInput& i : c.inputs) {
        Value v = g.add_input(str("x", g.inputs().size()), i.type);
        if (i.operand) {
            operands.push_back(v);
        }
    }
    g.reserve_symbols();
    Values out = g.add(*c.def, c.attrs, operands);
    for (size_t i = 0; i < out.size(); ++i) {
        g.add_output(str("y", i), out[i]);
    }
    return g;
}

std::vector<Type> output_types(const Graph& g) {
    std::vector<Type> out;
    for (Value v : g.outputs()) {
        out.push_back(g.type(v));
    }
    return out;
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                  const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].dtype(), want[i].dtype()) << what << ", result " << i;
        EXPECT_EQ(difference(got[i], want[i], 0), "") << what << ", result " << i;
    }
}

void expect_close(const OpCase& c, const std::vector<Tensor>& got, const std::vector<Tensor>& want,
                  const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
        double limit = c.tolerance.value_or(tolerance_of(c.def->name, got[i].dtype()));
        EXPECT_EQ(difference(got[i], want[i], limit), "") << what << ", result " << i;
    }
}

// Result types hold for the results; sizes bound at run time are skipped.
void check_types(const Graph& g, const std::vector<Tensor>& results, const Symbols& symbols) {
    std::vector<Type> types = output_types(g);
    ASSERT_EQ(results.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) {
        EXPECT_EQ(results[i].dtype(), types[i].dtype);
        ASSERT_EQ(results[i].rank(), types[i].rank());
        for (size_t d = 0; d < types[i].dims.size(); ++d) {
            if (auto size = types[i].dims[d].try_eval(symbols)) {
                EXPECT_EQ(results[i].shape()[d], *size) << "axis " << d << " of result " << i;
            }
        }
    }
}

// The graph with known sizes infers types that match the symbolic ones, and computes the same.
void check_specialised(const Graph& g, const Symbols& symbols, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& results) {
    SymbolMap sizes;
    for (const auto& [name, value] : symbols) {
        sizes[name] = value;
    }
    Graph fixed = substitute_symbols(g, sizes);
    verify(fixed);
    std::vector<Type> types = output_types(fixed);
    for (size_t i = 0; i < types.size(); ++i) {
        for (size_t d = 0; d < types[i].dims.size(); ++d) {
            auto size = types[i].dims[d].as_const();
            EXPECT_EQ(size.value_or(results[i].shape()[d]), results[i].shape()[d])
                << "specialised, axis " << d << " of result " << i;
        }
    }
    expect_equal(evaluate(fixed, inputs), results, "specialised");
}

Graph binary_round_trip(const Graph& g) {
    std::vector<Tensor> placed;
    std::vector<std::byte> bytes = write_graph(g, [&](const Tensor& t) {
        placed.push_back(t);
        return placed.size() - 1;
    });
    ReadOptions options;
    options.find_op = find_op;
    options.fetch = [&](DType, const Shape&, uint64_t at) { return placed.at(at); };
    return read_graph(bytes, options);
}

Graph text_round_trip(const Graph& g) {
    PrintOptions full;
    full.full = true;
    std::string text = print(g, full);
    ParseOptions options;
    options.find_op = find_op;
    Graph back = parse_graph(text, options);
    EXPECT_EQ(print(back, full), text);
    return back;
}

bool arithmetic(DType t) {
    return t == DType::F32 || t == DType::F16;
}

// Float operands pass through a map before the op, results after it: typical neighbours for fusion.
Graph between_maps(const OpCase& c) {
    Graph g("between_maps");
    Values operands;
    for (const CaseInput& i : c.inputs) {
        Value v = g.add_input(str("x", g.inputs().size()), i.type);
        if (i.operand) {
            operands.push_back(arithmetic(i.type.dtype) ? ops::mul(g, v, 0.5) : v);
        }
    }
    g.reserve_symbols();
    for (Value v : g.add(*c.def, c.attrs, operands)) {
        Value y = arithmetic(g.type(v).dtype) ? ops::add(g, v, 1.0) : v;
        g.add_output(str("y", g.outputs().size()), y);
    }
    return g;
}

void check_backends(const OpCase& c, const Graph& g, const std::vector<Tensor>& inputs,
                    const std::vector<Tensor>& results, const std::string& form) {
    for (const CaseBackend& b : case_backends()) {
        std::vector<Tensor> got = b.run(g, inputs);
        if (c.exact && form.empty()) {
            expect_equal(got, results, b.name);
        } else {
            expect_close(c, got, results, str(b.name, form));
        }
    }
}

// The expected signs of zeros.
void check_negative_zeros(const std::vector<std::string>& want, const Tensor& result) {
    for (size_t i = 0; i < want.size(); ++i) {
        bool zero_with_sign = want[i] == "-0" && is_float(result.dtype());
        EXPECT_TRUE(!zero_with_sign || std::signbit(result.get_f64(static_cast<int64_t>(i))))
            << "element " << i << " is 0, expected -0";
    }
}

void check_wanted(const OpCase& c, const std::vector<Tensor>& results) {
    ASSERT_LE(c.want.size(), results.size());
    for (size_t i = 0; i < c.want.size(); ++i) {
        std::vector<double> numbers;
        for (const std::string& w : c.want[i]) {
            numbers.push_back(std::stod(w));
        }
        ASSERT_EQ(static_cast<int64_t>(numbers.size()), results[i].count());
        DType wide = is_float(results[i].dtype()) ? DType::F64 : DType::I64;
        Tensor want = Tensor::of<double>(wide, results[i].shape(), numbers);
        double limit =
            c.exact ? 0 : c.tolerance.value_or(tolerance_of(c.def->name, results[i].dtype()));
        EXPECT_EQ(difference(results[i], want, limit), "") << "wanted result " << i;
        check_negative_zeros(c.want[i], results[i]);
    }
}

void run_case(const OpCase& c) {
    Graph g = graph_of(c);
    verify(g);
    Graph expanded = expand_composites(g, [](const Graph&, const Node&) { return false; });
    verify(expanded);
    EXPECT_EQ(output_types(expanded), output_types(g)) << "types of the expansion";
    Graph from_text = text_round_trip(g);
    Graph from_bytes = binary_round_trip(g);
    EvalOptions f64;
    f64.f64 = true;
    for (size_t k = 0; k < evaluation_count(c); ++k) {
        Symbols symbols = symbols_of(c, k);
        std::string sizes;
        for (const auto& [name, value] : symbols) {
            append(sizes, str(" ", name, "=", value));
        }
        SCOPED_TRACE(str("with", sizes));
        std::vector<Tensor> inputs = inputs_of(c, k);
        std::vector<Tensor> results = evaluate(g, inputs);
        check_types(g, results, symbols);
        check_wanted(c, results);
        check_specialised(g, symbols, inputs, results);
        expect_equal(evaluate(expanded, inputs), results, "expanded");
        expect_equal(evaluate(from_text, inputs), results, "from text");
        expect_equal(evaluate(from_bytes, inputs), results, "from the binary form");
        expect_close(c, results, evaluate(g, inputs, f64), "against f64");
        if (!c.evaluator_only) {
            check_backends(c, g, inputs, results, "");
            Graph mapped = between_maps(c);
            check_backends(c, mapped, inputs, evaluate(mapped, inputs), " between maps");
        }
    }
}

const std::vector<CaseLine>& all_cases() {
    static const std::vector<CaseLine> cases = list_cases(source_dir() + "/tests/ops");
    return cases;
}

class OpCases : public testing::TestWithParam<CaseLine> {};

TEST_P(OpCases, Hold) {
    SCOPED_TRACE(str(GetParam().place, ": ", GetParam().text));
    try {
        run_case(parse_case(GetParam().place, GetParam().text));
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
}

std::string test_name(const testing::TestParamInfo<CaseLine>& line) {
    std::string name = line.param.place;
    for (char& ch : name) {
        ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
    }
    return name;
}

INSTANTIATE_TEST_SUITE_P(Files, OpCases, testing::ValuesIn(all_cases()), test_name);

TEST(OpCoverage, EveryOpHasACase) {
    std::map<std::string_view, int> counts;
    for (const CaseLine& line : all_cases()) {
        ++counts[parse_case(line.place, line.text).def->name];
    }
    for (const OpTable* table : all_ops()) {
        for (const OpDef* op : *table) {
            // Others are tested in tests/api, and the op that only fails in refusal_test.cpp.
            bool is_ours = (op->is_composite() || op->eval != nullptr) && op != &ops::refusal_def;
            EXPECT_TRUE(!is_ours || counts[op->name] > 0)
                << op->name << " has no line in tests/ops/*.case";
        }
    }
}

TEST(OpCoverage, TheComparisonSeesDifferences) {
    EXPECT_EQ(difference(f32({2}, {1, 2}), f32({2}, {1, 2}), 0), "");
    EXPECT_EQ(difference(f32({2}, {1, 2.5}), f32({2}, {1, 2}), 0.125),
              "element 1 is 2.5, expected 2 within 0.25");
    EXPECT_EQ(difference(f32({2}, {1, 2.25}), f32({2}, {1, 2}), 0.125), "");
    EXPECT_EQ(difference(f32({1}, {NAN}), f32({1}, {2}), 1),
              "element 0 is nan, expected 2 within 2");
    EXPECT_EQ(difference(f32({1}, {2}), f32({1}, {NAN}), 1),
              "element 0 is 2, expected nan within 0");
    EXPECT_EQ(difference(f32({1}, {NAN}), f32({1}, {NAN}), 0), "");
    EXPECT_EQ(difference(f32({1}, {4}), f32({1}, {INFINITY}), 1),
              "element 0 is 4, expected inf within 0");
    EXPECT_EQ(difference(i64({2}, {1, 2}), i64({2}, {1, 3}), 0),
              "element 1 is 2, expected 3 within 0");
    EXPECT_EQ(difference(f32({2}, {1, 2}), f32({1, 2}, {1, 2}), 0), "shape [2], expected [1,2]");
}

TEST(OpCoverage, MistakesInACaseAreErrors) {
    auto error = [](const char* text) {
        return error_of([&] { inputs_of(parse_case("here", text), 0); });
    };
    EXPECT_EQ(error("op nothing | f32[1]"), "invalid argument: 'nothing' is not an op");
    EXPECT_EQ(error("reduce | f32[1]"),
              "invalid argument: expected 'op NAME ATTRIBUTES | TYPES | OPTIONS'");
    EXPECT_EQ(error("op sort axis=0 | f32[1] | fast"),
              "invalid argument: 'fast' is not an option of a case");
    EXPECT_EQ(error("op sort axis=0 | f32[3]:=1,2"), "invalid argument: got 2 values for f32[3]");
    EXPECT_EQ(error("op sort axis=0 | f32[3]:1-2"),
              "invalid argument: 'f32[3]:1-2': expected type:from..to or type:=values");
    EXPECT_EQ(error("op sort axis=0 | f32[3] | exact"),
              "invalid argument: 'exact' says how well a 'want' is met, and there is none");
    EXPECT_EQ(error("op sort axis=0 | i64[3]:2..N | N=2"), "invalid argument: no values in 2..2");
}

} // namespace
} // namespace ingot::test
