// SPDX-License-Identifier: Apache-2.0
// Options of a build: target, precision, profiles, limits.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Build {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/build.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
