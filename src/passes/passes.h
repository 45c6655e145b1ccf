// SPDX-License-Identifier: Apache-2.0
// The passes of pipeline.def; one file each.
#pragma once

#include "passes/pass.h"

namespace ingot::passes {

#define INGOT_PASS(name) extern const Pass name;
#include "passes/pipeline.def"
#undef INGOT_PASS

} // namespace ingot::passes
