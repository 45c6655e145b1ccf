// SPDX-License-Identifier: Apache-2.0
// A compiled kernel in the runtime cache: a header, the key, the names of the compilers, the
// binary, and a checksum over everything.
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
    std::string problem; // why it is unusable; the other fields are empty then
};

std::string encode_entry(const Hash128& key, std::string_view compiler, std::string_view nvrtc,
                         std::string_view binary);
/// The views point into `bytes`.
KernelEntry parse_entry(std::span<const std::byte> bytes);

} // namespace ingot::plan
