// SPDX-License-Identifier: Apache-2.0
// Op cases: one op, its attributes and its input types on a line of a *.case file.
//
//   op reduce fn="sum" axes=[1] | f32[N,8] | tol 1e-5 N=1,4
//   op gather axis=0 | f32[5,2] i64[3]:0..5
//   op concat axis=0 | i64[1]:=7 i64[2]:=8,9 | want 7,8,9
//
// Between the bars: the input types, each with an optional range of random values (from..to, `to`
// excluded, sizes allowed) or a list of values; -f32[N] is not an operand: it only says what N is.
// After them: `tol` against the f64 evaluation (relative to the largest result; for integers the
// steps they may differ by), the values that symbols take, one evaluation each (else 1, 3, 4), what
// the results must be (`want`, once per result; -0 has its sign), `exact` where the evaluator and
// every backend give that without any tolerance, and `evaluator-only` for ops that backends make
// themselves. A line that begins with space continues the one before; # starts a comment.
#pragma once

#include "ir/graph.h"

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace ingot::test {

struct CaseInput {
    Type type;
    bool operand = true;
    std::string from; // of the range; empty where there is none
    std::string to;
    std::vector<std::string> values;
};

struct OpCase {
    std::string place; // "reduce.case:12"
    std::string text;
    const OpDef* def = nullptr;
    std::shared_ptr<const void> attrs;
    std::vector<CaseInput> inputs;
    std::optional<double> tolerance;
    bool evaluator_only = false;
    bool exact = false;
    std::map<std::string, std::vector<int64_t>> sizes;
    std::vector<std::vector<std::string>> want;
};

/// Errors: InvalidArgument with the fault of the line.
OpCase parse_case(const std::string& place, const std::string& text);

/// A line of a file, with its continuations.
struct CaseLine {
    std::string place;
    std::string text;
};
inline void PrintTo(const CaseLine& line, std::ostream* out) {
    *out << line.place;
}
/// All lines of all *.case files of a folder, by file name.
std::vector<CaseLine> list_cases(const std::string& folder);

/// The number of evaluations of a case: as many as its symbols have values, at least 1.
size_t evaluation_count(const OpCase& c);
/// The values of the symbols of its input types in evaluation `k`.
Symbols symbols_of(const OpCase& c, size_t k);
/// The inputs of evaluation `k`: equal in every run, on every machine.
std::vector<Tensor> inputs_of(const OpCase& c, size_t k);

} // namespace ingot::test
