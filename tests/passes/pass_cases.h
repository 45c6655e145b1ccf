// SPDX-License-Identifier: Apache-2.0
// Cases of passes: <folder of tests>/<pass>.case holds, for each case, a title, the graph before,
// `---`, and the graph after (or `unchanged`). Both must also compute the same.
//
//   === title [f16]
//   graph ...
//   ---
//   graph ...
//
// A near-miss, with a title `not: ...`, stays `unchanged`, and no other case does.
// [f16] and [bf16] ask for that precision, [cpu] for the kernels of the CPU. INGOT_WRITE_GOLDENS=1
// rewrites the graphs after, but for those of near-misses.
#pragma once

#include "passes/pass.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ingot::test {

struct PassCase {
    std::string title;
    std::string before;
    std::string after;
};

bool is_near_miss(const PassCase& c);
/// The stems of the .case files of a folder of tests ("passes"), sorted.
std::vector<std::string> case_files(const std::string& folder);
std::vector<PassCase> read_pass_cases(const std::string& folder, const std::string& pass);
/// The pass of a case.
using FindPass = std::function<const Pass&(const PassCase&)>;
/// Fails the test where a case of the pass gives another graph, other results, or, with
/// `idempotent`, another graph when the pass runs again.
void check_pass_cases(const std::string& folder, const std::string& pass, bool idempotent,
                      const FindPass& find);
/// Fails the test where the pass gives another graph for a case that is a branch of an `if`.
/// `others`: the titles of cases that must give another one.
void check_cases_in_branches(const std::string& folder, const std::string& pass,
                             const FindPass& find, const std::set<std::string>& others = {});

} // namespace ingot::test
