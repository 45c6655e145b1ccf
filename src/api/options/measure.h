// SPDX-License-Identifier: Apache-2.0
// Options of timing, comparison and reports.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Measure {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/measure.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
