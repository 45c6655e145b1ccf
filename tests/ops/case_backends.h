// SPDX-License-Identifier: Apache-2.0
// The backends that op cases run on besides the evaluator.
#pragma once

#include "ir/graph.h"

#include <functional>
#include <string>
#include <vector>

namespace ingot::test {

struct CaseBackend {
    std::string name;
    std::function<std::vector<Tensor>(const Graph&, const std::vector<Tensor>&)> run;
};
const std::vector<CaseBackend>& case_backends();

} // namespace ingot::test
