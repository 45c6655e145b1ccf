// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/epilogue.h"

#include "backends/cpu/map_step.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::cpu {

const Node* epilogue_of(const Group& group) {
    return group.nodes.size() > 1 ? &group.nodes[1] : nullptr;
}

std::optional<std::string> refuse_epilogue(const Group& group) {
    if (group.nodes.size() > 2 || group.outputs.size() != 1) {
        return "more than one node after the main one";
    }
    if (group.nodes.size() == 1) {
        return std::nullopt;
    }
    const Node& map = group.nodes[1];
    Value main = group.nodes[0].outputs[0];
    if (!map.is(map_def) || group.outputs[0] != map.outputs[0]) {
        return "the following node is not a map";
    }
    const Type& from = group.graph.type(main);
    const Type& to = group.graph.type(map.outputs[0]);
    if (from.dims != to.dims || from.dtype != to.dtype) {
        return str("the map makes ", to, " of ", from);
    }
    return refuse_map(group.graph, map);
}

std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args) {
    const Node* map = epilogue_of(args.group);
    if (map == nullptr) {
        return main;
    }
    std::vector<Operand> in;
    for (Value v : map->inputs) {
        int index = args.group.input_index(v);
        in.push_back(index < 0 ? args.out[0] : args.in[static_cast<size_t>(index)]);
    }
    std::vector<std::unique_ptr<Step>> steps;
    steps.push_back(std::move(main));
    steps.push_back(make_map(map->as<Map>().body, in, args.out[0]));
    return std::make_unique<StepSequence>(std::move(steps));
}

Status StepSequence::run(const RunContext& context) noexcept {
    for (const auto& s : steps_) {
        s->scratch = scratch;
        Status status = s->run(context);
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

std::string StepSequence::implementation() const {
    return steps_.front()->implementation();
}

int64_t StepSequence::scratch_bytes() const {
    int64_t bytes = 0;
    for (const auto& s : steps_) {
        bytes = std::max(bytes, s->scratch_bytes());
    }
    return bytes;
}

} // namespace ingot::cpu
