// SPDX-License-Identifier: Apache-2.0
// Settings of the build that travel in an engine's metadata and that every context obeys,
// and defaults of inputs.
#pragma once

#include "engine/engine.h"

namespace ingot {

/// Set in the metadata of an engine whose runs are batch invariant.
inline constexpr const char* batch_invariant_property = "batch_invariant";

/// Puts the default of an input that a run may leave out into the metadata of its engine.
void put_input_default(const std::string& name, const Tensor& value, Properties& metadata);
/// The default of an input of the graph; undefined for one that every run needs. Errors:
/// InvalidEngine naming the input where it does not fit.
Tensor input_default(const Engine& engine, size_t input);
/// All defaults by the names of their inputs. Errors: those of input_default().
NamedTensors input_defaults(const Engine& engine);

/// The options with what the engine was built for (CompileOptions::batch_invariant).
inline CompileOptions with_properties(CompileOptions options, const Engine& engine) {
    options.batch_invariant =
        options.batch_invariant || engine.metadata().contains(batch_invariant_property);
    return options;
}

} // namespace ingot
