// SPDX-License-Identifier: Apache-2.0
// Options that most commands have.
#pragma once

#include "api/options/types.h"

namespace ingot::options {

struct Common {
#define INGOT_OPTION(field, type, standard, ...) type field = standard;
#include "api/options/common.def"
#undef INGOT_OPTION
};

} // namespace ingot::options
