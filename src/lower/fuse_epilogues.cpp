// SPDX-License-Identifier: Apache-2.0
// fuse_epilogues: a map becomes the epilogue of the kernel that produces one of its operands, where
// the kernel accepts it.
#include "base/log.h"
#include "ir/rewrite.h"
#include "lower/epilogue_group.h"
#include "lower/lowering.h"
#include "ops/primitives.h"
#include "plan/kernel.h"

#include <algorithm>

namespace ingot::plan {

namespace {

std::optional<Values> fuse_epilogue(const KernelSet& kernels, Rewriter& r, const Node& n,
                                    std::span<const Value> in, std::span<const uint32_t> readers) {
    if (!n.is(map_def)) {
        return std::nullopt;
    }
    // The operand computed last waits least for the others.
    std::vector<size_t> candidates(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        candidates[i] = i;
    }
    std::sort(candidates.begin(), candidates.end(),
              [&in](size_t a, size_t b) { return in[b] < in[a]; });
    for (size_t i : candidates) {
        const Node* p = r.out().producer(in[i]);
        auto occurrences =
            static_cast<uint32_t>(std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]));
        if (p == nullptr || p->is(map_def) || p->is(constant_def) || p->outputs.size() != 1 ||
            readers[n.inputs[i].id] != occurrences) {
            continue;
        }
        Values inputs;
        GraphRef body = epilogue_group(r.out(), *p, n, in, i, inputs);
        Group group{*body, body->nodes(), body->inputs(), body->outputs()};
        std::string reason = "no kernel of that name";
        if (kernels.find(p->def->name, group, &reason) == nullptr) {
            log(LogLevel::Verbose, kernels.backend, ": '", n.name, "' stays apart from '", p->name,
                "' (", p->def->name, "): ", reason);
            continue;
        }
        std::string kernel(p->def->name);
        std::string origin = p->name == n.name ? n.name : p->name + " + " + n.name;
        r.out().set_origin(std::move(origin));
        return r.out().add(fused_def, Fused{std::move(kernel), body}, inputs);
    }
    return std::nullopt;
}

Graph fused(const Graph& g, const KernelSet& kernels) {
    std::vector<uint32_t> readers = use_counts(g);
    return dead_code(rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
        return fuse_epilogue(kernels, r, n, in, readers);
    }));
}

} // namespace

Pass fuse_epilogues(const KernelSet& kernels) {
    return {
        .name = "fuse_epilogues",
        .summary = "maps become part of the kernels that produce their operands",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
        .structural = true,
    };
}

} // namespace ingot::plan
