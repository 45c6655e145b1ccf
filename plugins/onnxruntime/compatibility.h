// SPDX-License-Identifier: Apache-2.0
// Judges whether a compiled model runs here, and how well, from its own description and its
// engines.
#pragma once

#include "plugins/onnxruntime/engine.h"

#include <span>

namespace ingot::ort {

/// The description of a compiled model, for any number of parts: "ingot engines=1
/// kernels=sm86,sm90".
std::string compatibility_text(const Options& options, const Target& target);
/// The architectures of an engine's kernels, as in its node: "sm86,sm90", or "any".
std::string architecture_text(const Options& options);

/// Judges such a description for a device of this compute capability, 0 for the CPU. An empty text
/// of another provider is not applicable, any other one is not supported.
OrtCompiledModelCompatibility judge_compatibility(std::string_view text, int capability);

/// Facts from an engine's first bytes.
struct EngineCheck {
    bool runs = true;
    bool is_best = true;
    std::string reason; // the reason and remedy, unless both hold
};
EngineCheck check_engine(std::span<const std::byte> bytes, const Target& target,
                         const std::shared_ptr<ApiLogger>& logger);

} // namespace ingot::ort
