// SPDX-License-Identifier: Apache-2.0
// What can be read from the generated text of a launch.
#pragma once

#include "kernels/family.h"

namespace ingot::cuda {

struct Parameter {
    size_t begin = 0; // in the body
    size_t end = 0;
    std::string type; // "u32", "i32", "u64", "i64", or "" for anything else
    std::string name;
};

/// The parameters of the kernel, and where its body begins; empty when the text is not understood.
std::vector<Parameter> parameters_of(const kernels::Launch& l, size_t& inside);

} // namespace ingot::cuda
