// SPDX-License-Identifier: Apache-2.0
// Epilogues: a fused group is a main node and, after it, at most one map that reads its result.
// What a kernel cannot do itself runs as a map in place over the result.
#pragma once

#include "backends/cpu/kernel.h"

namespace ingot::cpu {

/// The map after the main node, or null.
const Node* epilogue_of(const Group& group);
/// Why the group is not one main node with at most a map of the result's shape and width after it.
std::optional<std::string> refuse_epilogue(const Group& group);
/// Runs `main`, then the group's map over its result (when there is one). `done` has written `out`.
std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args);

/// One step after another; scratch memory is shared.
class StepSequence : public Step {
public:
    explicit StepSequence(std::vector<std::unique_ptr<Step>> steps) : steps_(std::move(steps)) {}
    Status run(const RunContext& context) noexcept override;
    std::string implementation() const override;
    int64_t scratch_bytes() const override;

private:
    std::vector<std::unique_ptr<Step>> steps_;
};

} // namespace ingot::cpu
