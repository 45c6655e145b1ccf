// SPDX-License-Identifier: Apache-2.0
// fold_numbers: maps of single constant elements become constants (zero points that quantisation
// widens, say), which epilogues that oneDNN computes must know.
#include "backends/cpu/numbers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::plan {

namespace {

std::optional<Values> folded(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    auto is_number = [&g](Value v) { return cpu::number(g, v) != nullptr; };
    if (!n.is(map_def) || in.empty() || !std::all_of(in.begin(), in.end(), is_number)) {
        return std::nullopt;
    }
    Graph one = g.sibling("number");
    Values inputs;
    std::vector<Tensor> tensors;
    for (Value v : in) {
        tensors.push_back(*g.constant(v));
        inputs.push_back(one.add_input({}, tensors.back().type()));
    }
    one.add_output({}, one.add(*n.def, n.attrs, inputs)[0]);
    return Values{ops::constant(g, evaluate(one, tensors)[0])};
}

} // namespace

Pass fold_numbers(const KernelSet&) {
    return {
        .name = "fold_numbers",
        .summary = "maps of single constant elements become constants",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, folded)); },
        .structural = true,
    };
}

} // namespace ingot::plan
