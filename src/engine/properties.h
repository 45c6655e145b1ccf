// SPDX-License-Identifier: Apache-2.0
// Settings of the build that travel in an engine's metadata and that every context obeys.
#pragma once

#include "engine/engine.h"

namespace ingot {

/// Set in the metadata of an engine whose runs are batch invariant.
inline constexpr const char* batch_invariant_property = "batch_invariant";

/// The options with what the engine was built for (CompileOptions::batch_invariant).
inline CompileOptions with_properties(CompileOptions options, const Engine& engine) {
    options.batch_invariant =
        options.batch_invariant || engine.metadata().contains(batch_invariant_property);
    return options;
}

} // namespace ingot
