// SPDX-License-Identifier: Apache-2.0
// Code for a GPU that an engine brings (docs/adr/0020).
#pragma once

#include <string>

namespace ingot {

class Backend;
class Engine;

/// Why contexts on `backend` do not use the engine's kernels built ahead, as a warning with what to
/// do; "" where they use them, or where there are none. A context logs it, unless its options bring
/// kernels: an empty map of them says that the caller has told its user.
std::string unused_kernels(const Engine& engine, const Backend& backend);

} // namespace ingot
