// SPDX-License-Identifier: Apache-2.0
#include "workflow/slow_types.h"

#include "ir/rewrite.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/device_types.h"

#include <optional>

namespace ingot {

std::string slow_types_warning(const Graph& g, const Backend& backend) {
    std::optional<DType> slow;
    visit_nodes(g, [&](const Graph& in, const Node& n) {
        if (!slow && (n.is(dot_def) || n.is(ops::conv_def))) {
            DType t = in.type(n.inputs[0]).dtype;
            bool half = t == DType::F16 || t == DType::BF16;
            slow = half && !is_fast(backend, t) ? std::optional(t) : std::nullopt;
        }
    });
    // Measured, on a CPU without instructions for either: whole models against the same in f32.
    return slow ? str("the engine computes in ", *slow, ", which takes ",
                      *slow == DType::F16 ? "12 to 16 times" : "about twice",
                      " as long as f32 on the CPU: build it without ",
                      *slow == DType::F16 ? "fp16" : "bf16", " to run it there")
                : std::string();
}

} // namespace ingot
