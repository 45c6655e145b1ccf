// SPDX-License-Identifier: Apache-2.0
// Cases of passes: <folder of tests>/<pass>.case holds, for each case, a title, the graph before,
// `---`, and the graph after (or `unchanged`). Both must also compute the same.
//
//   === title [f16]
//   graph ...
//   ---
//   graph ...
//
// [f16] and [bf16] ask for that precision, [cpu] for the kernels of the CPU. INGOT_WRITE_GOLDENS=1
// rewrites the graphs after.
#pragma once

#include "passes/pass.h"

#include <functional>
#include <string>
#include <vector>

namespace ingot::test {

struct PassCase {
    std::string title;
    std::string before;
    std::string after;
};

/// The stems of the .case files of a folder of tests ("passes"), sorted.
std::vector<std::string> case_files(const std::string& folder);
std::vector<PassCase> read_pass_cases(const std::string& folder, const std::string& pass);
/// Fails the test where a case of the pass gives another graph, other results, or, with
/// `idempotent`, another graph when the pass runs again. `find` gives the pass for a case.
void check_pass_cases(const std::string& folder, const std::string& pass, bool idempotent,
                      const std::function<const Pass&(const PassCase&)>& find);

} // namespace ingot::test
