// SPDX-License-Identifier: Apache-2.0
// Whether a compiled model runs here, and how well: what it says of itself, and what its engines
// do.
#pragma once

#include "plugins/onnxruntime/engine.h"

#include <span>

namespace ingot::ort {

/// What a compiled model says of itself, whatever the number of its parts: "ingot engines=1
/// kernels=sm86,sm90".
std::string compatibility_text(const Options& options, const Target& target);
/// The architectures that an engine has kernels for, as its node says: "sm86,sm90", or "any".
std::string architecture_text(const Options& options);

/// Judges such a text for a device of this compute capability, 0 for the CPU. Texts of others are
/// not applicable when empty, else not supported.
OrtCompiledModelCompatibility judge_compatibility(std::string_view text, int capability);

/// What an engine's first bytes tell.
struct EngineCheck {
    bool runs = true;
    bool is_best = true;
    std::string reason; // and what to do, unless both hold
};
EngineCheck check_engine(std::span<const std::byte> bytes, const Target& target,
                         const std::shared_ptr<ApiLogger>& logger);

} // namespace ingot::ort
