// SPDX-License-Identifier: Apache-2.0
// Every composite op has results from an independent source: cases of reference.case, which
// make_reference_cases.py writes without Ingot. case_test.cpp runs them; this test finds missing
// ones.
#include "ir/field_list.h"
#include "op_case.h"
#include "op_test.h"
#include "ops/op_table.h"
#include "ops/recurrence.h"
#include "source_dir.h"

#include <cstdio>

namespace ingot::test {
namespace {

bool same(const Field& a, const Field& b) {
    return std::visit([&](auto* v) { return *v == *std::get<decltype(v)>(b); }, a);
}

/// Whether the field of that index has one value in all cases.
bool is_constant(const OpDef& op, size_t field, const std::vector<OpCase>& cases) {
    std::shared_ptr<void> first = op.copy(cases[0].attrs.get());
    for (const OpCase& c : cases) {
        std::shared_ptr<void> other = op.copy(c.attrs.get());
        if (!same(FieldList(op, first.get()).fields[field].second,
                  FieldList(op, other.get()).fields[field].second)) {
            return false;
        }
    }
    return true;
}

/// Results without a reference, and attributes with one value only; empty if none.
std::string gaps(const OpDef& op, const std::vector<OpCase>& references) {
    std::vector<OpCase> cases;
    for (const OpCase& c : references) {
        if (c.def == &op && !c.want.empty()) {
            cases.push_back(c);
        }
    }
    if (cases.empty()) {
        return str(op.name, " has no case with a want in tests/ops/reference.case: add one to "
                            "tests/ops/reference and run make_reference_cases.py\n");
    }
    std::string out;
    std::shared_ptr<void> attrs = op.make();
    std::vector<std::string> names = FieldList(op, attrs.get()).names();
    for (size_t i = 0; i < names.size(); ++i) {
        if (is_constant(op, i, cases)) {
            append(out, str(op.name, ": '", names[i], "' has one value in all reference cases\n"));
        }
    }
    return out;
}

std::vector<OpCase> cases_of(const std::string& file) {
    std::vector<OpCase> out;
    for (const CaseLine& line : list_cases(source_dir() + "/tests/ops")) {
        if (file.empty() || line.place.starts_with(file + ":")) {
            out.push_back(parse_case(line.place, line.text));
        }
    }
    return out;
}

TEST(References, EveryCompositeHasResultsFromAnIndependentSource) {
    std::vector<OpCase> references = cases_of("reference.case");
    for (const OpTable* table : all_ops()) {
        for (const OpDef* op : *table) {
            EXPECT_EQ(op->is_composite() ? gaps(*op, references) : "", "");
        }
    }
}

// Every result of a case, not the first of several.
TEST(References, EveryCaseSaysAllResults) {
    size_t composites = 0;
    size_t wanted = 0;
    for (const OpCase& c : cases_of("")) {
        composites += c.def->is_composite() ? 1 : 0;
        wanted += c.def->is_composite() && !c.want.empty() ? 1 : 0;
        if (!c.place.starts_with("reference.case:")) {
            continue;
        }
        size_t results = c.def == &ops::topk_def ? 2 : 1;
        if (c.def == &ops::recurrence_def) {
            bool two = static_cast<const ops::Recurrence*>(c.attrs.get())->has_cell_state();
            results = two ? 3 : 2;
        }
        EXPECT_EQ(c.want.size(), results) << c.place << ": " << c.text;
    }
    std::printf("%zu of %zu cases of composites say their results\n", wanted, composites);
    EXPECT_GT(wanted, 450U);
}

TEST(References, AMissingCaseIsSeen) {
    EXPECT_EQ(gaps(ops::gelu_def, {}),
              "gelu has no case with a want in tests/ops/reference.case: add one to "
              "tests/ops/reference and run make_reference_cases.py\n");
    std::vector<OpCase> one = {parse_case("a:1", "op gelu | f32[1]:=0 | want 0")};
    EXPECT_EQ(gaps(ops::gelu_def, one), "gelu: 'tanh' has one value in all reference cases\n");
    one.push_back(parse_case("a:2", "op gelu tanh=true | f32[1]"));
    EXPECT_EQ(gaps(ops::gelu_def, one), "gelu: 'tanh' has one value in all reference cases\n");
    one.push_back(parse_case("a:3", "op gelu tanh=true | f32[1]:=0 | want 0"));
    EXPECT_EQ(gaps(ops::gelu_def, one), "");
}

} // namespace
} // namespace ingot::test
