// SPDX-License-Identifier: Apache-2.0
// The passes; one file each.
#pragma once

#include "passes/pass.h"

namespace ingot::passes {

extern const Pass dead_code, fold_constants, simplify, share, raise_quantization, raise_softmax,
    raise_norm, raise_gelu, raise_rope, raise_attention, fold_scales, fold_pads, precision;

} // namespace ingot::passes
