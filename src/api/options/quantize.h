// SPDX-License-Identifier: Apache-2.0
// Options of ingot calibrate and quantize.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Quantize {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/quantize.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
