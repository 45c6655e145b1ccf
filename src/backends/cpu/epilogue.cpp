// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/epilogue.h"

#include "backends/cpu/map_step.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::cpu {

std::optional<std::string> refuse_map_epilogue(const Group& group) {
    std::optional<std::string> why = plan::refuse_epilogue(group);
    const Node* map = plan::epilogue_of(group);
    if (why || map == nullptr) {
        return why;
    }
    const Type& from = group.graph.type(group.nodes[0].outputs[0]);
    const Type& to = group.graph.type(map->outputs[0]);
    return from.dtype == to.dtype ? refuse_map(group.graph, *map)
                                  : std::optional(str("the map makes ", to, " of ", from));
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
