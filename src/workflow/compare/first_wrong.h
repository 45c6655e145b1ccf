// SPDX-License-Identifier: Apache-2.0
// Which step first wrote a wrong value.
#pragma once

#include "workflow/compare/tensor_difference.h"

#include <span>
#include <string>

namespace ingot {

/// Names the layer or output that was wrong when a step had written it, and no earlier one was;
/// where an output is wrong and nothing was then, says so; "" where all is right. `outputs` are the
/// results of the run, `written` those of them that were read as their steps had written them.
std::string first_wrong(std::span<const TensorDifference> layers,
                        std::span<const TensorDifference> outputs,
                        std::span<const TensorDifference> written);

} // namespace ingot
