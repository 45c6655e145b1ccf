// SPDX-License-Identifier: Apache-2.0
// One compiled kernel as the runtime cache keeps it: a header, the key, the names of what compiled
// it, the binary, and a checksum over all of it.
#pragma once

#include "base/hash.h"

#include <span>
#include <string>
#include <string_view>

namespace ingot::plan {

struct KernelEntry {
    Hash128 key;
    std::string_view compiler;
    std::string_view nvrtc;
    std::string_view binary;
    std::string problem; // why it cannot be used; the rest is empty then
};

std::string encode_entry(const Hash128& key, std::string_view compiler, std::string_view nvrtc,
                         std::string_view binary);
/// The views point into `bytes`.
KernelEntry parse_entry(std::span<const std::byte> bytes);

} // namespace ingot::plan
