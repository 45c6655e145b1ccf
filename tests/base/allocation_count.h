// SPDX-License-Identifier: Apache-2.0
// How often this test program called operator new, from any thread.
// Always 0 under ThreadSanitizer, whose operator new cannot be replaced.
#pragma once

#include <cstdint>

namespace ingot {

int64_t allocation_count();

} // namespace ingot
