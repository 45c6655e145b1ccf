// SPDX-License-Identifier: Apache-2.0
#include "source_dir.h"

namespace ingot {

std::string source_dir() {
    return INGOT_SOURCE_DIR;
}

} // namespace ingot
