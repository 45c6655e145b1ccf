// SPDX-License-Identifier: Apache-2.0
// group_norm with channels innermost in memory, over all SMs.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// "channels"; nullopt for other layouts, or a map that reads more than the result.
struct GroupChannels : NoParameters {
    static constexpr std::string_view pattern = "channels";
};
std::optional<Tactic> channels_tactic(const Problem& p);
Emitted emit_channels(const Problem& p);

} // namespace ingot::kernels
