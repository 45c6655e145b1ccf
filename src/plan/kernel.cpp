// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel.h"

#include "ops/primitives.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace ingot::plan {

void ErrorText::set(const char* format, ...) noexcept {
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
}

void Step::run_dynamic(const RunContext&, DynamicResults&) {
    fail(ErrorCode::Internal, "this step has no result of a size that depends on data");
}

int Group::input_index(Value v) const {
    auto it = std::find(inputs.begin(), inputs.end(), v);
    return it == inputs.end() ? -1 : static_cast<int>(it - inputs.begin());
}

Group group_of(const Graph& g, const Node& n) {
    if (n.is(fused_def)) {
        const Graph& body = *n.as<Fused>().body;
        return {body, body.nodes(), body.inputs(), body.outputs()};
    }
    return {g, std::span(&n, 1), n.inputs, n.outputs};
}

const Kernel* KernelSet::find(std::string_view name, const Group& group,
                              std::string* reason) const {
    for (const KernelTable* table : tables()) {
        for (const Kernel& k : *table) {
            if (k.name != name) {
                continue;
            }
            std::optional<std::string> refusal =
                group.nodes.size() > 1 && !k.takes_groups
                    ? std::optional<std::string>("it runs single nodes only")
                    : k.refuse(group);
            if (!refusal) {
                return &k;
            }
            if (reason != nullptr) {
                *reason = std::move(*refusal);
            }
        }
    }
    return nullptr;
}

bool KernelSet::reads_casts(std::string_view name) const {
    for (const KernelTable* table : tables()) {
        for (const Kernel& k : *table) {
            if (k.name == name && k.reads_casts) {
                return true;
            }
        }
    }
    return false;
}

void any_strides(LayoutArgs&) {}

} // namespace ingot::plan
