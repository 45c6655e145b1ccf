// SPDX-License-Identifier: Apache-2.0
// Options of a run: device, kernels, inputs.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Run {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/run.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
