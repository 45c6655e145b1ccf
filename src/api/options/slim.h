// SPDX-License-Identifier: Apache-2.0
// Options of ingot slim.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Slim {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/slim.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
