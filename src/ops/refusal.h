// SPDX-License-Identifier: Apache-2.0
// refusal: the place of a result that cannot be computed. A run that reaches it fails; a run that
// takes another branch does not.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// () -> dtype[dims], but running it is an error with `text`.
struct Refusal {
    DType dtype = DType::F32;
    Dims dims;
    std::string text;
    static void fields(auto& s, auto&& f) {
        f("dtype", s.dtype), f("dims", s.dims), f("text", s.text);
    }
};
/// Errors of the run: Unsupported with `text`.
Value refusal(Graph& g, const Type& type, std::string text);

extern const OpDef refusal_def;

} // namespace ingot::ops
