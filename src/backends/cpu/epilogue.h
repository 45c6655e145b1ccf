// SPDX-License-Identifier: Apache-2.0
// Epilogues: a fused group is a main node followed by at most one map that reads its result. If a
// kernel cannot compute the map itself, it runs in place over the result.
#pragma once

#include "backends/cpu/kernel.h"
#include "plan/epilogue.h"

namespace ingot::cpu {

using plan::epilogue_of;
/// As plan::refuse_epilogue, with a map that keeps the element type.
std::optional<std::string> refuse_map_epilogue(const Group& group);
/// The same, but sums of 32 bits may become bytes or f32: with_epilogue() has memory for them.
std::optional<std::string> refuse_product_epilogue(const Group& group);
/// Where the main node writes: the group's result, or where that has other elements, sums for
/// with_epilogue() alone, dense in `order`.
Operand main_result(const StepArgs& args, const Order& order);
/// Runs `main`, which writes main_result(), then the group's map (if any) over it.
std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args);
/// The same for a main node whose sums are dense in `order`.
std::unique_ptr<Step> with_epilogue(std::unique_ptr<Step> main, const StepArgs& args,
                                    const Order& order);

/// Runs steps in sequence; they share scratch memory.
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
