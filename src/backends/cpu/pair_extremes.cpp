// SPDX-License-Identifier: Apache-2.0
// pair_extremes: the minimum and the maximum of a tensor over the same axes, as a dynamic
// quantisation needs them, are one step that reads it once.
#include "ir/rewrite.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "ops/primitives.h"
#include "plan/kernel.h"

#include <array>
#include <map>

namespace ingot::plan {

namespace {

class ExtremePairs {
public:
    ExtremePairs(const Graph& g, const KernelSet& kernels) : kernels_(kernels) {
        std::map<std::pair<uint32_t, std::vector<int64_t>>, std::array<const Node*, 2>> found;
        for (const Node& n : g.nodes()) {
            const std::string fn = n.is(reduce_def) ? n.as<Reduce>().fn : "";
            if (fn != "min" && fn != "max") {
                continue;
            }
            auto& pair = found[{n.inputs[0].id, n.as<Reduce>().axes}];
            const Node*& same = pair[fn == "min" ? 0 : 1];
            const Node* other = pair[fn == "min" ? 1 : 0];
            if (same == nullptr && other != nullptr) {
                second_[other] = &n;
            }
            same = same == nullptr ? &n : same;
        }
    }

    std::optional<Values> operator()(Rewriter& r, const Node& n, std::span<const Value> in) {
        if (auto second = second_.find(&n); second != second_.end()) {
            fuse(r, n, *second->second, in[0]);
        }
        auto at = results_.find(&n);
        return at == results_.end() ? std::nullopt : std::optional(Values{at->second});
    }

private:
    void fuse(Rewriter& r, const Node& first, const Node& second, Value x) {
        Graph& g = r.out();
        Graph body = g.sibling("group");
        std::map<uint32_t, Value> inside = {{first.inputs[0].id, body.add_input("", g.type(x))}};
        for (const Node* n : {&first, &second}) {
            append_nodes(body, {n, 1}, inside);
            body.add_output("", inside.at(n->outputs[0].id));
        }
        if (kernels_.find("extremes", Group{body, body.nodes(), body.inputs(), body.outputs()}) ==
            nullptr) {
            return;
        }
        g.set_origin(first.name == second.name ? first.name : str(first.name, " + ", second.name));
        Values out =
            g.add(fused_def, Fused{"extremes", std::make_shared<const Graph>(std::move(body))},
                  Values{x});
        results_[&first] = out[0];
        results_[&second] = out[1];
    }

    const KernelSet& kernels_;
    std::map<const Node*, const Node*> second_; // by the first of a pair
    std::map<const Node*, Value> results_;
};

} // namespace

Pass pair_extremes(const KernelSet& kernels) {
    return {
        .name = "pair_extremes",
        .summary = "the minimum and the maximum of a tensor are found together",
        .run = [&kernels](const Graph& g,
                          const PassOptions&) { return rewrite(g, ExtremePairs(g, kernels)); },
        .structural = true,
    };
}

} // namespace ingot::plan
