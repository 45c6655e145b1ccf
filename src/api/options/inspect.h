// SPDX-License-Identifier: Apache-2.0
// Options of commands that only read: inspect, report, check, compare, cache.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Inspect {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/inspect.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
