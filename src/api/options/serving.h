// SPDX-License-Identifier: Apache-2.0
// Options of ingot export-triton and ingot serve.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Serving {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/serving.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
